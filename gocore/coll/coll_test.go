package coll_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// divided are the nodes of the ranks of communicators. The last one has more nodes than
// exchange partial results, each with each.
var divided = [][]int{{0, 0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {2, 2, 2, 0, 1, 1, 1}, {0, 1, 1, 0, 2, 1, 0}, {0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9}}

// run runs f on communicators of several sizes, over every transport.
func run(t *testing.T, f func(r *ranktest.Rank, c *coll.Comm)) {
	for _, n := range []int{1, 2, 3, 4, 7} {
		for _, transport := range ranktest.Transports {
			t.Run(fmt.Sprintf("ranks=%d,%s", n, transport.Name), func(t *testing.T) {
				transport.Run(t, n, func(r *ranktest.Rank) {
					c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
					if r.Engine.AllLocal(r.World) {
						c.UseBlock(r.Engine, 0)
					}
					f(r, c)
				})
			})
		}
	}
	runDivided(t, f)
}

// runDivided runs f on communicators whose ranks are on several nodes, each over two transports.
func runDivided(t *testing.T, f func(r *ranktest.Rank, c *coll.Comm)) {
	all := len(ranktest.Transports)
	for i, nodes := range divided {
		for _, transport := range []ranktest.Transport{ranktest.Transports[i%all], ranktest.Transports[(i+2)%all]} {
			if len(nodes) > 7 && transport.Name == "rdma" {
				continue
			}
			t.Run(fmt.Sprintf("nodes=%v,%s", nodes, transport.Name), func(t *testing.T) {
				transport.Run(t, len(nodes), func(r *ranktest.Rank) {
					debug.SetPanicOnFault(true)
					c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
					c.Divide(nodes)
					f(r, c)
				})
			})
		}
	}
}

func finish(r *ranktest.Rank, o *coll.Op) {
	r.Until(o.Advance, o.Check)
	require.Nil(r.T, o.Err())
}

func longs(v []int64) p2p.Buf {
	b := p2p.Buf{Count: len(v), Type: dtype.ByName("INT64_T")}
	if len(v) > 0 {
		b.Addr = unsafe.Pointer(&v[0])
	}
	return b
}

func fill(n int, f func(i int) int64) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

var sizes = []int{0, 1, 5, 1000, 20_000}

func TestMovement(t *testing.T) {
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		n, me := r.Size, r.Rank
		for _, k := range sizes {
			for root := range n {
				v := fill(k, func(i int) int64 { return int64(i * (root + 1)) })
				want := slices.Clone(v)
				if me != root {
					clear(v)
				}
				finish(r, c.Bcast(longs(v), root))
				require.Equal(r.T, want, v, "bcast")

				mine := fill(k, func(i int) int64 { return int64(me*1000 + i) })
				all := make([]int64, k*n)
				send := longs(mine)
				part := longs(all)
				part.Count = k
				var vec *coll.Vec
				if me == root {
					vec = coll.Uniform(part, n)
				}
				finish(r, c.Gather(&send, vec, root))
				whole := fill(k*n, func(i int) int64 { return int64(i/max(k, 1)*1000 + i%max(k, 1)) })
				if me == root {
					require.Equal(r.T, whole, all, "gather")
				}
				back := make([]int64, k)
				recv := longs(back)
				finish(r, c.Scatter(vec, &recv, root))
				require.Equal(r.T, mine, back, "scatter")
			}
			mine := fill(k, func(i int) int64 { return int64(me*1000 + i) })
			all := make([]int64, k*n)
			part := longs(all)
			part.Count = k
			send := longs(mine)
			finish(r, c.Allgather(&send, coll.Uniform(part, n)))
			require.Equal(r.T, fill(k*n, func(i int) int64 { return int64(i/k*1000 + i%k) }), all, "allgather")

			for _, inPlace := range []bool{false, true} {
				out := fill(k*n, func(i int) int64 { return int64(me*1_000_000 + i) })
				in := slices.Clone(out)
				sp, rp := longs(out), longs(in)
				sp.Count, rp.Count = k, k
				finish(r, c.Alltoall(coll.Uniform(sp, n), coll.Uniform(rp, n), inPlace))
				require.Equal(r.T, fill(k*n, func(i int) int64 { return int64(i/k*1_000_000 + me*k + i%k) }), in, "alltoall")
			}
		}
	})
}

func TestReductions(t *testing.T) {
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		n, me := r.Size, r.Rank
		sum := int64(n * (n + 1) / 2)
		for _, k := range sizes {
			mine := fill(k, func(i int) int64 { return int64((me + 1) * (i + 1)) })
			want := fill(k, func(i int) int64 { return sum * int64(i+1) })
			out := make([]int64, k)
			finish(r, c.Allreduce(longs(mine), longs(out), op.Sum))
			require.Equal(r.T, want, out, "allreduce")
			finish(r, c.Allreduce(longs(out), longs(out), op.Max)) // in place
			require.Equal(r.T, want, out)
			for root := range n {
				clear(out)
				recv := longs(out)
				finish(r, c.Reduce(longs(mine), &recv, op.Sum, root))
				if me == root {
					require.Equal(r.T, want, out, "reduce")
				}
			}
			wide := fill(k*n, func(i int) int64 { return int64((me + 1) * (i + 1)) })
			finish(r, c.ReduceScatterBlock(longs(wide), longs(out), op.Sum))
			require.Equal(r.T, fill(k, func(i int) int64 { return sum * int64(me*k+i+1) }), out, "reduce_scatter_block")
			finish(r, c.Scan(longs(mine), longs(out), op.Sum, false))
			require.Equal(r.T, fill(k, func(i int) int64 { return int64((me+1)*(me+2)/2) * int64(i+1) }), out, "scan")
			if me > 0 {
				clear(out)
			}
			finish(r, c.Scan(longs(mine), longs(out), op.Sum, true))
			if me > 0 {
				require.Equal(r.T, fill(k, func(i int) int64 { return int64(me*(me+1)/2) * int64(i+1) }), out, "exscan")
			}
		}
	})
}

