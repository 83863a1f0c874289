package mpi

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/rma"
	"gormapy/gocore/sys"
)

// winCreation makes a window. It is a collective of several exchanges, whose steps every
// rank takes in the same order. If a step fails on one rank, the others learn it in the
// next exchange, so that all ranks end alike. The last step is the exception: a rank that
// has no memory for the window's descriptor there leaves the others waiting for it.
type winCreation struct {
	handle int64 // of the parent communicator
	dup    *sequence
	comm   *Comm // the window's own
	step   int

	mine, made    []rma.Offer // this rank's offers: in rounds one and three, and in round two
	offers, mades []rma.Offer // those of all ranks, likewise
	segment       *sys.Segment
	region        fabric.Region
	mapped        []unsafe.Pointer // by rank, see rma.MapShared
	failed        *errs.Error      // on this rank; the next exchange tells the others
}

// winSteps are the steps after the duplication of the communicator. Each returns
// the exchange that the next one waits for, nil after the last.
var winSteps = []func(c *winCreation, s *sequence) round{
	(*winCreation).exchangeOffers,
	(*winCreation).makeSegment,
	(*winCreation).openSegment,
	(*winCreation).attach,
	func(*winCreation, *sequence) round { return nil },
}

// WinCreate begins to make a window. The request's result is its handle. The ranks
// exchange offers, agree on whether the kernel copies between them, and map the segment
// that the first rank of their node makes. hints are those of package rma. align is the alignment of memory
// that the core allocates, 0 for any.
func WinCreate(flavor int, addr, bytes, unit, comm, hints, align int64) (req int64, code Code) {
	defer Contain(&code)
	parent, e := getIntracomm(comm, "a window")
	if e != nil {
		return 0, CodeOf(e)
	}
	switch {
	case bytes < 0:
		return 0, classError(errs.Size, "a window of %d bytes", bytes)
	case unit < 1 || unit > 1<<31-1:
		return 0, classError(errs.Disp, "the displacement unit %d is not positive", unit)
	}
	f := rma.Flavor(flavor)
	if f < rma.FlavorCreate || f > rma.FlavorShared {
		return 0, classError(errs.RMAFlavor, "there is no flavor %d of windows", flavor)
	}
	var base unsafe.Pointer
	if f == rma.FlavorCreate {
		if base, e = checkedPointer(addr, bytes); e != nil {
			return 0, CodeOf(e)
		}
	}
	c := &winCreation{
		handle: comm,
		dup:    parent.duplicate(false),
		mine:   []rma.Offer{rma.NewOffer(f, base, int(bytes), int(unit))},
		made:   []rma.Offer{{FD: -1}},
		offers: make([]rma.Offer, parent.size),
		mades:  make([]rma.Offer, parent.size),
	}
	c.mine[0].Hints, c.mine[0].Align, c.mine[0].Node = rma.Hints(hints), int32(align), int64(proc.windowNode(f))
	s := newSequence(parent, nil)
	s.call = job.CallWinCreate
	s.step = c.next
	s.undo = func() {
		if c.comm == nil {
			c.dup.takeBack()
		}
	}
	s.Advance()
	return reqs.add(&Request{op: s}), 0
}

// next takes the next step: of the duplication, then of winSteps.
func (c *winCreation) next(s *sequence, _ int) round {
	if c.comm == nil {
		if op := c.dup.step(c.dup, c.dup.k); op != nil {
			c.dup.k++
			return op
		}
		if s.err = c.dup.err; s.err != nil {
			return nil
		}
		c.comm = comms.get(c.dup.result)
	}
	c.step++
	return winSteps[c.step-1](c, s)
}

// exchange gathers an offer of each rank.
func (c *winCreation) exchange(mine, all []rma.Offer) round {
	return together(c.comm, mine, all)
}

// fail ends the creation on this rank, and gives back what it holds.
func (c *winCreation) fail(s *sequence, e *errs.Error) round {
	s.err = e
	if c.region != nil {
		_ = c.region.Close()
	}
	if c.segment != nil {
		c.segment.Close()
	}
	comms.take(c.dup.result)
	c.comm.close()
	return nil
}

