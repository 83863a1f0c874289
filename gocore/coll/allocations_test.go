package coll_test

import (
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/ranktest"
)

// Blocking collectives of two ranks allocate next to nothing: garbage that is not yet collected goes through the caches, and
// has taken up to half of the time of a call.
func TestCollectivesAllocateNothing(t *testing.T) {
	const calls = 400
	for _, c := range []struct {
		name string
		kind coll.Kind
		op   op.Op
		n    int     // numbers of a part
		most float64 // allocations a call, of both ranks
	}{
		{"board", coll.KindBcast, 0, 1, 0.5},
		{"board", coll.KindAllreduce, op.Sum, 1, 0.5},
		{"board", coll.KindAllgather, 0, 1, 0.5},
		{"copies", coll.KindBcast, 0, 8192, 0.5},
		{"copies", coll.KindGather, 0, 8192, 0.5},
		{"copies", coll.KindScatter, 0, 8192, 0.5},
		{"copies", coll.KindAllgather, 0, 8192, 0.5},
		{"copies", coll.KindAlltoall, 0, 8192, 0.5},
		{"parts", coll.KindGatherv, 0, 1, 0.5},
		{"parts", coll.KindScatterv, 0, 1, 0.5},
		{"parts", coll.KindAllgatherv, 0, 1, 0.5},
		{"parts", coll.KindAlltoallv, 0, 1, 0.5},
		{"parts", coll.KindAlltoallv, 0, 8192, 0.5},
		{"neighbors", coll.KindNeighborAllgather, 0, 1, 0.5},
		{"neighbors", coll.KindNeighborAlltoall, 0, 1, 0.5},
		{"neighbors", coll.KindNeighborAlltoall, 0, 8192, 0.5},
		{"copies", coll.KindReduce, op.Sum, 8192, 8}, // lists of operands and of temporary memory
	} {
		t.Run(c.name+" "+c.kind.String(), func(t *testing.T) {
			var together [3]sync.WaitGroup
			for i := range together {
				together[i].Add(2)
			}
			ranktest.Run(t, 2, true, func(r *ranktest.Rank) {
				comm := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				comm.UseBlock(r.Engine, 0)
				send, recv := make([]int64, 2*c.n), make([]int64, 2*c.n)
				a := coll.Args{Call: coll.Call{Kind: c.kind, Bytes: 8 * c.n, Elem: longs(send).Type.Kind(), Op: c.op}, Send: longs(send[:c.n]), Recv: longs(recv[:c.n])}
				counts, displs := []int{c.n, c.n}, []int{0, c.n}
				why := engine.Reason{Call: job.CallCollective, Peer: -2, Tag: -1}
				wait := func(advance func() bool, check func() error, err func() *errs.Error) {
					for r.Engine.Wait(&why, advance, check) == engine.ErrInterrupted {
					}
					require.Nil(r.T, err())
				}
				other := 1 - r.Rank
				out := []coll.Edge{{Rank: other, Buf: longs(send[:c.n])}, {Rank: r.Rank, Buf: longs(send[c.n:])}, {Rank: other, Buf: longs(send[c.n:])}}
				in := []coll.Edge{{Rank: other, Buf: longs(recv[:c.n])}, {Rank: other, Buf: longs(recv[c.n:])}}
				repeat := func() {
					for range calls {
						if c.name == "neighbors" {
							a.Bytes = -1
							d := comm.SingleCopyNeighbor(a.Call, out, in)
							wait(d.AdvanceFunc, d.CheckFunc, d.Err)
							d.Release()
						} else if c.name == "parts" {
							a.Bytes = -1
							v := coll.Vec{Addr: unsafe.Pointer(&recv[0]), Counts: counts, Displs: displs, Type: longs(recv).Type}
							d := comm.SingleCopyOpV(&a, &v, &v)
							if d == nil { // see trialAfter
								a.Kind = coll.KindAllgatherv
								d = comm.SingleCopyOpV(&a, &v, &v)
								a.Kind = c.kind
							}
							wait(d.AdvanceFunc, d.CheckFunc, d.Err)
							d.Release()
						} else if s := comm.BoardOp(&a); s != nil {
							wait(s.AdvanceFunc, s.CheckFunc, s.Err)
							s.Release()
						} else {
							d := comm.SingleCopyOp(&a)
							wait(d.AdvanceFunc, d.CheckFunc, d.Err)
							d.Release()
						}
					}
				}
				meet := func(i int) {
					together[i].Done()
					together[i].Wait()
				}
				repeat() // whose first calls allocate
				var before, after runtime.MemStats
				meet(0)
				if r.Rank == 0 {
					runtime.ReadMemStats(&before)
				}
				meet(1)
				repeat()
				meet(2)
				if r.Rank == 0 {
					runtime.ReadMemStats(&after)
					assert.Less(t, float64(after.Mallocs-before.Mallocs)/calls, c.most)
				}
			})
		})
	}
}
