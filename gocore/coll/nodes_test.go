package coll_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// layout is a buffer with a part for each rank: parts in any order, with gaps, of integers that
// follow each other or are every second one.
func layout(plan *rand.Rand, counts []int, sparse bool) (mem []int64, v *coll.Vec) {
	v = &coll.Vec{Counts: counts, Displs: make([]int, len(counts)), Type: dtype.ByName("INT64_T")}
	stride := 1
	if sparse {
		t, err := dtype.Vector(dtype.ByName("INT64_T"), 1, 1, 2)
		if err == nil {
			t, err = dtype.Resized(t, 0, 16)
		}
		if err != nil {
			panic(err)
		}
		v.Type, stride = t, 2
	}
	at := plan.IntN(3)
	for _, r := range plan.Perm(len(counts)) {
		v.Displs[r] = at
		at += counts[r] + plan.IntN(2)*plan.IntN(4)
	}
	mem = make([]int64, stride*(at+1))
	v.Addr = unsafe.Pointer(&mem[0])
	return mem, v
}

// part returns the integers of a rank's part.
func partOf(mem []int64, v *coll.Vec, r int) []int64 {
	stride := v.Type.Extent() / 8
	out := make([]int64, v.Counts[r])
	for i := range out {
		out[i] = mem[(v.Displs[r]+i)*stride]
	}
	return out
}

func fillPart(mem []int64, v *coll.Vec, r int, value func(i int) int64) {
	stride := v.Type.Extent() / 8
	for i := range v.Counts[r] {
		mem[(v.Displs[r]+i)*stride] = value(i)
	}
}

// Collectives with a count for each rank: empty parts, short ones, and ones that are too long
// for a parcel, in memory of any layout.
func TestDifferentCounts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	run(t, func(r *ranktest.Rank, c *coll.Comm) {
		n, me := r.Size, r.Rank
		for round := range 12 {
			plan := rand.New(rand.NewPCG(seed, uint64(round))) // the same on all ranks
			counts := make([][]int, n)                         // [from][to]
			for i := range counts {
				counts[i] = make([]int, n)
				for k := range counts[i] {
					counts[i][k] = []int{0, 1, 3, 500, 512, 513, 3000}[plan.IntN(7)]
				}
			}
			root, sparse := plan.IntN(n), plan.IntN(2) == 0
			value := func(from, to int) func(i int) int64 {
				return func(i int) int64 { return int64(from*1_000_000 + to*10_000 + i) }
			}
			column := make([]int, n)
			for i := range n {
				column[i] = counts[i][me]
			}
			in, rv := layout(plan, column, sparse)
			out, sv := layout(plan, counts[me], !sparse)
			for i := range n {
				fillPart(out, sv, i, value(me, i))
			}
			finish(r, c.Alltoall(sv, rv, false))
			for i := range n {
				require.Equal(r.T, fill(counts[i][me], value(i, me)), partOf(in, rv, i), "alltoallv from %d", i)
			}

			row := counts[root]
			all, av := layout(plan, row, sparse)
			mine := fill(row[me], value(me, me))
			send := longs(mine)
			finish(r, c.Allgather(&send, av))
			for i := range n {
				require.Equal(r.T, fill(row[i], value(i, i)), partOf(all, av, i), "allgatherv of %d", i)
			}
			if me != root {
				clear(all)
				av = nil
			}
			back := make([]int64, row[me])
			recv := longs(back)
			finish(r, c.Scatter(av, &recv, root))
			require.Equal(r.T, mine, back, "scatterv")
			if me == root {
				clear(all)
			}
			finish(r, c.Gather(&send, av, root))
			if me == root {
				for i := range n {
					require.Equal(r.T, fill(row[i], value(i, i)), partOf(all, av, i), "gatherv of %d", i)
				}
			}
		}
	})
}

// A part that is longer than its receiver expects is that rank's error, whether it comes in a
// parcel or straight, and the others are not disturbed.
func TestTooLongParts(t *testing.T) {
	runDivided(t, func(r *ranktest.Rank, c *coll.Comm) {
		for _, k := range []int{3, 2000} { // what the last rank sends, in place of 1
			mine := make([]int64, 1)
			if r.Rank == r.Size-1 {
				mine = make([]int64, k)
			}
			send := longs(mine)
			var all *coll.Vec
			if r.Rank == 0 {
				room := make([]int64, r.Size)
				part := longs(room)
				part.Count = 1
				all = coll.Uniform(part, r.Size)
			}
			call := coll.Call{Kind: coll.KindGatherv, Bytes: -1}
			c.Calling(call)
			err := end(r, c.Gather(&send, all, 0))
			if r.Rank == 0 {
				var e *errs.Error
				require.ErrorAs(r.T, err, &e)
				assert.Equal(r.T, errs.Truncate, e.Class, e)
			}
			inStep(r, c)
		}
	})
}

