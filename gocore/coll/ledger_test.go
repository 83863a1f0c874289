package coll_test

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// runBare runs f on communicators of several sizes that have no board: of 2 and 4 ranks over
// every transport, and on some that are divided into nodes.
func runBare(t *testing.T, f func(r *ranktest.Rank, c *coll.Comm)) {
	for _, n := range []int{2, 3, 4, 7} {
		for _, transport := range ranktest.Transports {
			if n == 3 && transport.Name != "ring" || n == 7 && transport.Name != "net" {
				continue
			}
			t.Run(fmt.Sprintf("ranks=%d,%s", n, transport.Name), func(t *testing.T) {
				transport.Run(t, n, func(r *ranktest.Rank) {
					debug.SetPanicOnFault(true)
					f(r, &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size})
				})
			})
		}
	}
	for i, nodes := range divided {
		transport := ranktest.Transports[i%len(ranktest.Transports)]
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

// end waits for a collective and returns its error, as package mpi does.
func end(r *ranktest.Rank, o *coll.Op) error {
	why := &engine.Reason{Call: job.CallCollective, Peer: -2, Tag: -1}
	for {
		switch err := r.Engine.Wait(why, o.Advance, o.Check); {
		case err == engine.ErrInterrupted:
		case err != nil:
			o.Abandon()
			return err
		case o.Err() != nil:
			return o.Err()
		default:
			return nil
		}
	}
}

// inStep fails the test if the communicator does not work after an error.
func inStep(r *ranktest.Rank, c *coll.Comm) {
	in, out := []int64{int64(r.Rank + 1)}, []int64{0}
	c.Calling(coll.Call{Kind: coll.KindAllreduce, Op: op.Sum, Elem: dtype.ByName("INT64_T").Kind(), Bytes: 8})
	require.NoError(r.T, end(r, c.Allreduce(longs(in), longs(out), op.Sum)))
	require.Equal(r.T, int64(r.Size*(r.Size+1)/2), out[0])
}

// start starts a collective of n integers for each rank.
func start(r *ranktest.Rank, c *coll.Comm, call coll.Call, n int) *coll.Op {
	long := func(parts int) p2p.Buf {
		b := longs(make([]int64, max(n*parts, 1)))
		b.Count = n
		return b
	}
	one, all := 1, r.Size
	call.Bytes, call.Elem = 8*n, dtype.ByName("INT64_T").Kind()
	a := coll.Args{Call: call}
	switch call.Kind {
	case coll.KindBarrier:
		a.Call = call
		a.Bytes, a.Elem = 0, dtype.KindNone
	case coll.KindBcast:
		a.Recv = long(one)
	case coll.KindGather, coll.KindAllgather:
		a.Send, a.Recv = long(one), long(all)
	case coll.KindScatter:
		a.Send, a.Recv = long(all), long(one)
	case coll.KindAlltoall:
		a.Send, a.Recv = long(all), long(all)
	case coll.KindReduceScatterBlock:
		a.Send, a.Recv = long(all), long(one)
		a.Send.Count *= r.Size
		a.Bytes *= r.Size
	default:
		a.Send, a.Recv = long(one), long(one)
	}
	if call.Kind >= coll.KindReduce && call.Op == 0 {
		a.Op = op.Sum
	}
	return c.Start(&a)
}

// mismatches are what rank 0 and the others call, or what rank i of n calls, and whether
// every rank has to get an error: in the other cases a rank may have what it needs.
var mismatches = []struct {
	name string
	call func(i, n int) coll.Call
	size func(i int) int
	all  bool
}{
	{name: "another collective", call: either(coll.Call{Kind: coll.KindAllreduce}, coll.Call{Kind: coll.KindBcast, Root: 1})},
	{name: "a barrier", call: either(coll.Call{Kind: coll.KindBarrier}, coll.Call{Kind: coll.KindAllreduce}), all: true},
	{name: "a barrier and roots", call: either(coll.Call{Kind: coll.KindBarrier}, coll.Call{Kind: coll.KindBcast, Root: 1})},
	{name: "another root", call: either(coll.Call{Kind: coll.KindBcast, Root: 1}, coll.Call{Kind: coll.KindBcast}), all: true},
	{name: "each is root", call: func(i, _ int) coll.Call { return coll.Call{Kind: coll.KindBcast, Root: i} }},
	{name: "each waits for the next", call: func(i, n int) coll.Call { return coll.Call{Kind: coll.KindBcast, Root: (i + 1) % n} }, all: true},
	{name: "each gathers", call: func(i, _ int) coll.Call { return coll.Call{Kind: coll.KindGather, Root: i} }, all: true},
	{name: "another size", call: same(coll.KindBcast), size: func(i int) int { return 3 + min(i, 1)*2 }},
	{name: "another size, long", call: same(coll.KindBcast), size: func(i int) int { return 300_000 * (1 - min(i, 1)) }},
	{name: "another size, long at the others", call: same(coll.KindAllreduce), size: func(i int) int { return 3 + 30_000*min(i, 1) }, all: true},
	{name: "another operation", call: either(coll.Call{Kind: coll.KindAllreduce, Op: op.Max}, coll.Call{Kind: coll.KindAllreduce, Op: op.Min}), all: true},
	{name: "nonblocking", call: either(coll.Call{Kind: coll.KindAllreduce, Nonblocking: true}, coll.Call{Kind: coll.KindAllreduce}), all: true},
	{name: "the last one scans", call: func(i, n int) coll.Call {
		if i == n-1 {
			return coll.Call{Kind: coll.KindScan}
		}
		return coll.Call{Kind: coll.KindAllgather}
	}},
	{name: "long parts", call: either(coll.Call{Kind: coll.KindAlltoall}, coll.Call{Kind: coll.KindReduceScatterBlock}), size: func(int) int { return 9000 }},
}

func either(first, others coll.Call) func(i, n int) coll.Call {
	return func(i, _ int) coll.Call {
		if i == 0 {
			return first
		}
		return others
	}
}

func same(k coll.Kind) func(i, n int) coll.Call {
	return func(int, int) coll.Call { return coll.Call{Kind: k} }
}

// Every rank's collective ends, with the error that says what was called where it can't
// complete, and the communicator remains usable.
func TestMismatchWithoutBoard(t *testing.T) {
	for _, m := range mismatches {
		t.Run(m.name, func(t *testing.T) {
			runBare(t, func(r *ranktest.Rank, c *coll.Comm) {
				inStep(r, c)
				failures := make([]int64, r.Size)
				n := 3
				if m.size != nil {
					n = m.size(r.Rank)
				}
				err := end(r, start(r, c, m.call(r.Rank, r.Size), n))
				if m.all {
					require.Error(r.T, err)
				}
				failed := []int64{0}
				if err != nil {
					failed[0] = 1
					assert.Contains(r.T, err.Error(), "the ranks do not call the same collective: this rank calls ")
				}
				part := longs(failures)
				part.Count = 1
				send := longs(failed)
				require.NoError(r.T, end(r, c.Allgather(&send, coll.Uniform(part, r.Size))))
				if m.name != "each is root" { // the messages may come when all have completed
					require.Contains(r.T, failures, int64(1))
				}
				inStep(r, c)
			})
		})
	}
}

// Whatever the ranks call, all calls end and the communicator remains usable.
func TestRandomMismatches(t *testing.T) {
	kinds := []coll.Kind{coll.KindBarrier, coll.KindBcast, coll.KindGather, coll.KindScatter, coll.KindAllgather, coll.KindAlltoall,
		coll.KindReduce, coll.KindAllreduce, coll.KindReduceScatterBlock, coll.KindScan, coll.KindExscan}
	sizes := []int{0, 3, 500, 5000, 40_000}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	runBare(t, func(r *ranktest.Rank, c *coll.Comm) {
		for round := range 15 {
			plan := rand.New(rand.NewPCG(seed, uint64(round))) // the same on all ranks
			own := rand.New(rand.NewPCG(seed, uint64(round)<<8|uint64(r.Rank+1)))
			call, n := coll.Call{Kind: kinds[plan.IntN(len(kinds))], Root: plan.IntN(r.Size)}, sizes[plan.IntN(len(sizes))]
			odd, all := plan.IntN(r.Size), plan.IntN(4) == 0 // one rank calls something else, or any
			if r.Rank == odd || all {
				call, n = coll.Call{Kind: kinds[own.IntN(len(kinds))], Root: own.IntN(r.Size)}, sizes[own.IntN(len(sizes))]
			}
			time.Sleep(time.Duration(own.IntN(3)) * time.Millisecond)
			_ = end(r, start(r, c, call, n))
			inStep(r, c)
		}
	})
}

// A rank whose nonblocking collective has to end with an error lets others know while its
// program waits for something else.
func TestMismatchInBackground(t *testing.T) {
	for _, transport := range ranktest.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			transport.Run(t, 4, func(r *ranktest.Rank) {
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				other := r.P2P.Open(2, r.Rank, r.World)
				call := coll.Call{Kind: coll.KindBcast, Nonblocking: true}
				if r.Rank == 0 { // it sends to rank 1 only, and rank 3 awaits nothing of it
					call = coll.Call{Kind: coll.KindGather, Root: 1, Nonblocking: true}
				}
				o := start(r, c, call, 3)
				r.Engine.AddBackground(o)
				var q p2p.Request
				var word [1]int64
				switch r.Rank {
				case 2: // the parent of rank 3
					other.Recv(&q, longs(word[:]), 3, 0)
					r.Until(q.Done, nil)
				case 3:
					require.Error(r.T, end(r, o))
					other.Send(&q, p2p.Standard, longs(word[:]), 2, 0)
					r.Until(q.Done, nil)
				}
				if err := end(r, o); r.Rank != 0 {
					require.Error(r.T, err)
				}
				inStep(r, c)
			})
		})
	}
}

