package mpi

import (
	"cmp"
	"slices"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Communicators that all ranks of another one make together: by Split, Dup, Create and Merge.
//
// # Protocol
//
// In round one each rank contributes a proposal. From all of them each rank finds the members of its new communicator, and
// takes the context that the first of them has proposed.
//
// If the ranks of the old communicator share memory, and the call is a blocking one, that round is a collective on its
// board (coll.Comm.Together), and the only one: who may be the first member proposes a barrier block, too, which is cleared
// and which nobody uses. Members use that of the first one as soon as they have all proposals. The others keep theirs for
// the next call (block.go). Otherwise round one is an allgather by messages, and round two a broadcast in the new communicator:
// its first member takes a block if the members share memory, and tells them which.
//
// A rank that fails in a round on the board, is interrupted there or finds that another has given it up, gives up that round
// and those that are left (Skip). So the ranks' counts of rounds agree. Those that still wait for it end with an error. A rank
// that has completed all rounds before another gives up has a communicator that lacks a member: its calls wait for that
// one. So a rank that gives up after it has proposed a block can't know whether others use it: that block is lost, as is the one
// of a communicator that lacks a member. Only if the ranks have made different calls, of which all learn, is none lost.
//
// Windows have more rounds (wincreate.go). Files begin with a duplicate. Free is a barrier, in the same way.

// proposal is what each rank contributes when communicators are made.
type proposal struct {
	ctx        int64
	color, key int64
	block      int64 // -1: none
	call       call
}

// call is what makes a communicator.
type call int64

const (
	callSplit call = iota
	callDup
	callCreate
	callMerge
)

func (c call) String() string { return [...]string{"Split", "Dup", "Create", "Merge"}[c] }

// alike returns an error if ranks have made different calls. They all find the same.
func alike(all []proposal) *errs.Error {
	for r := range all {
		if all[r].call != all[0].call {
			return errs.New(errs.Other, "the ranks make or free communicators or windows by different calls: rank 0 of the communicator by %v, rank %d by %v",
				all[0].call, r, all[r].call)
		}
	}
	return nil
}

// madeByMessages is how a call that makes or frees an object by messages appears to other ranks. Its steps have
// different numbers of bytes.
var madeByMessages = coll.Call{Kind: coll.KindComm, Bytes: -1, Nonblocking: true}

// making is a call in progress that makes a communicator, maybe as a part of something else.
type making struct {
	parent  *Comm    // the old communicator
	comm    *Comm    // the new one; nil: this rank gets none
	block   [1]int64 // the number of its barrier block, -1: none
	offered int64    // the block that this rank has proposed and nobody uses yet, -1: none
	given   bool     // other ranks may use the block
	left    int      // rounds on the board of parent that this rank has to count yet
	byBoard bool     // the rounds are on the board
}

// offer returns the block that this rank proposes, -1 if it has none or can't be the first member of a communicator.
func (m *making) offer(leads bool) int64 {
	if m.offered = -1; leads && m.parent.block >= 0 {
		m.offered = offerBlock()
	}
	return m.offered
}

// begin starts round one, of as many as the call has. later says that the program may call other collectives before the
// sequence has ended.
func begin[T any](m *making, mine, all []T, rounds int, later bool) round {
	m.block[0] = -1
	if later && m.parent.size > 1 {
		return gathered(m.parent, bytesOf(mine), bytesOf(all[:1]))
	}
	o := together(m.parent, mine, all)
	if _, m.byBoard = o.(onBoard); m.byBoard {
		m.left = rounds - 1
	} else {
		m.keep()
	}
	return o
}

// together starts an exchange of a blocking call that makes or frees an object: all get what each rank contributes.
func together[T any](c *Comm, mine, all []T) round {
	if len(c.union()) == 1 {
		copy(all, mine)
		return alone{}
	}
	one, each := bytesOf(mine), bytesOf(all[:len(mine)])
	if s := c.coll.Together(one, each, -1); s != nil {
		return onBoard{s, c}
	}
	return gathered(c, one, each)
}

// alone is a round of one rank.
type alone struct{}

func (alone) Advance() bool    { return true }
func (alone) Check() error     { return nil }
func (alone) Abandon()         {}
func (alone) Err() *errs.Error { return nil }

// gathered starts an allgather by messages.
func gathered(c *Comm, mine, each p2p.Buf) round {
	c.coll.Calling(madeByMessages)
	return c.coll.Allgather(&mine, coll.Uniform(each, len(c.union())))
}

// assembled starts the barrier of a blocking call that makes or frees an object.
func (c *Comm) assembled() round {
	if len(c.union()) == 1 {
		return alone{}
	}
	if s := c.coll.Together(rawBytes(nil, 0), rawBytes(nil, 0), -1); s != nil {
		return onBoard{s, c}
	}
	c.coll.Calling(madeByMessages)
	return c.coll.BarrierByMessages()
}

// adopt takes the block that the first member has proposed on the board, which other members may use already, also if this rank
// has no communicator because of an error. first reports whether the first member is this rank.
func (m *making) adopt(block int64, first bool) {
	shared := m.comm == nil || canShareBlock(m.comm.group.ranks)
	if shared && m.comm != nil {
		m.block[0] = block
	}
	if shared && first {
		m.offered = -1
	}
	m.keep()
}

// mostProposed is up to how many ranks of a communicator keep the blocks that they have proposed in vain.
const mostProposed = 32

// keep takes back the block that this rank has proposed.
func (m *making) keep() {
	if m.parent.size > mostProposed { // so many blocks would be kept
		if m.offered >= 0 {
			proc.seg.GiveBlock(int(m.offered))
		}
	} else {
		keepBlock(m.offered)
	}
	m.offered = -1
}

// announce starts the last round by messages: the first rank of the new communicator takes its barrier block, and tells the
// others which. It returns nil if there is nothing to tell.
func (m *making) announce() round {
	if m.comm == nil || m.comm.remote != nil || !canShareBlock(m.comm.group.ranks) {
		return nil
	}
	if m.comm.rank == 0 {
		m.block[0] = int64(proc.seg.TakeBlock())
	}
	m.given = true
	return m.comm.coll.Bcast(bytesOf(m.block[:]), 0)
}

// complete gives the new communicator its block, and the program the communicator.
func (m *making) complete(handle int64) int64 {
	if m.comm.block = int(m.block[0]); m.comm.block >= 0 {
		m.comm.coll.UseBlock(proc.eng, m.comm.block)
	}
	return m.comm.publish(handle)
}

// undo gives up the rounds that are left, and the communicator. A block that other ranks may use is lost. If another rank
// has made another call, there are no more rounds: it does not take part in any.
func (m *making) undo(s *sequence) {
	o, yes := s.cur.(onBoard)
	differs := yes && o.Differs()                          // then no rank has completed the call
	if !yes || differs || !o.Contributed() || m.left > 0 { // else another rank may have
		m.keep()
	}
	if differs {
		m.left = 0
	}
	for ; m.left > 0; m.left-- {
		if m.parent.pt.Dropped(s.gen) == nil {
			m.parent.coll.Skip()
		}
	}
	if m.comm == nil {
		return
	}
	m.comm.close()
	if !m.byBoard && m.block[0] >= 0 && m.comm.rank == 0 && m.comm.block < 0 && !m.given { // taken, and not in use
		proc.seg.GiveBlock(int(m.block[0]))
	}
}

// derive returns the sequence that makes a communicator of ranks of c. choose returns the new communicator's group, as
// ranks of the union in their new order, and its remote group if it has one; no group: this rank gets COMM_NULL. leads reports
// whether this rank can be the first one of the group. later is as for begin.
func (c *Comm) derive(by call, color, key int64, leads, later bool, choose func(all []proposal) (local, remote []int)) *sequence {
	m := &making{parent: c}
	mine := []proposal{{offerCtx(c.union()), color, key, m.offer(leads && !later), by}}
	all := make([]proposal, len(c.union()))
	s := newSequence(c, func(s *sequence, k int) round {
		switch k {
		case 0:
			return begin(m, mine, all, 1, later)
		case 1:
			if s.err = alike(all); s.err != nil {
				m.keep()
				return nil
			}
			local, remote := choose(all)
			block, first := int64(-1), false
			if len(local) > 0 {
				block, first = all[local[0]].block, local[0] == c.coll.Rank
				m.comm, s.err = c.part(all, local, remote)
			}
			if m.byBoard {
				m.adopt(block, first)
			}
			if s.err != nil {
				return nil
			}
			if !m.byBoard {
				if o := m.announce(); o != nil {
					return o
				}
			}
		}
		if m.comm != nil {
			s.result = m.complete(s.result)
		}
		return nil
	})
	s.background = true
	s.undo = func() { m.undo(s) }
	return s
}

// part makes the communicator of a local and a remote group, or of a local one only. Its context is that of the first
// rank of the union.
func (c *Comm) part(all []proposal, local, remote []int) (*Comm, *errs.Error) {
	world := c.union()
	drawer := local[0]
	if len(remote) > 0 {
		drawer = min(drawer, remote[0])
	}
	ctx, e := takeCtx(all[drawer].ctx, world[drawer])
	if e != nil {
		return nil, e
	}
	g, me := c.worldGroup(local), slices.Index(local, c.coll.Rank)
	if len(remote) > 0 {
		return newIntercomm(ctx, g, c.worldGroup(remote), me, drawer != local[0]), nil
	}
	return newComm(ctx, g, me, -1), nil
}

// worldGroup returns the group of ranks of the union.
func (c *Comm) worldGroup(ranks []int) *Group {
	g := &Group{ranks: make([]int, len(ranks))}
	for i, r := range ranks {
		g.ranks[i] = c.union()[r]
	}
	return g
}

// split returns the sequence that makes a communicator for each color but Undefined, ordered by key. That of an
// intercommunicator has the ranks of both groups with a color; COMM_NULL if they are all in one group.
func (c *Comm) split(by call, color, key int64, later bool) *sequence {
	return c.derive(by, color, key, color != Undefined, later, func(all []proposal) (local, remote []int) {
		if color == Undefined {
			return nil, nil
		}
		s := c.coll.Sides
		if s == nil {
			return withColor(all, places(len(all), 0), color), nil
		}
		if remote = withColor(all, s.Remote, color); len(remote) > 0 {
			local = withColor(all, s.Local, color)
		}
		return local, remote
	})
}

// withColor returns the ranks of a list whose proposals have a color, ordered by key.
func withColor(all []proposal, list []int, color int64) []int {
	var members []int
	for _, r := range list {
		if all[r].color == color {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(all[a].key, all[b].key) })
	return members
}

// duplicate returns the sequence that makes a communicator of the same groups.
func (c *Comm) duplicate(later bool) *sequence {
	return c.derive(callDup, 0, int64(c.rank), c.rank == 0, later, func(all []proposal) (local, remote []int) {
		if s := c.coll.Sides; s != nil {
			return s.Local, s.Remote
		}
		return places(len(all), 0), nil
	})
}

// Merge makes an intracommunicator of both groups of an intercommunicator: the one whose ranks call it with high comes last; if
// both or none do, the one that comes last in the union.
func Merge(h int64, high bool) Begin {
	return func() (operation, *errs.Error) {
		c, e := getIntercomm(h)
		if e == nil {
			e = c.usable()
		}
		if e != nil {
			return nil, e
		}
		var last int64 // the color says whether the group comes last
		if high {
			last = 1
		}
		return c.derive(callMerge, last, 0, false, false, func(all []proposal) (local, remote []int) {
			low, up := c.coll.Sides.Local, c.coll.Sides.Remote
			if low[0] > 0 {
				low, up = up, low
			}
			if all[low[0]].color > all[up[0]].color {
				low, up = up, low
			}
			return slices.Concat(low, up), nil
		}), nil
	}
}

// IntercommMerge is Merge as a request.
func IntercommMerge(h int64, high bool) (req int64, code Code) { return Merge(h, high).request() }