// windowNode returns a number that ranks have in common if they share the window's segment: that of
// the node or, where a network reaches the ranks of this node, too, of the rank. But shared memory is what
// a shared window is for.
func (n *process) windowNode(f rma.Flavor) int {
	if n.eng.NetOnly() && f != rma.FlavorShared {
		return n.rank
	}
	return n.seg.Node()
}

// node is windowNode of this window.
func (c *winCreation) node() int { return int(c.mine[0].Node) }

// leader returns the rank that makes the segment of this node.
func (c *winCreation) leader() int { return rma.Leader(c.offers, c.node()) }

func (c *winCreation) exchangeOffers(*sequence) round { return c.exchange(c.mine, c.offers) }

// makeSegment makes the window's segment on the first rank of each node. Every rank finds out whether it can
// copy from the others' memory, and whether it can map it.
func (c *winCreation) makeSegment(s *sequence) round {
	if e := rma.CheckOffers(c.offers); e != nil {
		return c.fail(s, e) // all ranks see the same offers, so all fail
	}
	made := &c.made[0]
	if proc.rma.CanCopy(c.offers, c.comm.group.ranks) {
		made.Copy = 1
	}
	var ok bool
	if c.mapped, ok = proc.rma.MapShared(c.offers, c.comm.group.ranks); ok {
		made.Mapped = 1
	}
	if c.comm.rank == c.leader() {
		if c.segment, c.failed = rma.CreateSegment(c.offers, c.node(), made); c.failed != nil {
			made.Failed = int32(c.failed.Class)
		}
	}
	return c.exchange(c.made, c.mades)
}

// openSegment maps the segment on the other ranks, and registers this rank's part with
// the network.
func (c *winCreation) openSegment(s *sequence) round {
	if c.failed != nil {
		return c.fail(s, c.failed)
	}
	for i := range c.mades {
		if class := c.mades[i].Failed; class != 0 {
			return c.fail(s, errs.New(errs.Class(class), "rank %d of the communicator could not make the shared memory for the window", i))
		}
	}
	mine := &c.mine[0]
	mine.Failed = 0
	if first := c.leader(); c.comm.rank != first {
		var err error
		if c.segment, err = rma.OpenSegment(c.offers, &c.mades[first]); err != nil {
			mine.Failed = int32(errs.Win)
			c.failed = errs.New(errs.Win, "map the window's shared memory: %v", err)
			c.segment = nil
		}
	}
	if c.segment != nil {
		c.region = proc.rma.Register(mine, c.comm.rank, c.comm.group.ranks, c.offers, c.segment)
	}
	return c.exchange(c.mine, c.offers)
}

// attach makes the window. The barrier at its end keeps ranks from using the window
// before all have it.
func (c *winCreation) attach(s *sequence) round {
	if c.failed != nil {
		return c.fail(s, c.failed)
	}
	for i := range c.offers {
		if c.offers[i].Failed != 0 {
			return c.fail(s, errs.New(errs.Win, "rank %d of the communicator could not map the window's shared memory (it must run as the same user, and /proc must be mounted)", i))
		}
	}
	c.segment.CloseFD()
	setup := rma.Setup{ID: c.comm.ctx, Rank: c.comm.rank, World: c.comm.group.ranks, Offers: c.offers, Segment: c.segment,
		Region: c.region, Mapped: c.mapped, Copies: true, Barrier: c.comm.coll.Bar}
	for i := range c.mades {
		setup.Copies = setup.Copies && c.mades[i].Copy == 1
		if c.mades[i].Mapped == 0 {
			setup.Mapped = nil
		}
	}
	win := &Window{comm: c.comm}
	setup.Handle = wins.add(win)
	var e *errs.Error
	if win.Win, e = proc.rma.NewWin(&setup); e != nil {
		wins.take(setup.Handle)
		return c.fail(s, e)
	}
	win.Hint = hintFor(c.handle)
	win.prepare()
	s.result = setup.Handle
	win.logWindow()
	return c.comm.assembled()
}