// A rank that is far ahead does not remember the call, and still ends the wait for it.
func TestMismatchBehind(t *testing.T) {
	const ahead = 100
	runBare(t, func(r *ranktest.Rank, c *coll.Comm) {
		bcast := coll.Call{Kind: coll.KindBcast, Root: 1}
		if r.Rank == 0 {
			time.Sleep(20 * time.Millisecond)
			require.Error(r.T, end(r, start(r, c, coll.Call{Kind: coll.KindScatter, Root: 1}, 3)))
		} else {
			_ = end(r, start(r, c, bcast, 3))
		}
		for range ahead {
			require.NoError(r.T, end(r, start(r, c, bcast, 3)))
		}
		inStep(r, c)
	})
}

// A rank whose memory faults ends the collective of those that wait for it, and no other.
func TestGiveUpWithoutBoard(t *testing.T) {
	page := unix.Getpagesize()
	bad, err := unix.Mmap(-1, 0, 64*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(bad)) }()
	faulty := func(n int) p2p.Buf {
		return p2p.Buf{Addr: unsafe.Pointer(unsafe.SliceData(bad)), Count: n, Type: dtype.ByName("BYTE")}
	}
	runBare(t, func(r *ranktest.Rank, c *coll.Comm) {
		for _, n := range []int{8, 64 * page} {
			b := bytesOf(make([]byte, n))
			if r.Rank == 0 {
				b = faulty(n)
			}
			c.Calling(coll.Call{Kind: coll.KindBcast, Bytes: n, Nonblocking: true})
			var e *errs.Error
			require.ErrorAs(r.T, end(r, c.Bcast(b, 0)), &e)
			want := errs.Other
			if r.Rank == 0 {
				want = errs.Buffer
			}
			if e.Class != errs.Buffer { // a peer may be told of it with the data
				assert.Equal(r.T, want, e.Class, e)
			}
			inStep(r, c)
		}
	})
}

