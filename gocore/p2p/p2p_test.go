package p2p_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"sync/atomic"
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

func bytesBuf(b []byte) p2p.Buf {
	var p unsafe.Pointer
	if len(b) > 0 {
		p = unsafe.Pointer(&b[0])
	}
	return p2p.Buf{Addr: p, Count: len(b), Type: dtype.ByName("BYTE")}
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(seed))).Read(b)
	return b
}

func wait(r *ranktest.Rank, c *p2p.Channel, reqs ...*p2p.Request) {
	for _, q := range reqs {
		r.Until(q.Done, func() error { return c.Check(q) })
	}
}

// eachTransport runs f as each of n ranks, over every transport.
func eachTransport(t *testing.T, n int, f func(r *ranktest.Rank)) {
	for _, transport := range ranktest.Transports {
		t.Run(transport.Name, func(t *testing.T) { transport.Run(t, n, f) })
	}
}

// Every protocol: eager, pulled by the kernel, sent in pieces.
func TestAllSizesAllTransports(t *testing.T) {
	for _, transport := range ranktest.Transports {
		for _, n := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("ranks=%d,%s", n, transport.Name), func(t *testing.T) {
				transport.Run(t, n, func(r *ranktest.Rank) {
					c := r.P2P.Open(0, r.Rank, r.World)
					right, left := (r.Rank+1)%n, (r.Rank+n-1)%n
					for i, size := range []int{0, 1, 8, 4096, p2p.EagerLimit, p2p.EagerLimit + 1, 200_000, 3 << 20} {
						for _, mode := range []p2p.Mode{p2p.Standard, p2p.Synchronous, p2p.Buffered} {
							out, in := pattern(r.Rank+i*10, size), make([]byte, size)
							var s, q p2p.Request
							c.Recv(&q, bytesBuf(in), left, i)
							c.Send(&s, mode, bytesBuf(out), right, i)
							if mode == p2p.Buffered {
								require.True(r.T, s.Done())
								clear(out)
							}
							wait(r, c, &q, &s)
							require.Nil(r.T, q.Status().Err)
							assert.Equal(r.T, p2p.Status{Source: left, Tag: i, Bytes: size}, *q.Status())
							require.Equal(r.T, pattern(left+i*10, size), in)
						}
					}
					// The buffered ones end when their receivers have read them.
					r.Until(func() bool { return r.P2P.PendingSends() == 0 }, nil)
				})
			})
		}
	}
}

func TestOrderAndWildcards(t *testing.T) {
	const n, count = 4, 500
	eachTransport(t, n, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		if r.Rank > 0 {
			for i := range count {
				var s p2p.Request
				c.Send(&s, p2p.Standard, bytesBuf([]byte{byte(i), byte(i >> 8)}), 0, i%3)
				wait(r, c, &s)
			}
			return
		}
		next := make([][3]int, n) // by source and tag: the number of the next message
		for k := range next {
			next[k] = [3]int{0, 1, 2}
		}
		for range count * (n - 1) {
			in := make([]byte, 2)
			var q p2p.Request
			c.Recv(&q, bytesBuf(in), p2p.AnySource, p2p.AnyTag)
			wait(r, c, &q)
			st := q.Status()
			got := int(in[0]) | int(in[1])<<8
			require.Equal(r.T, next[st.Source][st.Tag], got, "messages of one sender with one tag keep their order")
			next[st.Source][st.Tag] += 3
		}
	})
}

func TestTruncation(t *testing.T) {
	for _, size := range []int{100, 100_000} {
		for _, transport := range ranktest.Transports {
			transport.Run(t, 2, func(r *ranktest.Rank) {
				c := r.P2P.Open(0, r.Rank, r.World)
				var q p2p.Request
				if r.Rank == 0 {
					c.Send(&q, p2p.Standard, bytesBuf(pattern(1, size)), 1, 7)
					wait(r, c, &q)
					return
				}
				in := make([]byte, size/2+10)
				c.Recv(&q, bytesBuf(in[:size/2]), 0, 7)
				wait(r, c, &q)
				require.NotNil(r.T, q.Status().Err)
				assert.Equal(r.T, errs.Truncate, q.Status().Err.Class)
				assert.Contains(r.T, q.Status().Err.Error(), fmt.Sprint(size))
				assert.Equal(r.T, pattern(1, size)[:size/2], in[:size/2])
				assert.Equal(r.T, make([]byte, 10), in[size/2:], "nothing is written beyond the buffer")
			})
		}
	}
}

