package coll_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
)

// across runs f on intercommunicators, over every transport: the first ranks are in one group, the others in the other.
func across(t *testing.T, f func(r *ranktest.Rank, c *coll.Comm)) {
	for _, shape := range [][2]int{{1, 1}, {1, 2}, {2, 2}, {3, 2}, {1, 4}} {
		for _, transport := range ranktest.Transports {
			t.Run(fmt.Sprintf("ranks=%d and %d,%s", shape[0], shape[1], transport.Name), func(t *testing.T) {
				transport.Run(t, shape[0]+shape[1], func(r *ranktest.Rank) {
					s := &coll.Sides{}
					for i := range r.Size {
						if (i < shape[0]) == (r.Rank < shape[0]) {
							s.Local = append(s.Local, i)
						} else {
							s.Remote = append(s.Remote, i)
						}
					}
					s.Me = r.Rank - s.Local[0]
					c := &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: r.Size, Sides: s}
					c.Chan.SetInternal()
					c.Chan.Name(s.Name)
					c.Listen()
					f(r, c)
				})
			})
		}
	}
}

// eachRoot calls f with the role of this rank for each root.
func eachRoot(c *coll.Comm, f func(root int, role coll.Role)) {
	for root := range c.Size {
		switch i := root - c.Sides.Remote[0]; {
		case root == c.Rank:
			f(-1, coll.IsRoot)
		case i >= 0 && i < len(c.Sides.Remote):
			f(i, coll.Peer)
		default:
			f(-1, coll.Bystander)
		}
	}
}

func TestMovementAcross(t *testing.T) {
	across(t, func(r *ranktest.Rank, c *coll.Comm) {
		s := c.Sides
		n := len(s.Remote)
		theirs := func(k int) []int64 {
			return fill(k*n, func(i int) int64 { return int64(s.Remote[0] + i/max(k, 1)) })
		}
		for _, k := range sizes {
			mine := fill(k, func(int) int64 { return int64(r.Rank) })
			all := make([]int64, k*n)
			part := func() *coll.Vec {
				b := longs(all)
				b.Count = k
				return coll.Uniform(b, n)
			}
			eachRoot(c, func(root int, role coll.Role) {
				v := fill(k, func(int) int64 { return int64(r.Rank) })
				finish(r, c.InterBcast(longs(v), role, root))
				if role == coll.Peer {
					require.Equal(r.T, fill(k, func(int) int64 { return int64(s.Remote[root]) }), v, "bcast")
				}
				clear(all)
				finish(r, c.InterGather(longs(mine), part(), role, root))
				if role == coll.IsRoot {
					require.Equal(r.T, theirs(k), all, "gather")
				}
				finish(r, c.InterScatter(part(), longs(v), role, root))
				if role == coll.Peer {
					require.Equal(r.T, fill(k, func(int) int64 { return int64(r.Rank) }), v, "scatter")
				}
			})
			clear(all)
			finish(r, c.InterAllgather(longs(mine), part()))
			require.Equal(r.T, theirs(k), all, "allgather")
			out := fill(k*n, func(i int) int64 { return int64(100*r.Rank + i/max(k, 1)) })
			b := longs(out)
			b.Count = k
			finish(r, c.InterAlltoall(coll.Uniform(b, n), part()))
			require.Equal(r.T, fill(k*n, func(i int) int64 { return int64(100*(s.Remote[0]+i/max(k, 1)) + s.Me) }), all, "alltoall")
		}
	})
}

func TestReductionsAcross(t *testing.T) {
	across(t, func(r *ranktest.Rank, c *coll.Comm) {
		s := c.Sides
		ranks := 0
		for _, remote := range s.Remote {
			ranks += remote
		}
		sum := func(k int) []int64 {
			return fill(k, func(i int) int64 { return int64(ranks + i*len(s.Remote)) })
		}
		for _, k := range sizes {
			mine := fill(k, func(i int) int64 { return int64(r.Rank + i) })
			eachRoot(c, func(root int, role coll.Role) {
				got := make([]int64, k)
				finish(r, c.InterReduce(longs(mine), longs(got), op.Sum, role, root))
				if role == coll.IsRoot {
					require.Equal(r.T, sum(k), got, "reduce")
				}
			})
			got := make([]int64, k)
			finish(r, c.InterAllreduce(longs(mine), longs(got), op.Sum))
			require.Equal(r.T, sum(k), got, "allreduce")
		}
		// The blocks of a group are as long as it has others.
		each := len(s.Remote)
		whole := sum(each * len(s.Local))
		counts := make([]int, len(s.Local))
		for i := range counts {
			counts[i] = each
		}
		mine, got := fill(len(whole), func(i int) int64 { return int64(r.Rank + i) }), make([]int64, each)
		finish(r, c.InterReduceScatter(longs(mine), longs(got), counts, op.Sum))
		require.Equal(r.T, whole[s.Me*each:(s.Me+1)*each], got)
	})
}

// Errors name ranks as the program does: by group, and the root of a call as that call has it.
func TestErrorsNameRanksByGroup(t *testing.T) {
	across(t, func(r *ranktest.Rank, c *coll.Comm) {
		s := c.Sides
		assert.Equal(r.T, fmt.Sprintf("rank %d of the local group", s.Me), s.Name(r.Rank))
		assert.Equal(r.T, "rank 0 of the remote group", s.Name(s.Remote[0]))
		// Each group takes a rank of the other one for the root.
		c.Calling(coll.Call{Kind: coll.KindBcast, Root: s.Remote[0], Bytes: 8})
		err := end(r, c.InterBcast(longs(make([]int64, 1)), coll.Peer, 0))
		require.Error(r.T, err)
		assert.Contains(r.T, err.Error(), "this rank calls Bcast of 8 bytes with root 0 of the remote group, rank 0 of the remote group Bcast of 8 bytes with root 0 of the local group")
		// Each rank takes itself for the root of a gather, and waits for the others.
		part := longs(make([]int64, len(s.Remote)))
		part.Count = 1
		c.Calling(coll.Call{Kind: coll.KindGather, Root: r.Rank, Bytes: 8})
		err = end(r, c.InterGather(p2p.Buf{}, coll.Uniform(part, len(s.Remote)), coll.IsRoot, 0))
		require.Error(r.T, err)
		assert.Regexp(r.T, "this rank calls Gather of 8 bytes with root MPI.ROOT, rank . of the remote group Gather of 8 bytes with root MPI.ROOT", err.Error())
		finish(r, c.BarrierByMessages())
	})
}
