package sockets

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ownName returns an abstract name of a socket that nobody else in the network's namespace has.
func ownName(of string) string { return fmt.Sprintf("@gormapy-test-%s-%d", of, os.Getpid()) }

func eachNetwork(t *testing.T, limit int, test func(d *Acceptor, network string, l net.Listener)) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": ownName("acceptor")} {
		t.Run(network, func(t *testing.T) {
			l, err := net.Listen(network, address)
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
			test(&Acceptor{max: limit}, network, l)
		})
	}
}

// serve lets an acceptor accept connections until l is closed, and returns them.
func serve(t *testing.T, d *Acceptor, l net.Listener) <-chan net.Conn {
	accepted := make(chan net.Conn, 16)
	go d.Serve(l, func(conn net.Conn) {
		t.Cleanup(func() { conn.Close() })
		accepted <- conn
	})
	return accepted
}

// evicted reports whether the other end of a connection has closed it.
func evicted(conn net.Conn) bool {
	conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) //nolint:errcheck // it is open
	_, err := conn.Read(make([]byte, 1))
	return Evicted(err)
}

func TestTheOldestSilentPendingConnectionIsEvicted(t *testing.T) {
	eachNetwork(t, 3, func(d *Acceptor, network string, l net.Listener) {
		var local, remote []net.Conn
		accepted := serve(t, d, l)
		call := func() {
			conn, err := net.Dial(network, l.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
			local, remote = append(local, conn), append(remote, <-accepted)
		}
		for range 3 {
			call()
		}
		_, err := local[0].Write([]byte("good day"))
		require.NoError(t, err)
		time.Sleep(10 * time.Millisecond)
		call()
		assert.True(t, evicted(local[1]), "the oldest one that has sent nothing")
		d.Authenticated(remote[2])
		call()
		call()
		assert.False(t, evicted(local[2]), "an authenticated one stays")
		assert.False(t, evicted(local[0]), "and so does one that has sent something")
		assert.True(t, evicted(local[3]))
		b, err := io.ReadAll(io.LimitReader(remote[0], 4))
		require.NoError(t, err)
		assert.Equal(t, "good", string(b))
	})
}

func TestAnAcceptorWithoutDescriptors(t *testing.T) {
	eachNetwork(t, 0, func(d *Acceptor, network string, l net.Listener) {
		accepted := serve(t, d, l)
		silent, err := net.Dial(network, l.Addr().String())
		require.NoError(t, err)
		defer silent.Close()
		<-accepted
		var had unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &had))
		fd, err := unix.Dup(0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		// One descriptor is left, for this end of the next connection.
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(fd + 1), Max: had.Max}))
		defer unix.Setrlimit(unix.RLIMIT_NOFILE, &had) //nolint:errcheck // as it was
		next, err := net.Dial(network, l.Addr().String())
		require.NoError(t, err)
		defer next.Close()
		select {
		case conn := <-accepted:
			conn.Close()
		case <-time.After(time.Minute):
			t.Error("no connection is accepted although a pending one could be evicted")
		}
	})
}

func TestAnotherUserIsRefused(t *testing.T) {
	if syscall.Geteuid() != 0 {
		t.Skip("needs to become another user")
	}
	name := ownName("user")
	l, err := net.Listen("unix", name)
	require.NoError(t, err)
	defer l.Close()
	accepted := serve(t, new(Acceptor), l)
	fds := make(chan int)
	go func() {
		runtime.LockOSThread() // only this thread becomes another user; it ends with the goroutine
		syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0))
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: name})
		}
		assert.NoError(t, err)
		fds <- fd
	}()
	fd := <-fds
	defer unix.Close(fd)
	n, err := unix.Read(fd, make([]byte, 1))
	assert.Zero(t, n)
	assert.NoError(t, err)
	assert.Empty(t, accepted)
	own, err := net.Dial("unix", name)
	require.NoError(t, err)
	defer own.Close()
	assert.True(t, SameUser(<-accepted))
}

// A connection whose hello was read waits for an answer: it is not evicted before one that
// has said nothing.
func TestPendingConnectionsThatHaveGreetedStay(t *testing.T) {
	eachNetwork(t, 2, func(d *Acceptor, network string, l net.Listener) {
		var local, remote []net.Conn
		accepted := serve(t, d, l)
		call := func() {
			conn, err := net.Dial(network, l.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
			local, remote = append(local, conn), append(remote, <-accepted)
		}
		call()
		d.Greeted(remote[0])
		call()
		call()
		assert.True(t, evicted(local[1]))
		d.Greeted(remote[2])
		call()
		assert.True(t, evicted(local[0]), "the oldest, if none is silent")
		d.Greeted(remote[0]) // it is not pending any more
		call()
		assert.True(t, evicted(local[3]))
		assert.False(t, evicted(local[2]))
	})
}
