package coll_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// edge is an edge of a random graph: the same at both ends.
type edge struct{ from, to, count int }

// number is the i-th number that goes along the k-th edge of a graph.
func number(k, i int) int64 { return int64(1_000_000*(k+1) + i) }

// neighborhood returns the edges of a rank in a graph, and what is to arrive.
func neighborhood(graph []edge, me int, kind coll.Kind, count int, spaced *dtype.Type) (out, in []coll.Edge, got, want [][]int64) {
	// Every other number of a buffer, if spaced is given.
	side := func(n int, f func(i int) int64) ([]int64, p2p.Buf) {
		if spaced == nil || n == 0 {
			v := fill(n, f)
			return v, longs(v)
		}
		v := fill(2*n, func(i int) int64 { return f(i / 2) })
		return v, p2p.Buf{Addr: unsafe.Pointer(&v[0]), Count: n, Type: spaced}
	}
	_, same := side(count, func(i int) int64 { return number(me, i) })
	for k, e := range graph {
		if e.from == me {
			buf := same
			if kind == coll.KindNeighborAlltoall {
				_, buf = side(e.count, func(i int) int64 { return number(k, i) })
			}
			out = append(out, coll.Edge{Rank: e.to, Buf: buf})
		}
		if e.to == me {
			n, sender := e.count, k
			if kind == coll.KindNeighborAllgather {
				n, sender = count, e.from
			}
			v, buf := side(n, func(int) int64 { return -1 })
			in = append(in, coll.Edge{Rank: e.from, Buf: buf})
			expected := fill(len(v), func(i int) int64 { return number(sender, i) })
			if spaced != nil {
				expected = fill(len(v), func(i int) int64 {
					if i%2 == 1 {
						return -1
					}
					return number(sender, i/2)
				})
			}
			got, want = append(got, v), append(want, expected)
		}
	}
	return out, in, got, want
}

// Along each edge of a graph goes what its sender has for it, whatever goes along the others.
func TestNeighbors(t *testing.T) {
	vector, err := dtype.Vector(dtype.ByName("INT64_T"), 1, 1, 1)
	require.Nil(t, err)
	spaced, err := dtype.Resized(vector, 0, 16)
	require.Nil(t, err)
	for _, n := range []int{2, 3, 4, 7} {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			ranktest.Run(t, n, true, func(r *ranktest.Rank) {
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				c.UseBlock(r.Engine, 0)
				random := rand.New(rand.NewPCG(1, uint64(n))) // the same at all ranks
				for turn := range 60 {
					sizes := []int{0, 1, 2, 500, 2000, 30_000}[:1+random.IntN(6)]
					edges := random.IntN(4 * n)
					if turn%20 == 19 {
						edges, sizes = 200*n, sizes[:min(len(sizes), 3)] // no table of theirs fits a slot
					}
					graph := make([]edge, edges)
					for i := range graph {
						graph[i] = edge{random.IntN(n), random.IntN(n), sizes[random.IntN(len(sizes))]}
					}
					count := sizes[random.IntN(len(sizes))]
					for _, kind := range []coll.Kind{coll.KindNeighborAllgather, coll.KindNeighborAlltoall} {
						for _, typ := range []*dtype.Type{nil, spaced} {
							out, in, got, want := neighborhood(graph, r.Rank, kind, count, typ)
							d := c.SingleCopyNeighbor(coll.Call{Kind: kind, Bytes: -1}, out, in)
							if d == nil { // the kernel does not allow copies
								finish(r, c.Neighbor(out, in, false))
							} else {
								r.Until(d.Advance, d.Check)
								require.Nil(r.T, d.Err())
								d.Release()
							}
							require.Equal(r.T, want, got, "%s in turn %d", kind, turn)
						}
					}
				}
			})
		})
	}
}

// Wrong arguments of one rank are its own error, and the next call works.
func TestNeighborsWhoDiffer(t *testing.T) {
	for _, long := range []int{1, 1000, 30_000} {
		t.Run(fmt.Sprint(long), func(t *testing.T) {
			ranktest.Run(t, 3, true, func(r *ranktest.Rank) {
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				c.UseBlock(r.Engine, 0)
				next, before := (r.Rank+1)%3, (r.Rank+2)%3
				exchange := func(kind coll.Kind, out, in []coll.Edge) *errs.Error {
					d := c.SingleCopyNeighbor(coll.Call{Kind: kind, Bytes: -1}, out, in)
					require.NotNil(r.T, d)
					r.Until(d.Advance, d.Check)
					e := d.Err()
					d.Release()
					return e
				}
				for range 3 {
					for _, kind := range []coll.Kind{coll.KindNeighborAllgather, coll.KindNeighborAlltoall} {
						room := 2 * long
						if r.Rank == 1 {
							room = long
						}
						got := make([]int64, room)
						e := exchange(kind, []coll.Edge{{Rank: next, Buf: longs(fill(2*long, func(i int) int64 { return int64(i) }))}}, []coll.Edge{{Rank: before, Buf: longs(got)}})
						if r.Rank == 1 {
							require.NotNil(r.T, e)
							assert.Equal(r.T, errs.Truncate, e.Class)
							assert.Contains(r.T, e.Error(), "rank 0")
						} else {
							require.Nil(r.T, e)
						}
						assert.Equal(r.T, fill(room, func(i int) int64 { return int64(i) }), got)
					}
					// rank 2 awaits two messages of rank 1, which knows one edge
					in := []coll.Edge{{Rank: before, Buf: longs(make([]int64, long))}}
					if r.Rank == 2 {
						in = append(in, in[0])
					}
					e := exchange(coll.KindNeighborAlltoall, []coll.Edge{{Rank: next, Buf: longs(make([]int64, long))}}, in)
					if r.Rank == 2 {
						require.NotNil(r.T, e)
						assert.Equal(r.T, errs.Topology, e.Class)
					} else {
						require.Nil(r.T, e)
					}
				}
			})
		})
	}
}