func TestProbes(t *testing.T) {
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		if r.Rank == 0 {
			for i, n := range []int{5, 50_000} {
				var s p2p.Request
				c.Send(&s, p2p.Standard, bytesBuf(pattern(i, n)), 1, i)
				wait(r, c, &s)
			}
			return
		}
		for i, n := range []int{5, 50_000} {
			var st p2p.Status
			var m *p2p.Matched
			r.Until(func() (ok bool) { st, ok = c.Probe(0, i); return ok }, nil)
			assert.Equal(r.T, p2p.Status{Source: 0, Tag: i, Bytes: n}, st)
			r.Until(func() (ok bool) { m, _, ok = c.MatchedProbe(p2p.AnySource, i); return ok }, nil)
			_, again := c.Probe(0, i)
			assert.False(r.T, again, "a matched message is out of matching")
			in := make([]byte, n)
			var q p2p.Request
			m.Recv(&q, bytesBuf(in))
			wait(r, c, &q)
			assert.Equal(r.T, pattern(i, n), in)
		}
	})
}

// Messages of unknown size, which are sent before their receive and after it: what fits is received, the rest is kept.
func TestRecvWhole(t *testing.T) {
	const room = 64
	sizes := []int{0, 8, room, room + 1, 5000, 200_000}
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		for i, n := range sizes {
			for _, mode := range []p2p.Mode{p2p.Standard, p2p.Synchronous} {
				for _, early := range []bool{false, true} {
					var q, told p2p.Request
					if r.Rank == 0 {
						if !early {
							c.Recv(&told, bytesBuf(nil), 1, 100)
							wait(r, c, &told)
						}
						c.Send(&q, mode, bytesBuf(pattern(i, n)), 1, i)
						if early {
							c.Send(&told, p2p.Standard, bytesBuf(nil), 1, 100)
						}
						wait(r, c, &q, &told)
						continue
					}
					if early {
						c.Recv(&told, bytesBuf(nil), 0, 100)
						wait(r, c, &told)
					}
					in := make([]byte, room)
					c.RecvWhole(&q, bytesBuf(in), p2p.AnySource, i)
					if !early {
						c.Send(&told, p2p.Standard, bytesBuf(nil), 0, 100)
					}
					wait(r, c, &q)
					assert.Equal(r.T, p2p.Status{Source: 0, Tag: i, Bytes: n}, *q.Status())
					assert.False(r.T, c.Withdraw(&q))
					m := c.Matched(&q)
					assert.Equal(r.T, n > room, m != nil, "%d bytes", n)
					if m == nil {
						in = in[:n]
					} else {
						assert.Equal(r.T, make([]byte, room), in)
						in = make([]byte, n)
						m.Recv(&q, bytesBuf(in))
						wait(r, c, &q)
					}
					assert.Equal(r.T, pattern(i, n), in)
				}
			}
		}
	})
}

// A receive that is withdrawn while another thread polls has received its message, or leaves it for the next one.
func TestWithdrawLosesNoMessage(t *testing.T) {
	const messages = 100
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		if r.Rank == 0 {
			for i := range messages {
				var s p2p.Request
				c.Send(&s, p2p.Synchronous, bytesBuf([]byte{byte(i), byte(i >> 8)}), 1, 0)
				wait(r, c, &s)
			}
			return
		}
		var over atomic.Bool
		polling := make(chan bool)
		go func() {
			defer close(polling)
			for !over.Load() {
				r.Engine.Progress()
			}
		}()
		defer func() { over.Store(true); <-polling }()
		withdrawn := 0
		for i := 0; i < messages; {
			var q p2p.Request
			in := []byte{255, 255}
			c.RecvWhole(&q, bytesBuf(in), 0, 0)
			runtime.Gosched()
			if c.Withdraw(&q) {
				withdrawn++
				assert.Equal(r.T, []byte{255, 255}, in)
				continue
			}
			require.True(r.T, q.Done())
			require.Equal(r.T, []byte{byte(i), byte(i >> 8)}, in)
			i++
		}
		assert.Positive(r.T, withdrawn)
	})
}

