package handshake

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheOldestIsEvicted(t *testing.T) {
	w := NewWaiting(2)
	var near, far [5]net.Conn
	for i := range near {
		near[i], far[i] = net.Pipe()
		defer far[i].Close()
	}
	open := func(i int) bool {
		go func() { _, _ = near[i].Write([]byte{1}) }()
		_, err := io.ReadFull(far[i], make([]byte, 1))
		return err == nil
	}
	for i := range 3 {
		assert.True(t, w.Hold(near[i]))
	}
	assert.False(t, w.Release(near[0]), "it was evicted")
	assert.False(t, open(0))
	assert.True(t, open(1))
	assert.True(t, w.Release(near[2]))
	assert.False(t, w.Release(near[2]))
	assert.Equal(t, 1, w.Len())
	w.Evict()
	w.Evict()
	assert.False(t, open(1))
	assert.True(t, w.Hold(near[3]))
	w.Close()
	assert.False(t, open(3))
	assert.False(t, w.Hold(near[4]))
	assert.False(t, open(4))
	assert.True(t, open(2), "it had been released")
	assert.Zero(t, w.Len())
}