// A rank that has ended is the error of those that wait for it, and theirs is that of the
// ranks that wait for them.
func TestEndedRankWithoutBoard(t *testing.T) {
	for _, n := range []int{3, 4, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			ranktest.Run(t, n, true, func(r *ranktest.Rank) {
				if r.Rank == 0 {
					r.End(0)
					return
				}
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				r.Until(func() bool { return r.Engine.Gone(0) }, nil)
				require.Error(r.T, end(r, start(r, c, coll.Call{Kind: coll.KindBcast}, 3)))
			})
		})
	}
}

// Calls of which only the library knows the kind match all others, but a rank does not wait
// for one that has completed its own.
func TestUnknownCalls(t *testing.T) {
	for _, transport := range ranktest.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			transport.Run(t, 2, func(r *ranktest.Rank) {
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				if r.Rank == 0 {
					require.ErrorContains(r.T, end(r, c.BarrierByMessages()), "the collective can't complete: rank 1 of the communicator has completed its")
				} else {
					require.NoError(r.T, end(r, c.Bcast(longs(nil), 0)))
				}
				inStep(r, c)
			})
		})
	}
}

func bytesOf(b []byte) p2p.Buf {
	return p2p.Buf{Addr: unsafe.Pointer(unsafe.SliceData(b)), Count: len(b), Type: dtype.ByName("BYTE")}
}
