package p2p_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// arrival is a message from rank 1 to rank 0 that a test has arrive step by step.
type arrival struct {
	r       *ranktest.Rank
	h       fabric.Header
	payload []byte
}

func (a *arrival) begin() (at unsafe.Pointer) {
	a.r.Engine.Exclude(func() { at = a.r.Engine.Place(1, &a.h, len(a.payload)) })
	return at
}

func (a *arrival) end(payload []byte) {
	a.r.Engine.Exclude(func() { a.r.Engine.Deliver(1, &a.h, payload) })
}

func eager(r *ranktest.Rank, gen uint32, n int) *arrival {
	return &arrival{r, fabric.Header{Kind: fabric.KindEager, Gen: gen, Src: 1, Tag: 3, Len: uint64(n)}, pattern(n, n)}
}

// onRank0 runs f as rank 0 of two, of which the other does nothing.
func onRank0(t *testing.T, f func(r *ranktest.Rank, c *p2p.Channel)) {
	ranktest.RunNet(t, 2, fabric.Caps{}, func(r *ranktest.Rank) {
		if c := r.P2P.Open(0, r.Rank, r.World); r.Rank == 0 {
			f(r, c)
		}
	})
}

// A message is matched when it begins to arrive, and its payload goes into the buffer of its receive.
func TestPayloadGoesIntoTheBuffer(t *testing.T) {
	onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
		for _, room := range []int{5000, 6000} {
			in := make([]byte, room)
			a := eager(r, 0, 5000)
			var q, next p2p.Request
			c.Recv(&q, bytesBuf(in), p2p.AnySource, p2p.AnyTag)
			c.Recv(&next, bytesBuf(make([]byte, room)), 1, 3)
			require.Equal(r.T, unsafe.Pointer(&in[0]), a.begin())
			assert.False(r.T, q.Done())
			assert.Equal(r.T, 1, q.Peer())
			assert.False(r.T, c.Cancel(&q), "it has been matched")
			copy(in, a.payload)
			a.end(in[:5000])
			require.True(r.T, q.Done())
			assert.Equal(r.T, p2p.Status{Source: 1, Tag: 3, Bytes: 5000}, *q.Status())
			assert.Equal(r.T, a.payload, in[:5000])
			assert.True(r.T, c.Cancel(&next))
		}
	})
}

// Memory that turns out not to be writable makes the transport deliver the payload from elsewhere.
func TestPayloadFromElsewhere(t *testing.T) {
	onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
		in, a := make([]byte, 5000), eager(r, 0, 5000)
		var q p2p.Request
		c.Recv(&q, bytesBuf(in), 1, 3)
		require.NotNil(r.T, a.begin())
		a.end(a.payload)
		require.True(r.T, q.Done())
		assert.Equal(r.T, a.payload, in)
	})
}

// What does not fit, or lies apart, or was not asked for, is matched when it is there.
func TestPayloadThatCanNotBeStoredAsItComes(t *testing.T) {
	apart, err := dtype.Vector(dtype.ByName("BYTE"), 2500, 2, 4)
	require.NoError(t, err)
	in := make([]byte, 10_000)
	for name, x := range map[string]struct {
		buf p2p.Buf
		tag int
	}{
		"short":   {bytesBuf(in[:4000]), 3},
		"apart":   {p2p.Buf{Addr: unsafe.Pointer(&in[0]), Count: 1, Type: apart}, 3},
		"another": {bytesBuf(in), 4},
	} {
		t.Run(name, func(t *testing.T) {
			onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
				var q p2p.Request
				a := eager(r, 0, 5000)
				c.Recv(&q, x.buf, 1, x.tag)
				require.Nil(r.T, a.begin())
				a.end(a.payload)
				_, messages := c.Kept()
				require.Equal(r.T, x.tag == 3, q.Done())
				if !q.Done() {
					assert.Equal(r.T, 1, messages)
					assert.True(r.T, c.Cancel(&q))
					return
				}
				assert.Zero(r.T, messages)
				assert.Equal(r.T, min(5000, x.buf.Bytes()), q.Status().Bytes)
			})
		})
	}
}

