package home

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/seal"
)

// Which of two connections ended first is known, although both are looked at later, in the other order.
func TestWhichConnectionEndedFirst(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	var near, far [2]net.Conn
	for i := range near {
		far[i], err = net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		near[i], err = listener.Accept()
		require.NoError(t, err)
		defer near[i].Close()
	}
	far[1].Close()
	time.Sleep(100 * time.Millisecond)
	far[0].Close()
	time.Sleep(100 * time.Millisecond)
	var at [2]time.Time
	for i := range near {
		_, err := near[i].Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		at[i] = (&Link{conn: &seal.Conn{Conn: near[i]}}).ended(err)
	}
	assert.True(t, at[1].Before(at[0].Add(-50*time.Millisecond)), "%v", at)
	assert.True(t, at[0].Before(time.Now().Add(-50*time.Millisecond)))
}