func TestCancelAndAbandon(t *testing.T) {
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		if r.Rank == 0 {
			var q p2p.Request
			c.Recv(&q, bytesBuf(make([]byte, 8)), 1, 1)
			require.True(r.T, c.Cancel(&q))
			assert.True(r.T, q.Done() && q.Status().Cancelled)
			var a p2p.Request
			buffer := []byte{1, 2, 3}
			c.Recv(&a, bytesBuf(buffer), 1, 2)
			c.Abandon(&a)
			// The message meant for it, sent from now on, goes to the next receive.
			in := make([]byte, 3)
			var b, ready p2p.Request
			c.Recv(&b, bytesBuf(in), 1, 2)
			c.Send(&ready, p2p.Standard, bytesBuf(nil), 1, 3)
			wait(r, c, &ready, &b)
			assert.Equal(r.T, []byte{7, 8, 9}, in)
			assert.Equal(r.T, []byte{1, 2, 3}, buffer)
			return
		}
		var ready, s p2p.Request
		c.Recv(&ready, bytesBuf(nil), 0, 3)
		wait(r, c, &ready)
		c.Send(&s, p2p.Standard, bytesBuf([]byte{7, 8, 9}), 0, 2)
		wait(r, c, &s)
	})
}

func TestDerivedTypes(t *testing.T) {
	column, err := dtype.Vector(dtype.ByName("DOUBLE"), 300, 1, 300)
	require.NoError(t, err)
	for _, transport := range ranktest.Transports {
		transport.Run(t, 2, func(r *ranktest.Rank) {
			c := r.P2P.Open(0, r.Rank, r.World)
			m := make([]float64, 300*300)
			var q p2p.Request
			if r.Rank == 0 {
				for i := range m {
					m[i] = float64(i)
				}
				for j := range 300 {
					c.Send(&q, p2p.Standard, p2p.Buf{Addr: unsafe.Pointer(&m[j]), Count: 1, Type: column}, 1, j)
					wait(r, c, &q)
				}
				return
			}
			row := dtype.ByName("DOUBLE")
			for j := range 300 { // columns become rows
				c.Recv(&q, p2p.Buf{Addr: unsafe.Pointer(&m[j*300]), Count: 300, Type: row}, 0, j)
				wait(r, c, &q)
			}
			for i := range 300 {
				for j := range 300 {
					require.Equal(r.T, float64(j*300+i), m[i*300+j])
				}
			}
		})
	}
}

// A sender that is far ahead fills the ring; messages wait in order, and the
// receiver's progress engine drains it although the receiver computes.
func TestFlood(t *testing.T) {
	const count = 20_000
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		if r.Rank == 0 {
			reqs := make([]p2p.Request, count)
			data := make([][]byte, count)
			for i := range reqs {
				data[i] = []byte(fmt.Sprintf("message %d", i))
				c.Send(&reqs[i], p2p.Standard, bytesBuf(data[i]), 1, 0)
			}
			for i := range reqs {
				wait(r, c, &reqs[i])
			}
			return
		}
		in := make([]byte, 64)
		for i := range count {
			var q p2p.Request
			c.Recv(&q, bytesBuf(in), 0, 0)
			wait(r, c, &q)
			require.Equal(r.T, fmt.Sprintf("message %d", i), string(in[:q.Status().Bytes]))
		}
	})
}

func TestReset(t *testing.T) {
	eachTransport(t, 2, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		other := 1 - r.Rank
		var stale, old p2p.Request
		c.Recv(&old, bytesBuf(make([]byte, 8)), other, 99)
		c.Send(&stale, p2p.Standard, bytesBuf([]byte("old")), other, 1)
		r.P2P.Reset(2)
		require.True(r.T, old.Done())
		assert.Equal(r.T, errs.Pending, old.Status().Err.Class)
		var s, q p2p.Request
		in := make([]byte, 8)
		c.Recv(&q, bytesBuf(in), other, 1)
		c.Send(&s, p2p.Standard, bytesBuf([]byte("new")), other, 1)
		wait(r, c, &s, &q)
		assert.Equal(r.T, "new", string(in[:q.Status().Bytes]), "a message of before the reset must not be received after it")
	})
}