// A receive of unknown size that has been withdrawn leaves its message to the next one, also a message that is just arriving.
func TestWithdrawWhileThePayloadArrives(t *testing.T) {
	onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
		for _, withdraw := range []bool{false, true} {
			in, a := make([]byte, 6000), eager(r, 0, 5000)
			var q, next p2p.Request
			c.RecvWhole(&q, bytesBuf(in), 1, 3)
			require.Nil(r.T, a.begin())
			if withdraw {
				require.True(r.T, c.Withdraw(&q))
			}
			a.end(a.payload)
			if withdraw {
				require.Equal(r.T, make([]byte, 6000), in)
				c.RecvWhole(&next, bytesBuf(in), 1, 3)
				require.True(r.T, next.Done())
			}
			require.True(r.T, q.Done())
			require.Nil(r.T, c.Matched(&q))
			assert.Equal(r.T, a.payload, in[:5000])
		}
	})
}

// A receive that is given up leaves the message to the next one, although a part of it is in its buffer.
func TestAbandonTakesTheMessageBack(t *testing.T) {
	onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
		r.Net.Diverts = true
		in, a := make([]byte, 5000), eager(r, 0, 5000)
		a.h.Flags = p2p.FlagSync
		var q, other, next p2p.Request
		c.Recv(&q, bytesBuf(in), p2p.AnySource, p2p.AnyTag)
		require.NotNil(r.T, a.begin())
		copy(in, a.payload[:2000])
		c.Recv(&other, bytesBuf(make([]byte, 5000)), 1, 4)
		c.Abandon(&q)
		assert.Equal(r.T, p2p.Status{Source: p2p.AnySource, Tag: p2p.AnyTag, Cancelled: true}, *q.Status())
		_, there := c.Probe(1, 3)
		assert.False(r.T, there, "it has not arrived")
		a.end(a.payload)
		assert.False(r.T, other.Done())
		assert.Equal(r.T, make([]byte, 3000), in[2000:])
		c.Recv(&next, bytesBuf(in), 1, 3)
		require.True(r.T, next.Done())
		assert.Equal(r.T, p2p.Status{Source: 1, Tag: 3, Bytes: 5000}, *next.Status())
		assert.Equal(r.T, a.payload, in)
		assert.True(r.T, c.Cancel(&other))
	})
}

// A receive whose message can't be taken back takes it with it. The next one is not touched.
func TestAbandonWhileThePayloadArrives(t *testing.T) {
	onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
		in, a := make([]byte, 5000), eager(r, 0, 5000)
		var q, next p2p.Request
		c.Recv(&q, bytesBuf(in), 1, 3)
		require.NotNil(r.T, a.begin())
		c.Abandon(&q)
		c.Recv(&next, bytesBuf(in), 1, 3)
		a.end(nil) // the transport has discarded the rest
		assert.False(r.T, next.Done())
		b := eager(r, 0, 4500)
		require.NotNil(r.T, b.begin())
		copy(in, b.payload)
		b.end(in[:4500])
		require.True(r.T, next.Done())
		assert.Equal(r.T, 4500, next.Status().Bytes)
		_, messages := c.Kept()
		assert.Zero(r.T, messages)
	})
}

func TestResetWhileThePayloadArrives(t *testing.T) {
	onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
		in, a := make([]byte, 5000), eager(r, 0, 5000)
		var q, next p2p.Request
		c.Recv(&q, bytesBuf(in), 1, 3)
		require.NotNil(r.T, a.begin())
		r.P2P.Reset(1)
		r.P2P.Settle()
		require.True(r.T, q.Done())
		assert.Equal(r.T, errs.Pending, q.Status().Err.Class)
		c.Recv(&next, bytesBuf(in), 1, 3)
		a.end(nil)
		assert.False(r.T, next.Done())
		require.Nil(r.T, eager(r, 0, 5000).begin(), "a message of the old generation")
		b := eager(r, 1, 5000)
		require.NotNil(r.T, b.begin())
		b.end(b.payload)
		require.True(r.T, next.Done())
		assert.Nil(r.T, next.Status().Err)
		assert.Equal(r.T, b.payload, in)
	})
}

