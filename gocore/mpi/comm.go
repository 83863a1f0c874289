package mpi

import (
	"slices"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Comm is a communicator.
type Comm struct {
	ctx   uint32
	group *Group
	rank  int
	size  int
	pt    *p2p.Channel
	coll  *coll.Comm
	block int // barrier block, -1: none
}

// newComm makes the communicator with context ctx on this process, which is the
// given rank of the group.
func newComm(ctx uint32, g *Group, rank, block int) *Comm {
	if !proc.eng.AllLocal(g.ranks) {
		block = -1
	}
	c := &Comm{ctx: ctx, group: g, rank: rank, size: len(g.ranks), block: block}
	c.pt = proc.p2p.Open(ctx<<1, rank, g.ranks)
	c.coll = &coll.Comm{Chan: proc.p2p.Open(ctx<<1|1, rank, g.ranks), Rank: rank, Size: c.size}
	c.coll.Chan.Internal = true
	switch {
	case block >= 0:
		c.coll.UseBlock(proc.eng, block)
	case !proc.eng.AllLocal(g.ranks) && !proc.eng.Apart(g.ranks):
		places := make([]int, len(g.ranks))
		for i, r := range g.ranks {
			places[i] = proc.seg.NodeOf(r)
		}
		c.coll.Divide(places)
	}
	c.coll.Listen()
	return c
}

// reset puts the barrier back into step, within a collective reset.
func (c *Comm) reset() {
	c.coll.Restart()
	if c.coll.Bar != nil {
		c.coll.Bar.Zero()
	}
}

// getComm returns the communicator of a handle, or an error if there is none.
func getComm(h int64) (*Comm, *errs.Error) {
	if c := comms.get(h); c != nil {
		if e := ready(); e != nil {
			return nil, e
		}
		return c, nil
	}
	if e := ready(); e != nil {
		return nil, e
	}
	if h == CommNull {
		return nil, errs.New(errs.Comm, "the communicator is COMM_NULL")
	}
	return nil, errs.New(errs.Comm, "the communicator has been freed, or is not made yet: wait for the request of Idup first")
}

// commAndGroup returns the objects of a communicator's and a group's handle.
func commAndGroup(h, group int64) (*Comm, *Group, *errs.Error) {
	c, e := getComm(h)
	if e != nil {
		return nil, nil, e
	}
	g, e := getGroup(group)
	return c, g, e
}

// CommRank returns the rank of this process in a communicator.
func CommRank(h int64) int {
	c, e := getComm(h)
	if e != nil {
		return -CodeOf(e)
	}
	return c.rank
}

// CommSize returns the number of ranks of a communicator.
func CommSize(h int64) int {
	c, e := getComm(h)
	if e != nil {
		return -CodeOf(e)
	}
	return c.size
}

// CommGroup makes the group of a communicator.
func CommGroup(h int64) int64 {
	c, e := getComm(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return addGroup(c.group.ranks)
}

// CommCompare compares two communicators.
func CommCompare(a, b int64) int {
	x, e := getComm(a)
	if e != nil {
		return -CodeOf(e)
	}
	y, e := getComm(b)
	if e != nil {
		return -CodeOf(e)
	}
	if x == y {
		return Ident
	}
	if r := compareRanks(x.group.ranks, y.group.ranks); r == Ident {
		return Congruent
	} else {
		return r
	}
}

// Undefined is MPI_UNDEFINED.
const Undefined = -32766

// proposal is what each rank contributes when communicators are made.
type proposal struct {
	ctx        int64
	color, key int64
}

// CommSplit begins to split a communicator: the ranks with the same color get
// a communicator of their own, ordered by key. With color Undefined a rank gets
// COMM_NULL. The request's result is the new handle.
func CommSplit(h int64, color, key int) (req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	if color < 0 && color != Undefined {
		return 0, classError(errs.Arg, "Split: the color %d is negative; use MPI.UNDEFINED to get no communicator", color)
	}
	return addRequest(c.split(int64(color), int64(key))), 0
}

// CommDup begins to duplicate a communicator.
func CommDup(h int64) (req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	return addRequest(c.split(0, int64(c.rank))), 0
}

// CommIdup is CommDup for a program that needs the handle at once. The handle names
// the new communicator once the request is complete.
func CommIdup(h int64) (made, req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, 0, CodeOf(e)
	}
	s := c.split(0, int64(c.rank))
	s.result = comms.reserve()
	return s.result, addRequest(s), 0
}

// Types for Split_type.
const (
	CommTypeShared = 1
)

// CommSplitType begins to split a communicator into groups of ranks that share a
// resource.
func CommSplitType(h int64, kind, key int) (req int64, code Code) {
	defer Contain(&code)
	if _, e := getComm(h); e != nil {
		return 0, CodeOf(e)
	}
	switch kind {
	case Undefined:
		return CommSplit(h, Undefined, key)
	case CommTypeShared:
		return CommSplit(h, proc.seg.Node(), key)
	}
	return 0, classError(errs.Arg, "Split_type: the type %d is not supported; MPI.COMM_TYPE_SHARED is", kind)
}

// CommCreate begins to make a communicator of the ranks of a group. All ranks of the
// old communicator call it; those outside of the group get COMM_NULL.
func CommCreate(h, group int64) (req int64, code Code) {
	defer Contain(&code)
	c, g, e := commAndGroup(h, group)
	if e != nil {
		return 0, CodeOf(e)
	}
	if _, e := c.members(g); e != nil {
		return 0, CodeOf(e)
	}
	color, key := int64(Undefined), int64(0)
	if i := slices.Index(g.ranks, proc.rank); i >= 0 {
		color, key = int64(g.ranks[0]), int64(i)
	}
	return addRequest(c.split(color, key)), 0
}

// split returns the sequence of an allgather of proposals on the old communicator and
// a broadcast of the barrier block on the new one.
func (c *Comm) split(color, key int64) *sequence {
	mine := []proposal{{offerCtx(), color, key}}
	all := make([]proposal, c.size)
	var n *Comm
	block := []int64{-1}
	return newSequence(c, func(s *sequence, k int) *coll.Op {
		switch k {
		case 0:
			b := rawBytes(unsafe.Pointer(&mine[0]), int(unsafe.Sizeof(mine[0])))
			c.coll.Calling(madeTogether)
			return c.coll.Allgather(&b, coll.Uniform(rawBytes(unsafe.Pointer(&all[0]), int(unsafe.Sizeof(all[0]))), c.size))
		case 1:
			if color == Undefined {
				return nil
			}
			var members []int
			for i, p := range all {
				if p.color == color {
					members = append(members, i)
				}
			}
			slices.SortStableFunc(members, func(a, b int) int { return int(all[a].key - all[b].key) })
			g := &Group{}
			me := 0
			for i, m := range members {
				g.ranks = append(g.ranks, c.group.ranks[m])
				if m == c.rank {
					me = i
				}
			}
			var ctx uint32
			if ctx, s.err = takeCtx(all[members[0]].ctx, g.ranks[0]); s.err != nil {
				return nil
			}
			n = newComm(ctx, g, me, -1)
			if n.rank == 0 {
				block[0] = takeBlock(g.ranks)
			}
			return n.coll.Bcast(rawBytes(unsafe.Pointer(&block[0]), 8), 0)
		}
		if n.block = int(block[0]); n.block >= 0 {
			n.coll.UseBlock(proc.eng, n.block)
		}
		if s.result != 0 {
			comms.fill(s.result, n)
		} else {
			s.result = comms.add(n)
		}
		return nil
	})
}

// CommFree begins to free a communicator.
func CommFree(h int64) (req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	if h == CommWorld || h == CommSelf {
		return 0, classError(errs.Comm, "COMM_WORLD and COMM_SELF can't be freed")
	}
	return addRequest(newSequence(c, func(s *sequence, k int) *coll.Op {
		if k == 0 {
			c.coll.Calling(madeTogether)
			return c.coll.BarrierByMessages()
		}
		comms.take(h)
		c.close()
		return nil
	})), 0
}

// takeBlock reserves a barrier block for ranks. It returns -1 if there is none, or they do
// not all share memory; their barriers and small collectives use messages then.
func takeBlock(ranks []int) int64 {
	if len(ranks) < 2 || !proc.eng.AllLocal(ranks) {
		return -1
	}
	return int64(proc.seg.TakeBlock())
}

func rawBytes(p unsafe.Pointer, n int) p2p.Buf { return p2p.Buf{Addr: p, Count: n, Type: byteType} }

// close frees the communicator's resources on this rank. The last rank to close it
// frees the barrier block.
func (c *Comm) close() {
	c.pt.Close()
	c.coll.Chan.Close()
	if c.block >= 0 && c.coll.Leave() {
		proc.seg.GiveBlock(c.block)
	}
}

// madeTogether is how a call that makes or frees an object appears to other ranks.
var madeTogether = coll.Call{Kind: coll.KindComm, Bytes: -1}
