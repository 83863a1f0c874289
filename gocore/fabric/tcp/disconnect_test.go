package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// stopped returns two connected ranks whose polling the test does itself.
func stopped(t *testing.T, g Guard) (a, b *fabrictest.Rank) {
	w := fabrictest.NewWorld(t, 2, guarded(g))
	exchange(t, w)
	a, b = w.Ranks[0], w.Ranks[1]
	a.Pause()
	b.Pause()
	return a, b
}

// fill sends from r to peer until neither the sockets nor the queue take more, and returns how
// many messages that were.
func fill(t *testing.T, r *fabrictest.Rank, peer int) (n int) {
	for r.Endpoint(peer).Send(&fabric.Header{Kind: 1, Aux: uint32(n)}, make([]byte, 1000)) == nil {
		n++
	}
	require.Positive(t, inside(r).queues.Load())
	return n
}

// A rank that disconnects knows when its peer has got all; it may close then, although the
// peer has sent what it has not read.
func TestDisconnect(t *testing.T) { each(t, Clear, disconnects) }

func disconnects(t *testing.T, g Guard) {
	a, b := stopped(t, g)
	toB, toA := &script{}, &script{}
	n := fill(t, a, 1)
	fill(t, b, 0)
	inside(a).Disconnect()
	for range 50 {
		inside(a).pairs[1].sendQueue()
		require.False(t, inside(a).Disconnected(1), "the peer has read nothing")
		time.Sleep(time.Millisecond)
	}
	assert.False(t, inside(b).Drained(0))
	fabrictest.Until(t, "the answer", func() bool {
		inside(b).Poll(toB)
		inside(a).Poll(toA)
		return inside(a).Disconnected(1)
	})
	assert.Len(t, toB.payloads, n)
	assert.True(t, inside(b).Drained(0))
	assert.False(t, inside(a).Drained(1), "the other one goes on")
	assert.NoError(t, b.Endpoint(0).Send(&fabric.Header{Kind: 1}, []byte("too late")))
	a.Close()
	pollUntil(t, b, toB, "the end", func() bool { return len(toB.broken) > 0 })
	assert.ErrorIs(t, toB.broken[0], fabric.ErrDisconnected)
	assert.EqualError(t, toB.broken[0], "peer has disconnected: rank 0 has finalized")
	assert.True(t, inside(b).Disconnected(0))
	assert.Len(t, toB.payloads, n)
}

// Both may disconnect at once, and close in any order.
func TestDisconnectBoth(t *testing.T) { each(t, Clear, bothDisconnect) }

func bothDisconnect(t *testing.T, g Guard) {
	a, b := stopped(t, g)
	toB, toA := &script{}, &script{}
	n, m := fill(t, a, 1), fill(t, b, 0)
	inside(a).Disconnect()
	inside(b).Disconnect()
	inside(b).Disconnect() // again: nothing
	fabrictest.Until(t, "both answers", func() bool {
		inside(b).Poll(toB)
		inside(a).Poll(toA)
		return inside(a).Disconnected(1) && inside(b).Disconnected(0)
	})
	assert.Len(t, toB.payloads, n)
	assert.Len(t, toA.payloads, m)
	a.Close()
	pollUntil(t, b, toB, "the end", func() bool { return len(toB.broken) > 0 })
	assert.ErrorIs(t, toB.broken[0], fabric.ErrDisconnected)
	assert.Empty(t, toA.broken)
}

// A peer that connects to a rank that has disconnected is told so.
func TestDisconnectBeforeConnection(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, create)
	a, b := w.Ranks[0], w.Ranks[1]
	inside(a).Disconnect()
	assert.True(t, inside(a).Disconnected(1))
	assert.True(t, inside(b).Drained(0))
	require.NoError(t, b.Send(0, &fabric.Header{Kind: 1}, []byte("x")))
	fabrictest.Until(t, "the answer", func() bool { return inside(a).Disconnected(1) && inside(b).Drained(0) })
}

// Nothing arrives from a peer after Cut, which finds out.
func TestCut(t *testing.T) { each(t, Clear, cutOff) }

func cutOff(t *testing.T, g Guard) {
	a, b := stopped(t, g)
	toB, toA := &script{}, &script{}
	require.NoError(t, a.Endpoint(1).Send(&fabric.Header{Kind: 1}, []byte("x")))
	inside(b).Cut(0)
	assert.True(t, inside(b).Drained(0))
	assert.ErrorIs(t, b.Endpoint(0).Send(&fabric.Header{Kind: 1}, nil), fabric.ErrPeerGone)
	pollUntil(t, a, toA, "the loss", func() bool { return len(toA.broken) > 0 })
	assert.NotErrorIs(t, toA.broken[0], fabric.ErrDisconnected)
	inside(b).Poll(toB)
	assert.Empty(t, toB.payloads)
	assert.Empty(t, toB.broken)
	inside(a).Cut(1)
}