// A receive that is given up while the network reads its data from a peer that is
// stopped is counted until the network has finished, and the data is not unpacked.
func TestAbandonedReadOfANetwork(t *testing.T) {
	ranktest.RunNet(t, 2, fabric.Caps{OneSided: true, Keys: true}, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		long := pattern(7, 1<<20)
		if r.Rank == 0 {
			var s p2p.Request
			c.Send(&s, p2p.Standard, bytesBuf(long), 1, 1)
			wait(r, c, &s) // its memory is free when the network is done with it
			return
		}
		r.Net.Stop(0, true)
		into := make([]byte, len(long))
		var q p2p.Request
		c.Recv(&q, bytesBuf(into), 0, 1)
		r.Until(func() bool { return r.Net.Held(0) > 0 }, nil)
		assert.False(t, r.P2P.Left())
		c.Abandon(&q)
		assert.True(t, r.P2P.Left(), "its buffer may be written to")
		assert.False(t, q.Done())
		r.Net.Stop(0, false)
		r.Until(func() bool { return !r.P2P.Left() }, nil)
	})
}

// The address of a send that is given up may soon be other memory: no transport may
// use its registration for that.
func TestRegionsOfSendsThatAreGivenUp(t *testing.T) {
	caps := fabric.Caps{OneSided: true, Keys: true}
	long := make([]byte, 1<<20)
	t.Run("reset", func(t *testing.T) {
		ranktest.RunNet(t, 2, caps, func(r *ranktest.Rank) {
			c := r.P2P.Open(0, r.Rank, r.World)
			if r.Rank == 0 {
				kept := r.Engine.Keep(unsafe.Pointer(&long[0]), 1<<19)
				require.NotNil(t, kept)
				var s, k p2p.Request
				c.Send(&s, p2p.Standard, bytesBuf(long[1<<19:]), 1, 1)
				c.Send(&k, p2p.Standard, bytesBuf(long[:1<<19]), 1, 2)
				all, local := r.Net.Regions(0)
				assert.Equal(t, []int{2, 2}, []int{all, local})
				r.P2P.Reset(2)
				_, local = r.Net.Regions(0)
				assert.Equal(t, 1, local, "what Keep registered is still the program's")
				kept.Release()
				_, local = r.Net.Regions(0)
				assert.Zero(t, local)
			}
		})
	})
	t.Run("death", func(t *testing.T) {
		ranktest.RunNet(t, 2, caps, func(r *ranktest.Rank) {
			c := r.P2P.Open(0, r.Rank, r.World)
			if r.Rank == 0 {
				var s p2p.Request
				c.Send(&s, p2p.Standard, bytesBuf(long), 1, 1)
				r.End(1)
				require.Error(t, c.Check(&s))
				c.Abandon(&s)
				all, _ := r.Net.Regions(0)
				assert.Zero(t, all)
				assert.Zero(t, r.P2P.PendingSends())
			}
		})
	})
}

// A reset ends a long send, whose receiver goes on reading its data. The request is used again: what the receiver says when it
// has read the data ends nothing.
func TestRequestOfASendThatWasReset(t *testing.T) {
	reading, reset := make(chan struct{}), make(chan struct{})
	ranktest.RunNet(t, 2, fabric.Caps{OneSided: true, Keys: true}, func(r *ranktest.Rank) {
		c := r.P2P.Open(0, r.Rank, r.World)
		other := 1 - r.Rank
		long := make([]byte, 1<<20)
		var q p2p.Request
		if r.Rank == 1 {
			r.Net.Stop(0, true)
			c.Recv(&q, bytesBuf(long), 0, 1)
			r.Until(func() bool { return r.Net.Held(0) > 0 }, nil)
			r.P2P.Reset(2)
			close(reading)
			<-reset
			r.Net.Stop(0, false)
			wait(r, c, &q)
			var s p2p.Request
			c.Send(&s, p2p.Standard, bytesBuf([]byte("later")), other, 2) // behind what the read has sent
			wait(r, c, &s)
			return
		}
		c.Send(&q, p2p.Standard, bytesBuf(long), other, 1)
		<-reading
		r.P2P.Reset(2)
		close(reset)
		require.True(t, q.Done())
		require.Equal(t, errs.Pending, q.Status().Err.Class)
		c.Recv(&q, bytesBuf(make([]byte, 8)), other, 3)
		var last p2p.Request
		c.Recv(&last, bytesBuf(make([]byte, 8)), other, 2)
		wait(r, c, &last)
		assert.False(t, q.Done(), "nothing has been sent to it")
		assert.True(t, c.Cancel(&q))
		all, _ := r.Net.Regions(0)
		assert.Zero(t, all, "the receiver has read the data")
	})
}
