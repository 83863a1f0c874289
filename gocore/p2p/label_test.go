package p2p_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// A label comes with its message, by every protocol, whether the receive or the message is
// there first.
func TestLabels(t *testing.T) {
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(1, r.Rank, r.World)
		for i, size := range []int{0, 100, p2p.EagerLimit + 1, 300_000} {
			for _, want := range []p2p.Label{{}, {Word: 5}, {Word: 7, Size: 1<<63 | 9}} {
				for _, late := range []bool{false, true} {
					var q p2p.Request
					if r.Rank == 0 {
						var word p2p.Request
						c.Recv(&word, bytesBuf(nil), 1, 99) // the receive is posted, or is to be late
						wait(r, c, &word)
						c.SendLabelled(&q, bytesBuf(pattern(i, size)), 1, i, want)
						wait(r, c, &q)
						continue
					}
					in := make([]byte, size)
					if !late {
						c.Recv(&q, bytesBuf(in), 0, i)
					}
					var word p2p.Request
					c.Send(&word, p2p.Standard, bytesBuf(nil), 0, 99)
					wait(r, c, &word)
					if late {
						r.Until(func() bool {
							from, label, found := c.Left(i)
							assert.True(r.T, !found || from == 0 && label == want, "%v", label)
							return found
						}, nil)
						c.Recv(&q, bytesBuf(in), 0, i)
					}
					wait(r, c, &q)
					require.Equal(r.T, want, q.Label())
					require.Equal(r.T, pattern(i, size), in)
					_, _, found := c.Left(i)
					require.False(r.T, found)
				}
			}
		}
	})
}

// What a rank tells comes in order with its messages.
func TestTell(t *testing.T) {
	const many = 50
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(1, r.Rank, r.World)
		var q p2p.Request
		count := 0
		if r.Rank == 1 {
			c.Recv(&q, bytesBuf(nil), 0, 0) // the other one listens
			wait(r, c, &q)
			for i := range many {
				c.Send(&q, p2p.Standard, bytesBuf(nil), 0, i)
				wait(r, c, &q)
				c.Tell(0, fabric.Header{Tag: int32(i), Aux: 3, A: 1 << 40, Flags: 2}, []byte{byte(i)})
			}
			c.Tell(0, fabric.Header{Gen: 2, Tag: many}, nil) // lost: of another generation
			c.Send(&q, p2p.Standard, bytesBuf(nil), 0, many)
			wait(r, c, &q)
			return
		}
		told := func(h *fabric.Header, payload []byte) {
			_, _, found := c.Left(int(h.Tag))
			assert.True(r.T, found, "the message before it has not come")
			assert.Equal(r.T, []any{int32(1), uint32(3), uint64(1 << 40), uint8(2), []byte{byte(count)}},
				[]any{h.Src, h.Aux, h.A, h.Flags & 0x7f, payload})
			count++
		}
		c.Listen(listener(told))
		c.Send(&q, p2p.Standard, bytesBuf(nil), 1, 0)
		wait(r, c, &q)
		r.Until(func() bool { _, found := c.Probe(1, many); return found }, nil)
		require.Equal(r.T, many, count)
	})
}

type listener func(h *fabric.Header, payload []byte)

func (l listener) Told(h *fabric.Header, payload []byte) { l(h, payload) }
func (l listener) Stray(h *fabric.Header) bool           { return h.Tag >= 1000 }

// Senders of messages that nobody receives do not wait for ever.
func TestDrop(t *testing.T) {
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(1, r.Rank, r.World)
		sizes := []int{8, 300_000}
		var q p2p.Request
		if r.Rank == 0 {
			c.Recv(&q, bytesBuf(nil), 1, 99) // the other one listens
			wait(r, c, &q)
			for _, size := range sizes {
				for _, tag := range []int{5, 1005} {
					c.Send(&q, p2p.Synchronous, bytesBuf(pattern(1, size)), 1, tag)
					wait(r, c, &q)
				}
			}
			c.Send(&q, p2p.Standard, bytesBuf(nil), 1, 0)
			wait(r, c, &q)
			return
		}
		c.Listen(listener(nil))
		c.Send(&q, p2p.Standard, bytesBuf(nil), 0, 99)
		wait(r, c, &q)
		for _, size := range sizes {
			r.Until(func() bool { _, found := c.Probe(0, 5); return found }, nil)
			c.Drop(5, 0, func(h *fabric.Header) { assert.Equal(r.T, size, int(h.Len)) })
			_, found := c.Probe(0, 5)
			assert.False(r.T, found)
		}
		c.Recv(&q, bytesBuf(nil), 0, 0) // the last one is dropped when it comes
		wait(r, c, &q)
	})
}