// A sender that ends between its announcement and the rest of the data makes the receive fail. The others go on.
func TestSenderEndsBehindItsAnnouncement(t *testing.T) {
	for _, all := range []bool{false, true} {
		onRank0(t, func(r *ranktest.Rank, c *p2p.Channel) {
			in := make([]byte, 20_000)
			a := &arrival{r, fabric.Header{Kind: fabric.KindRTS, Flags: p2p.FlagAhead, Src: 1, Tag: 3, A: 7, Len: 20_000}, pattern(1, 5000)}
			var q, own, last p2p.Request
			c.Recv(&q, bytesBuf(in), p2p.AnySource, 3)
			require.Equal(r.T, unsafe.Pointer(&in[0]), a.begin())
			if copy(in, a.payload); all {
				a.end(in[:5000])
			}
			require.False(r.T, q.Done())
			require.NoError(r.T, c.Check(&q))
			r.End(1)
			r.Until(func() bool { return r.Engine.Gone(1) }, nil)
			require.ErrorContains(r.T, c.Check(&q), "rank 1")
			c.Abandon(&q)
			c.Send(&own, p2p.Standard, bytesBuf([]byte("own")), 0, 3)
			c.Recv(&last, bytesBuf(in[:3]), p2p.AnySource, 3)
			wait(r, c, &own, &last)
			assert.Equal(r.T, "own", string(in[:3]))
			assert.Zero(r.T, r.P2P.PendingSends())
		})
	}
}

// A receive that is given up when more of its message has been asked for has the rest discarded, wherever it is. The sender is done with
// the message, and those that follow are right.
func TestAbandonOfDataThatWasAskedFor(t *testing.T) {
	const size, rounds, limit = 50_000, 100, 64 << 10
	ranktest.RunNet(t, 2, fabric.Caps{}, func(r *ranktest.Rank) {
		r.P2P.SetCreditLimit(limit)
		c := r.P2P.Open(0, r.Rank, r.World)
		for round := range rounds {
			var s, q, next p2p.Request
			if r.Rank == 1 {
				c.Send(&s, p2p.Standard, bytesBuf(pattern(round, size)), 0, 3)
				c.Send(&next, p2p.Standard, bytesBuf(pattern(round+1, size)), 0, 4)
				wait(r, c, &s, &next)
				continue
			}
			in, after := make([]byte, size), make([]byte, size)
			c.Recv(&q, bytesBuf(in), 1, 3)
			r.Until(func() bool { return q.Peer() == 1 && !c.Posted(&q) }, nil)
			for range round % 5 {
				r.Engine.Poll()
			}
			c.Abandon(&q)
			whole := q.Done()
			had := append([]byte(nil), in...)
			c.Recv(&next, bytesBuf(after), 1, 4)
			wait(r, c, &next)
			require.Equal(r.T, pattern(round+1, size), after)
			require.Equal(r.T, had, in, "nothing is written after Abandon")
			if whole {
				require.Equal(r.T, pattern(round, size), in)
			}
		}
		r.Until(func() bool { return r.P2P.PendingSends() == 0 && r.P2P.Owed(1-r.Rank) <= limit/4 }, nil)
	})
}

// The beginning of a long message comes with its announcement, which may be matched before or afterwards, by a buffer that
// has room for all of the message, for this part, or for less.
func TestDataAhead(t *testing.T) {
	const size, limit = 100_000, 64 << 10
	for _, mode := range []p2p.Mode{p2p.Standard, p2p.Synchronous, p2p.Buffered} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("mode=%d,late=%t", mode, late), func(t *testing.T) {
				ranktest.RunNet(t, 2, fabric.Caps{}, func(r *ranktest.Rank) {
					r.P2P.SetCreditLimit(limit)
					c := r.P2P.Open(0, r.Rank, r.World)
					other, ahead := 1-r.Rank, r.Engine.Ahead(1-r.Rank)
					require.Positive(r.T, ahead)
					for i, room := range []int{size, size + 1, size - 1, ahead + 1, ahead, ahead - 1, 1, 0} {
						for round := range 20 { // more than there is credit for, if none came back
							var s, q, told, last p2p.Request
							in := make([]byte, room)
							if !late {
								c.Recv(&q, bytesBuf(in), other, i)
							}
							c.Send(&s, mode, bytesBuf(pattern(r.Rank+round, size)), other, i)
							c.Send(&told, p2p.Standard, bytesBuf(nil), other, 99)
							c.Recv(&last, bytesBuf(nil), other, 99)
							wait(r, c, &last)
							if late {
								c.Recv(&q, bytesBuf(in), other, i)
							}
							wait(r, c, &q, &s, &told)
							n := min(room, size)
							require.Equal(r.T, n, q.Status().Bytes)
							if room < size {
								require.Equal(r.T, errs.Truncate, q.Status().Err.Class)
							}
							require.Equal(r.T, pattern(other+round, size)[:n], in[:n])
						}
					}
					r.Until(func() bool { return r.P2P.PendingSends() == 0 && r.P2P.Owed(other) <= limit/4 }, nil)
				})
			})
		}
	}
}
