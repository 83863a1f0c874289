package p2p_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// A sender that runs ahead fills no more than the limit of the receiver's memory, its messages keep
// their order, and when all are received it can send whole again.
func TestUnexpectedMessagesAreBounded(t *testing.T) {
	const limit, count, size = 64 << 10, 1000, 1000
	eachTransport(t, 2, func(r *ranktest.Rank) {
		r.P2P.SetCreditLimit(limit)
		c := r.P2P.Open(0, r.Rank, r.World)
		other := 1 - r.Rank
		sends := make([]p2p.Request, count)
		for i := range sends {
			c.Send(&sends[i], p2p.Standard, bytesBuf(pattern(r.Rank*count+i, size)), other, i%2)
		}
		var told, last p2p.Request
		c.Send(&told, p2p.Standard, bytesBuf(nil), other, 7)
		c.Recv(&last, bytesBuf(nil), other, 7)
		wait(r, c, &last) // everything has arrived, whole or announced
		bytes, messages := c.Kept()
		assert.LessOrEqual(r.T, bytes, limit)
		assert.Greater(r.T, bytes, limit/2)
		assert.Equal(r.T, count, messages)
		for i := range count {
			in := make([]byte, size)
			var q p2p.Request
			c.Recv(&q, bytesBuf(in), other, p2p.AnyTag)
			wait(r, c, &q)
			require.Nil(r.T, q.Status().Err)
			require.Equal(r.T, i%2, q.Status().Tag)
			require.Equal(r.T, pattern(other*count+i, size), in)
		}
		for i := range sends {
			wait(r, c, &sends[i])
		}
		r.Until(func() bool { return r.P2P.Owed(other) <= limit/4 }, nil)
	})
}

// What is dropped with its channel is returned, too.
func TestCreditsOfAClosedChannel(t *testing.T) {
	const limit = 64 << 10
	eachTransport(t, 2, func(r *ranktest.Rank) {
		r.P2P.SetCreditLimit(limit)
		world := r.P2P.Open(0, r.Rank, r.World)
		other := 1 - r.Rank
		for round := range 20 {
			c := r.P2P.Open(uint32(round+2), r.Rank, r.World)
			sends := make([]p2p.Request, 20)
			for i := range sends {
				c.Send(&sends[i], p2p.Standard, bytesBuf(pattern(i, 1000)), other, 0)
			}
			for i := range sends {
				wait(r, c, &sends[i]) // within the limit each completes without its receiver
			}
			var told, last p2p.Request
			world.Send(&told, p2p.Standard, bytesBuf(nil), other, round)
			world.Recv(&last, bytesBuf(nil), other, round)
			wait(r, world, &told, &last)
			c.Close()
			r.Until(func() bool { return r.P2P.Owed(other) <= limit/4 }, nil)
		}
	})
}

// Messages that the collective reset drops are not owed any more.
func TestCreditsAfterReset(t *testing.T) {
	const limit = 64 << 10
	eachTransport(t, 2, func(r *ranktest.Rank) {
		r.P2P.SetCreditLimit(limit)
		c := r.P2P.Open(0, r.Rank, r.World)
		other := 1 - r.Rank
		for gen := uint32(1); gen < 4; gen++ {
			sends := make([]p2p.Request, 100)
			for i := range sends {
				c.Send(&sends[i], p2p.Standard, bytesBuf(pattern(i, 1000)), other, 0)
			}
			var told, last p2p.Request
			c.Send(&told, p2p.Standard, bytesBuf(nil), other, 7)
			c.Recv(&last, bytesBuf(nil), other, 7)
			wait(r, c, &told, &last) // a reset drops what has not been sent
			r.P2P.Reset(gen)
			assert.Zero(r.T, r.P2P.Owed(other))
		}
		var s, q p2p.Request
		in := make([]byte, 1000)
		c.Recv(&q, bytesBuf(in), other, 0)
		c.Send(&s, p2p.Standard, bytesBuf(pattern(5, 1000)), other, 0)
		wait(r, c, &s, &q)
		assert.Equal(r.T, pattern(5, 1000), in)
	})
}
