package sockets

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// local reports whether one of the descriptors has this local port.
func local(t *testing.T, fds []int32, port int) bool {
	t.Helper()
	for _, fd := range fds {
		name, err := syscall.Getsockname(int(fd))
		require.NoError(t, err)
		if a, ok := name.(*syscall.SockaddrInet4); ok && a.Port == port {
			return true
		}
	}
	return false
}

func TestASocketIsKnownFromTheDialUntilItIsClosed(t *testing.T) {
	listen, err := Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	conn, err := Dial(context.Background(), time.Second, "tcp", listen.Addr().String())
	require.NoError(t, err)
	other, err := listen.Accept()
	require.NoError(t, err)
	Track(other)
	port := func(a net.Addr) int { return a.(*net.TCPAddr).Port }
	require.True(t, local(t, Open(), port(listen.Addr())))
	require.True(t, local(t, Open(), port(conn.LocalAddr())))
	require.Len(t, Open(), 3)
	require.NoError(t, conn.Close())
	require.NoError(t, other.Close())
	require.False(t, local(t, Open(), port(conn.LocalAddr())))
	require.Len(t, Open(), 1)
}

// The backlog of the listening socket is full, so that not all are connected.
func TestASocketIsKnownBeforeItIsConnected(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	before := len(Open())
	ctx, cancel := context.WithCancel(context.Background())
	var connected atomic.Int32
	var ended sync.WaitGroup
	const dialers = 5
	for range dialers {
		ended.Go(func() {
			if conn, err := Dial(ctx, time.Minute, "tcp", address); err == nil {
				connected.Add(1)
				<-ctx.Done()
				conn.Close()
			}
		})
	}
	require.Eventually(t, func() bool { return len(Open()) == before+dialers }, 10*time.Second, time.Millisecond)
	BeforeFork() // does not wait for them
	AfterFork()
	require.Less(t, int(connected.Load()), dialers)
	cancel()
	ended.Wait()
}

func TestNoSocketIsMadeDuringAFork(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	before := BeforeFork()
	BeforeFork() // another thread's
	dialed := make(chan error)
	go func() {
		conn, err := Dial(context.Background(), time.Minute, "tcp", listen.Addr().String())
		if err == nil {
			conn.Close()
		}
		dialed <- err
	}()
	AfterFork()
	select {
	case <-dialed:
		t.Fatal("a connection was made during a fork")
	case <-time.After(50 * time.Millisecond):
	}
	require.Len(t, Open(), before)
	AfterFork()
	require.NoError(t, <-dialed)
}

func TestAForkFindsEverySocketThatExists(t *testing.T) {
	name := ownName("forks")
	listen, err := net.Listen("unix", name)
	require.NoError(t, err)
	defer listen.Close()
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			Track(conn)
			conn.Close()
		}
	}()
	var dialers sync.WaitGroup
	ended := make(chan struct{})
	for range 4 {
		dialers.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if conn, err := Dial(context.Background(), time.Minute, "unix", name); err == nil {
					conn.Close()
				}
			}
		})
	}
	for range 300 {
		known := map[int]bool{}
		BeforeFork()
		for _, fd := range Open() {
			known[int(fd)] = true
		}
		for _, fd := range unnamed(t) {
			require.True(t, known[fd], "descriptor %d", fd)
		}
		AfterFork()
	}
	close(ended)
	dialers.Wait()
}

// unnamed returns the descriptors of all Unix sockets here without a name: those of dialers.
func unnamed(t *testing.T) (fds []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		require.NoError(t, err)
		if name, err := syscall.Getsockname(fd); err == nil {
			if u, ok := name.(*syscall.SockaddrUnix); ok && u.Name == "" {
				fds = append(fds, fd)
			}
		}
	}
	return fds
}

func TestAHostIsFoundByItsName(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	_, port, err := net.SplitHostPort(listen.Addr().String())
	require.NoError(t, err)
	conn, err := Dial(context.Background(), time.Second, "tcp", net.JoinHostPort("localhost", port))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = Dial(context.Background(), time.Second, "tcp", "127.0.0.1") // without a port
	require.Error(t, err)
	BeforeFork() // what has failed does not hold it up
	AfterFork()
}

func TestClosedSocketsAreForgotten(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	for range 200 {
		conn, err := Dial(context.Background(), time.Second, "tcp", listen.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	all.Lock()
	defer all.Unlock()
	require.Less(t, len(all.raw), 50)
}