// Pairs with a gap (16 bytes of which 12 are data); of equal values the lower rank's
// index is the result.
func TestMaxloc(t *testing.T) {
	type pair struct {
		v float64
		i int32
		_ int32
	}
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		in := []pair{{v: float64(r.Rank % 2), i: int32(r.Rank)}, {v: -float64(r.Rank), i: int32(r.Rank)}}
		out := make([]pair, 2)
		typ := dtype.ByName("DOUBLE_INT")
		finish(r, c.Allreduce(p2p.Buf{Addr: unsafe.Pointer(&in[0]), Count: 2, Type: typ}, p2p.Buf{Addr: unsafe.Pointer(&out[0]), Count: 2, Type: typ}, op.Maxloc))
		want := int32(1)
		if r.Size == 1 {
			want = 0
		}
		assert.Equal(r.T, pair{v: float64(want), i: want}, out[0])
		assert.Equal(r.T, pair{}, out[1])
	})
}

// All ranks have the same bits whatever the order of arrival, although floating-point
// addition is not associative.
func TestAllreduceReproducible(t *testing.T) {
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		for _, k := range []int{1, 10_000} {
			in, out, all := make([]float64, k), make([]float64, k), make([]float64, k*r.Size)
			for i := range in {
				in[i] = 1 / float64(3+7*i+r.Rank*r.Rank)
			}
			d := dtype.ByName("DOUBLE")
			finish(r, c.Allreduce(p2p.Buf{Addr: unsafe.Pointer(&in[0]), Count: k, Type: d}, p2p.Buf{Addr: unsafe.Pointer(&out[0]), Count: k, Type: d}, op.Sum))
			send := p2p.Buf{Addr: unsafe.Pointer(&out[0]), Count: k, Type: d}
			finish(r, c.Allgather(&send, coll.Uniform(p2p.Buf{Addr: unsafe.Pointer(&all[0]), Count: k, Type: d}, r.Size)))
			for q := range r.Size {
				require.Equal(r.T, out, all[q*k:(q+1)*k])
			}
		}
	})
}

func TestBarriers(t *testing.T) {
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		// Every rank writes its round to shared memory before the barrier and finds
		// that of all ranks there after it.
		slots := unsafe.Slice((*int64)(unsafe.Pointer(&r.Engine.Job.Block(1)[0])), 64)
		for round := int64(1); round <= 300; round++ {
			slots[r.Rank] = round
			if c.Bar == nil || round%2 == 0 {
				finish(r, c.BarrierByMessages())
			} else if !c.Bar.Arrive() {
				r.Until(c.Bar.Passed, func() error { return c.Bar.Check(r.Engine) })
			}
			for q := range r.Size {
				require.GreaterOrEqual(r.T, slots[q], round)
			}
		}
	})
}

// Several collectives in flight do not mix.
func TestOverlapping(t *testing.T) {
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		var ops []*coll.Op
		outs := make([][]int64, 20)
		for k := range outs {
			outs[k] = make([]int64, 100)
			in := fill(100, func(i int) int64 { return int64(k + r.Rank) })
			ops = append(ops, c.Allreduce(longs(in), longs(outs[k]), op.Sum))
		}
		for k := len(ops) - 1; k >= 0; k-- {
			finish(r, ops[k])
			require.Equal(r.T, int64(k*r.Size+r.Size*(r.Size-1)/2), outs[k][99])
		}
	})
}

// A broadcast that is long enough for segments, of dense data and of every second item.
func TestLongBcast(t *testing.T) {
	every2, err := dtype.Vector(dtype.ByName("INT64_T"), 50_001, 1, 2)
	require.NoError(t, err)
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		for _, root := range []int{0, c.Size - 1} {
			v := fill(100_003, func(i int) int64 { return int64(i * (root + 3)) })
			want := slices.Clone(v)
			if r.Rank != root {
				clear(v)
			}
			finish(r, c.Bcast(longs(v), root))
			require.Equal(r.T, want, v)
			if r.Rank != root {
				for i := range v {
					v[i] = -1
				}
			}
			finish(r, c.Bcast(p2p.Buf{Addr: unsafe.Pointer(&v[0]), Count: 1, Type: every2}, root))
			for i := range v {
				if r.Rank != root && (i%2 == 1 || i > 100_000) {
					want[i] = -1
				}
			}
			require.Equal(r.T, want, v)
		}
	})
}
