package coll_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"unsafe"

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

// inGroups runs f on communicators whose boards are in groups of eight ranks.
func inGroups(t *testing.T, sizes []int, f func(r *ranktest.Rank, c *coll.Comm)) {
	for _, n := range sizes {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			ranktest.Run(t, n, true, func(r *ranktest.Rank) {
				debug.SetPanicOnFault(true)
				c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size}
				c.UseBlock(r.Engine, 0)
				c.DivideBoard(job.LeastBarrierGroup)
				f(r, c)
			})
		})
	}
}

// onBoard makes a call by the board, and returns its error.
func onBoard(r *ranktest.Rank, c *coll.Comm, a coll.Args) *errs.Error {
	s := c.BoardOp(&a)
	require.NotNil(r.T, s)
	why := &engine.Reason{Call: job.CallCollective, Peer: -2, Tag: -1}
	for {
		var e *errs.Error
		switch err := r.Engine.Wait(why, s.Advance, s.Check); {
		case err == engine.ErrInterrupted:
			continue
		case err == nil:
			e = s.Err()
		default:
			require.True(r.T, errors.As(err, &e))
			s.Abandon()
		}
		return e
	}
}

func allreduce(send, recv p2p.Buf, o op.Op) coll.Args {
	return coll.Args{Call: coll.Call{Kind: coll.KindAllreduce, Bytes: send.Bytes(), Elem: send.Type.Kind(), Op: o}, Send: send, Recv: recv}
}

func allgather(send, part p2p.Buf) coll.Args {
	return coll.Args{Call: coll.Call{Kind: coll.KindAllgather, Bytes: send.Bytes(), Elem: send.Type.Kind()}, Send: send, Recv: part}
}

func TestBoardGroups(t *testing.T) {
	every2, err := dtype.Vector(dtype.ByName("INT64_T"), 3, 1, 2)
	require.NoError(t, err)
	inGroups(t, []int{2, 8, 9, 15, 17, 24, 70}, func(r *ranktest.Rank, c *coll.Comm) {
		n, me := r.Size, r.Rank
		for round := range 12 {
			for _, k := range []int{0, 1, 6, 7, 40} { // 48 bytes are in the slot's line
				mine := fill(k, func(i int) int64 { return int64((me + 1) * (i + 1 + round)) })
				out := make([]int64, k)
				require.Nil(r.T, onBoard(r, c, allreduce(longs(mine), longs(out), op.Sum)))
				require.Equal(r.T, fill(k, func(i int) int64 { return int64(n * (n + 1) / 2 * (i + 1 + round)) }), out, "allreduce")

				all := make([]int64, k*n)
				part := longs(all)
				part.Count = k
				require.Nil(r.T, onBoard(r, c, allgather(longs(mine), part)))
				require.Equal(r.T, fill(k*n, func(i int) int64 { return int64((i/k + 1) * (i%k + 1 + round)) }), all, "allgather")
			}
			// Every second element, and the call between two that are not divided.
			mine := fill(6, func(i int) int64 { return int64(me*10 + i) })
			all := make([]int64, 6*n)
			part := longs(all)
			part.Count, part.Type = 1, every2
			send := p2p.Buf{Addr: unsafe.Pointer(&mine[0]), Count: 1, Type: every2}
			a := allgather(send, part)
			extent := every2.Extent() / 8 // 5: the parts begin where the last one's last element ends
			require.Nil(r.T, onBoard(r, c, a))
			for q := range n {
				for i := range 3 {
					require.Equal(r.T, int64(q*10+2*i), all[q*extent+2*i])
				}
			}
			root := round % n
			v := []int64{int64(me)}
			require.Nil(r.T, onBoard(r, c, coll.Args{Call: coll.Call{Kind: coll.KindBcast, Root: root, Bytes: 8, Elem: longs(v).Type.Kind()}, Recv: longs(v)}))
			require.Equal(r.T, int64(root), v[0])
		}
	})
}

// All ranks have the same bits.
func TestBoardGroupsReproducible(t *testing.T) {
	d := dtype.ByName("DOUBLE")
	inGroups(t, []int{9, 24}, func(r *ranktest.Rank, c *coll.Comm) {
		in, out, all := []float64{1 / float64(3+r.Rank*r.Rank)}, []float64{0}, make([]float64, r.Size)
		buf := func(v []float64) p2p.Buf { return p2p.Buf{Addr: unsafe.Pointer(&v[0]), Count: 1, Type: d} }
		require.Nil(r.T, onBoard(r, c, allreduce(buf(in), buf(out), op.Sum)))
		require.Nil(r.T, onBoard(r, c, allgather(buf(out), buf(all))))
		for _, v := range all {
			require.Equal(r.T, out[0], v)
		}
	})
}

// Sums of numbers of two bytes are rounded once. In groups 1 + 7/640 would be rounded to 1 + 1/128, and the result to 1 + 4/128.
func TestBoardGroupsRoundOnce(t *testing.T) {
	h := dtype.ByName("BFLOAT16_T")
	inGroups(t, []int{24}, func(r *ranktest.Rank, c *coll.Comm) {
		in, out := []uint16{0x3acd}, []uint16{0} // 1/640, or nearly
		if r.Rank == 0 {
			in[0] = 0x3f80 // 1
		}
		buf := func(v []uint16) p2p.Buf { return p2p.Buf{Addr: unsafe.Pointer(&v[0]), Count: 1, Type: h} }
		require.Nil(r.T, onBoard(r, c, allreduce(buf(in), buf(out), op.Sum)))
		require.Equal(r.T, uint16(0x3f85), out[0]) // 1 + 5/128, the nearest number to 1 + 4.6/128
	})
}

