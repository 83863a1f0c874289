package sockets

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// local reports whether one of the descriptors has this local port.
func local(t *testing.T, fds []int, port int) bool {
	t.Helper()
	for _, fd := range fds {
		name, err := syscall.Getsockname(fd)
		require.NoError(t, err)
		if a, ok := name.(*syscall.SockaddrInet4); ok && a.Port == port {
			return true
		}
	}
	return false
}

func TestASocketIsKnownFromTheDialUntilItIsClosed(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	Track(listen)
	conn, err := Dialer(time.Second).Dial("tcp", listen.Addr().String())
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

func TestASocketIsKnownBeforeItIsConnected(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	before := len(Open())
	dialer := Dialer(time.Second)
	noted := dialer.Control
	seen := 0
	dialer.Control = func(network, address string, raw syscall.RawConn) error {
		err := noted(network, address, raw)
		seen = len(Open())
		return err
	}
	conn, err := dialer.Dial("tcp", listen.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, before+1, seen)
}

func TestClosedSocketsAreForgotten(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listen.Close()
	for range 200 {
		conn, err := Dialer(time.Second).Dial("tcp", listen.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	all.Lock()
	defer all.Unlock()
	require.Less(t, len(all.raw), 50)
}
