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
// takes the context that the first of them has proposed. That one also takes a barrier block if the members share memory.
// In round two it tells them which.
//
// If the ranks of the old communicator share memory, and the call is a blocking one, both rounds are collectives on
// its board (coll.Comm.Together), which all its ranks take, since they count them. In round two a rank waits for its first
// member only, and one without a new communicator for nobody. Otherwise round one is an allgather by messages, and round
// two a broadcast in the new communicator.
//
// A rank that fails in a round on the board, is interrupted there or finds that another has given it up, gives up that round
// and the next one (Skip). So each rank counts two. Those that still wait for it end with an error. A rank that has completed
// both before another gives up has a communicator that lacks a member, as with messages: its calls wait for that one.
// The first member takes the block when it is about to publish it, and waits for nobody then, so that no block is lost.
//
// Windows and files begin with a duplicate. Free is a barrier, in the same way.

// proposal is what each rank contributes when communicators are made.
type proposal struct {
	ctx        int64
	color, key int64
}

// madeByMessages is how a call that makes or frees an object by messages appears to other ranks. Its steps have
// different numbers of bytes.
var madeByMessages = coll.Call{Kind: coll.KindComm, Bytes: -1, Nonblocking: true}

// together starts an exchange of a blocking call that makes or frees an object: all get what each rank contributes.
func together[T any](c *Comm, mine, all []T) round {
	one, each := bytesOf(mine), bytesOf(all[:len(mine)])
	if s := c.coll.Together(one, each, -1); s != nil {
		return onBoard{s, c}
	}
	return gathered(c, one, each)
}

// gathered starts an allgather by messages.
func gathered(c *Comm, mine, each p2p.Buf) round {
	c.coll.Calling(madeByMessages)
	return c.coll.Allgather(&mine, coll.Uniform(each, len(c.union())))
}

// assembled starts the barrier of a blocking call that makes or frees an object.
func (c *Comm) assembled() round {
	if s := c.coll.Together(rawBytes(nil, 0), rawBytes(nil, 0), -1); s != nil {
		return onBoard{s, c}
	}
	c.coll.Calling(madeByMessages)
	return c.coll.BarrierByMessages()
}

// derive returns the sequence that makes a communicator of ranks of c: an exchange of proposals and, for an
// intracommunicator that can have a barrier block, the number of that, which its first rank takes. choose returns the new communicator's
// group, as ranks of the union in their new order, and its remote group if it has one; no group: this rank gets COMM_NULL.
// later says that the program may call other collectives before the sequence has ended.
func (c *Comm) derive(color, key int64, later bool, choose func(all []proposal) (local, remote []int)) *sequence {
	mine := []proposal{{offerCtx(c.union()), color, key}}
	all := make([]proposal, len(c.union()))
	var n *Comm
	block := []int64{-1}
	onBoards := 0 // rounds on the board of c
	s := newSequence(c, func(s *sequence, k int) round {
		switch k {
		case 0:
			if later {
				return gathered(c, bytesOf(mine), bytesOf(all[:1]))
			}
			o := together(c, mine, all)
			if _, yes := o.(onBoard); yes {
				onBoards++
			}
			return o
		case 1:
			local, remote := choose(all)
			if len(local) > 0 {
				n, s.err = c.part(all, local, remote)
			}
			first := c.coll.Rank // whose block it is
			if n != nil && n.remote == nil {
				if first = local[0]; n.rank == 0 {
					block[0] = takeBlock(n.group.ranks)
				}
			}
			if onBoards > 0 && s.err == nil { // all ranks have to take this step
				onBoards++
				return onBoard{c.coll.Together(bytesOf(block), bytesOf(block), first), c}
			}
			if n != nil && n.remote == nil && canShareBlock(n.group.ranks) {
				return n.coll.Bcast(bytesOf(block), 0)
			}
		}
		if n == nil {
			return nil
		}
		if n.block = int(block[0]); n.block >= 0 {
			n.coll.UseBlock(proc.eng, n.block)
		}
		s.result = n.publish(s.result)
		return nil
	})
	s.undo = func() {
		if onBoards == 1 && c.pt.Dropped(s.gen) == nil {
			c.coll.Skip()
		}
		if n != nil {
			n.close()
		}
		if block[0] >= 0 && n.rank == 0 && n.block < 0 { // taken, and not in use
			proc.seg.GiveBlock(int(block[0]))
		}
	}
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
	g := &Group{}
	for _, r := range ranks {
		g.ranks = append(g.ranks, c.union()[r])
	}
	return g
}

// split returns the sequence that makes a communicator for each color but Undefined, ordered by key. That of an
// intercommunicator has the ranks of both groups with a color; COMM_NULL if they are all in one group.
func (c *Comm) split(color, key int64, later bool) *sequence {
	return c.derive(color, key, later, func(all []proposal) (local, remote []int) {
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
func (c *Comm) duplicate(later bool) *sequence { return c.split(0, int64(c.rank), later) }

// IntercommMerge begins to make an intracommunicator of both groups of an intercommunicator: the one
// whose ranks call it with high comes last; if both or none do, the one that comes last in the union.
func IntercommMerge(h int64, high bool) (req int64, code Code) {
	defer Contain(&code)
	c, e := getIntercomm(h)
	if e == nil {
		e = c.usable()
	}
	if e != nil {
		return 0, CodeOf(e)
	}
	var last int64 // the color says whether the group comes last
	if high {
		last = 1
	}
	return addRequest(c.derive(last, 0, false, func(all []proposal) (local, remote []int) {
		low, up := c.coll.Sides.Local, c.coll.Sides.Remote
		if low[0] > 0 {
			low, up = up, low
		}
		if all[low[0]].color > all[up[0]].color {
			low, up = up, low
		}
		return slices.Concat(low, up), nil
	})), 0
}