// The number of messages between nodes depends on the number of nodes.
func TestMessagesBetweenNodes(t *testing.T) {
	for _, nodes := range [][]int{{0, 0, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1}, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			n, count := len(nodes), nodes[len(nodes)-1]+1
			pairs := count * (count - 1)
			most := map[coll.Kind]int{coll.KindBarrier: pairs, coll.KindBcast: count - 1, coll.KindGather: count - 1, coll.KindScatter: count - 1,
				coll.KindAllgather: pairs, coll.KindAlltoall: pairs, coll.KindReduce: count - 1, coll.KindAllreduce: pairs,
				coll.KindReduceScatterBlock: pairs, coll.KindScan: pairs, coll.KindExscan: pairs}
			if nodes[1] == 1 || n <= 4 { // the ranks of a node are not contiguous, or scans are flat
				delete(most, coll.KindScan)
				delete(most, coll.KindExscan)
			}
			across := func(from, to int) bool { return nodes[from] != nodes[to] }
			var met atomic.Int32
			ranktest.RunNet(t, n, fabric.Caps{}, func(r *ranktest.Rank) {
				meetings := int32(0)
				meet := func() {
					meetings++
					met.Add(1)
					r.Until(func() bool { return met.Load() >= meetings*int32(n) }, nil)
				}
				measure := func(c *coll.Comm, kind coll.Kind) int {
					meet()
					before := r.Net.Sent(across)
					meet()
					require.NoError(r.T, end(r, start(r, c, coll.Call{Kind: kind}, 1)))
					meet()
					return r.Net.Sent(across) - before
				}
				flat := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: n}
				c := &coll.Comm{Chan: r.P2P.Open(2, r.Rank, r.World), Rank: r.Rank, Size: n}
				c.Divide(nodes)
				for kind := coll.KindBarrier; kind <= coll.KindExscan; kind++ {
					if limit, has := most[kind]; has {
						was, is := measure(flat, kind), measure(c, kind)
						assert.LessOrEqual(r.T, is, limit, kind)
						if r.Rank == 0 {
							r.T.Logf("%s: %d messages between nodes, %d if it is flat", kind, is, was)
						}
					}
				}
			})
		})
	}
}

// The end of a rank in another one's place, seen by all ranks that wait in the collective.
func TestEndedRankOfNodes(t *testing.T) {
	for _, ends := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprint(ends), func(t *testing.T) {
			ranktest.RunNet(t, 6, fabric.Caps{}, func(r *ranktest.Rank) {
				if r.Rank == ends {
					r.End(ends)
					return
				}
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				c.Divide([]int{0, 0, 0, 1, 1, 1})
				for range 2 {
					err := end(r, start(r, c, coll.Call{Kind: coll.KindAllreduce}, 3))
					var e *errs.Error
					require.ErrorAs(r.T, err, &e)
					assert.Equal(r.T, errs.ProcFailed, e.Class, e)
					assert.Contains(r.T, err.Error(), fmt.Sprintf("rank %d", ends))
				}
			})
		})
	}
}

// Floating-point sums have the same bits on all ranks; see TestAllreduceReproducible for short
// ones.
func TestLongSumsAreEqual(t *testing.T) {
	runDivided(t, func(r *ranktest.Rank, c *coll.Comm) {
		k := 60_000
		in, out := make([]float64, k), make([]float64, k)
		for i := range in {
			in[i] = 1 / float64(3+7*i+r.Rank*r.Rank)
		}
		d := dtype.ByName("DOUBLE")
		buf := func(v []float64) p2p.Buf { return p2p.Buf{Addr: unsafe.Pointer(&v[0]), Count: k, Type: d} }
		finish(r, c.Allreduce(buf(in), buf(out), op.Sum))
		root := make([]float64, k)
		copy(root, out)
		finish(r, c.Bcast(buf(root), 0))
		require.Equal(r.T, root, out)
	})
}