// One rank makes another call, by its kind, its size, or only by its exact size. All ranks end, and say which. The calls after that would
// not match either.
func TestBoardGroupsMismatch(t *testing.T) {
	for _, odd := range []int{0, 3, 8, 10} {
		for name, other := range map[string]func(v []int64) coll.Args{
			"kind":       func(v []int64) coll.Args { return allgather(longs(v[:1]), longs(v)) },
			"size":       func(v []int64) coll.Args { return allreduce(longs(v[:2]), longs(v[:2]), op.Sum) },
			"exact size": func(v []int64) coll.Args { return allreduce(longs(v), longs(v), op.Sum) }, // 4 and 4 + 127 longs
		} {
			t.Run(fmt.Sprintf("%s,rank=%d", name, odd), func(t *testing.T) {
				inGroups(t, []int{11}, func(r *ranktest.Rank, c *coll.Comm) {
					v, out := make([]int64, 131), make([]int64, 4)
					a := allreduce(longs(v[:4]), longs(out), op.Sum)
					if r.Rank == odd {
						a = other(v)
					}
					e := onBoard(r, c, a)
					require.NotNil(r.T, e, "rank %d", r.Rank)
					require.NotEqual(r.T, errs.ProcFailed, e.Class)
					if r.Rank != odd {
						require.Contains(r.T, e.Detail, fmt.Sprintf("rank %d", odd))
					}
				})
			})
		}
	}
}

// The memory of one rank can't be read. All ranks end with an error that names it, and the next call is right.
func TestBoardGroupsFault(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer unix.Munmap(mem)
	for _, bad := range []int{0, 3, 8, 10} {
		t.Run(fmt.Sprintf("rank=%d", bad), func(t *testing.T) {
			inGroups(t, []int{11}, func(r *ranktest.Rank, c *coll.Comm) {
				for range 10 {
					v, out := []int64{1}, []int64{0}
					send := longs(v)
					if r.Rank == bad {
						send.Addr = unsafe.Pointer(&mem[0])
					}
					e := onBoard(r, c, allreduce(send, longs(out), op.Sum))
					require.NotNil(r.T, e)
					if r.Rank != bad {
						require.Contains(r.T, e.Detail, fmt.Sprintf("rank %d", bad))
					}
					require.Nil(r.T, onBoard(r, c, allreduce(longs(v), longs(out), op.Sum)))
					require.Equal(r.T, int64(r.Size), out[0])
				}
			})
		})
	}
}

// A rank ends before it has called, or after it has published. In the second case all others complete, also without their leader.
func TestBoardGroupsEnd(t *testing.T) {
	for _, dead := range []int{0, 3, 8, 10} {
		for _, published := range []bool{false, true} {
			t.Run(fmt.Sprintf("rank=%d,published=%t", dead, published), func(t *testing.T) {
				inGroups(t, []int{11}, func(r *ranktest.Rank, c *coll.Comm) {
					v, out := []int64{1}, []int64{0}
					for range 3 {
						require.Nil(r.T, onBoard(r, c, allreduce(longs(v), longs(out), op.Sum)))
					}
					a := allreduce(longs(v), longs(out), op.Sum)
					if r.Rank == dead {
						if published {
							s := c.BoardOp(&a)
							r.Until(func() bool { s.Advance(); return s.Contributed() }, nil)
						}
						r.End(dead)
						return
					}
					e := onBoard(r, c, a)
					if published {
						require.Nil(r.T, e)
						require.Equal(r.T, int64(r.Size), out[0])
						return
					}
					require.NotNil(r.T, e)
					require.Equal(r.T, errs.ProcFailed, e.Class, e.Detail)
					require.Contains(r.T, e.Detail, fmt.Sprintf("rank %d", dead))
				})
			})
		}
	}
}

// A rank that waits knows for whom: by what it has found without a look at the slots of others, and by a look.
func TestBoardGroupsAwaited(t *testing.T) {
	const late = 9
	var looked sync.WaitGroup
	looked.Add(11 - 1)
	inGroups(t, []int{11}, func(r *ranktest.Rank, c *coll.Comm) {
		v, out := []int64{1}, []int64{0}
		a := allreduce(longs(v), longs(out), op.Sum)
		if r.Rank == late {
			looked.Wait()
			require.Nil(r.T, onBoard(r, c, a))
			return
		}
		s := c.BoardOp(&a)
		next := func() int {
			switch r.Rank {
			case 0:
				return 8
			case 8:
				return late
			}
			return r.Rank / 8 * 8
		}()
		r.Until(func() bool { return s.Advance() || s.Pending() == late && s.Awaited() == next }, nil)
		require.Equal(r.T, late, s.Pending())
		looked.Done()
		r.Until(s.Advance, s.Check)
		require.Nil(r.T, s.Err())
		require.Equal(r.T, int64(r.Size), out[0])
	})
}
