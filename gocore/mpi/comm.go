package mpi

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Comm is a communicator.
type Comm struct {
	ctx    uint32
	serial uint32 // of the context, see drawn
	group  *Group
	remote *Group // of an intercommunicator: the other group; see intercomm.go
	rank   int
	size   int
	pt     *p2p.Channel
	coll   *coll.Comm
	block  int // barrier block, -1: none

	spareBarrier atomic.Pointer[barrierOp] // of the last barrier that has waited

	freeing atomic.Bool // by Free or Disconnect
	met     bool        // its ranks have met to free it
	faults  faults

	neighbors  atomic.Pointer[neighbors]
	all        atomic.Pointer[neighbors] // see everybody
	partitions partitionSpace
	groups     lazyChannel // of Create_group
	meetings   lazyChannel // of Create_intercomm
}

// newComm makes the communicator with context d on this process, which is the
// given rank of the group.
func newComm(d drawn, g *Group, rank, block int) *Comm {
	if !proc.eng.AllLocal(g.ranks) {
		block = -1
	}
	c := &Comm{ctx: d.ctx, serial: d.serial, group: g, rank: rank, size: len(g.ranks), block: block}
	c.pt = proc.p2p.Open(channelOf(d.ctx, channelMessages), rank, g.ranks)
	c.pt.Acknowledge(c.acknowledged)
	c.coll = &coll.Comm{Chan: proc.p2p.Open(channelOf(d.ctx, channelInternal), rank, g.ranks), Rank: rank, Size: c.size}
	c.coll.Chan.SetInternal()
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
	inUse.add(c)
	return c
}

// publish gives the program a communicator that has been made: under the handle h if it has one already (0: it has none). It returns the handle.
func (c *Comm) publish(h int64) int64 {
	c.openFaults()
	if h == 0 {
		return comms.add(c)
	}
	comms.fill(h, c)
	return h
}

// reset puts the barrier back into step, within a collective reset.
func (c *Comm) reset() {
	c.coll.Restart()
	if c.coll.Bar != nil {
		c.coll.Bar.Zero()
	}
	c.resetFaults()
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

// getUsableComm is getComm for calls that a revoked communicator refuses.
func getUsableComm(h int64) (*Comm, *errs.Error) {
	c, e := getComm(h)
	if e == nil {
		e = c.usable()
	}
	return c, e
}

// commAndGroup returns the objects of a communicator's and a group's handle.
func commAndGroup(h, group int64) (*Comm, *Group, *errs.Error) {
	c, e := getUsableComm(h)
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
	if (x.remote == nil) != (y.remote == nil) {
		return Unequal
	}
	r := compareRanks(x.group.ranks, y.group.ranks)
	if x.remote != nil {
		r = max(r, compareRanks(x.remote.ranks, y.remote.ranks))
	}
	return max(r, Congruent)
}

// Undefined is MPI_UNDEFINED.
const Undefined = -32766

// Split splits a communicator: the ranks with the same color get a communicator of their own, ordered by key. With color
// Undefined a rank gets COMM_NULL.
func Split(h int64, color, key int) Begin {
	return func() (operation, *errs.Error) {
		c, e := getUsableComm(h)
		if e != nil {
			return nil, e
		}
		if color < 0 && color != Undefined {
			return nil, errs.New(errs.Arg, "Split: the color %d is negative; use MPI.UNDEFINED to get no communicator", color)
		}
		return c.split(callSplit, int64(color), int64(key), false), nil
	}
}

// CommSplit is Split as a request, whose result is the new handle.
func CommSplit(h int64, color, key int) (req int64, code Code) { return Split(h, color, key).request() }

// Dup duplicates a communicator.
func Dup(h int64) Begin {
	return func() (operation, *errs.Error) {
		c, e := getUsableComm(h)
		if e != nil {
			return nil, e
		}
		return c.duplicate(false), nil
	}
}

// CommDup is Dup as a request.
func CommDup(h int64) (req int64, code Code) { return Dup(h).request() }

// CommIdup is CommDup for a program that needs the handle at once. The handle names
// the new communicator once the request is complete.
func CommIdup(h int64) (made, req int64, code Code) {
	defer Contain(&code)
	c, e := getUsableComm(h)
	if e != nil {
		return 0, 0, CodeOf(e)
	}
	s := c.duplicate(true)
	s.result = comms.reserve()
	return s.result, addRequest(s), 0
}

// Types for Split_type.
const (
	CommTypeShared = 1
)

// SplitType splits a communicator into groups of ranks that share a resource.
func SplitType(h int64, kind, key int) Begin {
	switch kind {
	case Undefined:
		return Split(h, Undefined, key)
	case CommTypeShared:
		return func() (operation, *errs.Error) {
			if _, e := getUsableComm(h); e != nil {
				return nil, e
			}
			return Split(h, proc.seg.Node(), key)()
		}
	}
	return func() (operation, *errs.Error) {
		_, e := getUsableComm(h)
		if e == nil {
			e = errs.New(errs.Arg, "Split_type: the type %d is not supported; MPI.COMM_TYPE_SHARED is", kind)
		}
		return nil, e
	}
}

// CommSplitType is SplitType as a request.
func CommSplitType(h int64, kind, key int) (req int64, code Code) {
	return SplitType(h, kind, key).request()
}

// Create makes a communicator of the ranks of a group. All ranks of the old communicator call it; those outside of the
// group get COMM_NULL.
func Create(h, group int64) Begin {
	return func() (operation, *errs.Error) {
		c, g, e := commAndGroup(h, group)
		if e == nil {
			_, e = c.members(g)
		}
		if e != nil {
			return nil, e
		}
		color, key := int64(Undefined), int64(0)
		if i := slices.Index(g.ranks, proc.rank); i >= 0 {
			if key = int64(i); c.remote == nil {
				color = int64(slices.Index(c.group.ranks, g.ranks[0]))
			} else {
				color = 0 // the groups of both sides make one intercommunicator
			}
		}
		return c.split(callCreate, color, key, false), nil
	}
}

// CommCreate is Create as a request.
func CommCreate(h, group int64) (req int64, code Code) { return Create(h, group).request() }

func rawBytes(p unsafe.Pointer, n int) p2p.Buf { return p2p.Buf{Addr: p, Count: n, Type: byteType} }
