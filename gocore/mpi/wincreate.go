package mpi

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/rma"
	"gormapy/gocore/sys"
)

// winCreation makes a window: a collective of several rounds between the ranks of the parent communicator, whose steps
// every rank takes in the same order.
//
// # Protocol
//
// In round one each rank offers its part, and proposes a context for the window's own communicator. In round two the
// first rank of each node tells which segment it has made for the parts there, and each rank whether it reaches the
// others' memory. In round three each has mapped its node's segment, and has made the window or, if not all ranks are
// reached through shared memory, registered its part with the network. What fails on one rank is told in the next
// exchange, so that all ranks end alike. So no rank has the window before all have made it. The first rank proposes
// the communicator's barrier block with its offer, as in derive.go; by messages it announces it in one more round.
//
// If the ranks can use the segment of a window that they have freed (rma.Spare), there is no third round: each makes the window
// after the second one, for which it has all that it needs before that.
//
// With a network the ranks make the window after round three, when they have the keys of all parts. There is no barrier
// block then, and the last round is a barrier. A rank that has no memory for the window's descriptor leaves the others
// waiting for it.
//
// A rank that is interrupted, or finds that another has given a round up, gives up the rounds that are left, as in
// derive.go, and all that it has made.
type winCreation struct {
	making
	handle int64 // of the parent communicator
	local  bool  // the ranks reach each other through shared memory

	opening       []opening   // this rank's contribution to round one
	openings      []opening   // those of all ranks
	mine, made    []rma.Offer // this rank's offers: in round three, and in round two
	offers, mades []rma.Offer // those of all ranks: in rounds one and three, and in round two
	segment       *sys.Segment
	region        fabric.Region
	mapped        []unsafe.Pointer // by rank, see rma.MapShared
	spare         *rma.Spare       // what this rank has offered, until it is clear whether all use it
	reused        bool             // they do
	desc          *rma.Desc        // then: of the window
	win           *rma.Win
	failed        *errs.Error // on this rank; the next exchange tells the others
}

// opening is what a rank contributes in round one.
type opening struct {
	ctx   int64
	block int64 // see derive.go
	offer rma.Offer
}

// winSteps are the steps after round one. Each returns the round that the next one waits for, nil after the last.
var winSteps = []func(c *winCreation, s *sequence) round{
	(*winCreation).makeSegment,
	(*winCreation).openSegment,
	(*winCreation).agree,
	(*winCreation).publishWin,
}

// CreateWin makes a window. The ranks exchange offers, agree on whether the kernel copies between them, and map the segment
// that the first rank of their node makes. hints are those of package rma. align is the alignment of memory
// that the core allocates, 0 for any.
func CreateWin(flavor int, addr, bytes, unit, comm, hints, align int64) Begin {
	return func() (operation, *errs.Error) {
		parent, e := getIntracomm(comm, "a window")
		f := rma.Flavor(flavor)
		switch {
		case e != nil:
			return nil, e
		case bytes < 0:
			return nil, errs.New(errs.Size, "a window of %d bytes", bytes)
		case unit < 1 || unit > 1<<31-1:
			return nil, errs.New(errs.Disp, "the displacement unit %d is not positive", unit)
		case f < rma.FlavorCreate || f > rma.FlavorShared:
			return nil, errs.New(errs.RMAFlavor, "there is no flavor %d of windows", flavor)
		}
		var base unsafe.Pointer
		if f == rma.FlavorCreate {
			if base, e = checkedPointer(addr, bytes); e != nil {
				return nil, e
			}
		}
		offer := proc.rma.NewOffer(f, base, int(bytes), int(unit))
		offer.Hints, offer.Align, offer.Node = rma.Hints(hints), int32(align), int64(proc.windowNode(f))
		return newWinCreation(parent, comm, offer), nil
	}
}

// WinCreate is CreateWin as a request, whose result is the window's handle.
func WinCreate(flavor int, addr, bytes, unit, comm, hints, align int64) (req int64, code Code) {
	return CreateWin(flavor, addr, bytes, unit, comm, hints, align).request()
}

func newWinCreation(parent *Comm, handle int64, offer rma.Offer) *sequence {
	c := &winCreation{
		making:   making{parent: parent},
		handle:   handle,
		local:    proc.eng.AllLocal(parent.group.ranks),
		openings: make([]opening, parent.size),
		made:     []rma.Offer{{FD: -1}},
		offers:   make([]rma.Offer, parent.size),
		mades:    make([]rma.Offer, parent.size),
	}
	if c.local {
		c.spare = proc.rma.TakeSpare(parent.group.ranks)
		offer.Spare = c.spare.Tag()
	}
	c.mine = []rma.Offer{offer}
	c.opening = []opening{{offerCtx(parent.group.ranks), c.offer(parent.rank == 0), offer}}
	s := newSequence(parent, func(s *sequence, k int) round {
		if k == 0 {
			return begin(&c.making, c.opening, c.openings, 3, false)
		}
		return winSteps[k-1](c, s)
	})
	s.call = job.CallWinCreate
	s.undo = func() { c.undo(s) }
	return s
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

// exchange starts a round after the first, in which this rank's contribution says whether it has failed.
func (c *winCreation) exchange(mine *rma.Offer, all []rma.Offer) round {
	if c.failed != nil {
		mine.Failed = int32(c.failed.Class)
	}
	if c.byBoard {
		c.left--
	}
	return together(c.parent, unsafe.Slice(mine, 1), all)
}

// makeSegment makes the window's segment on the first rank of each node. Every rank finds out whether it can
// copy from the others' memory, and whether it can map it.
func (c *winCreation) makeSegment(s *sequence) round {
	for i := range c.openings {
		c.offers[i] = c.openings[i].offer
	}
	if s.err = rma.CheckOffers(c.offers); s.err != nil {
		return nil // all ranks see the same offers, so all fail
	}
	world, made := c.parent.group.ranks, &c.made[0]
	var ctx drawn
	if ctx, c.failed = takeCtx(c.openings[0].ctx, world[0]); c.failed == nil {
		c.comm = newComm(ctx, c.parent.group, c.parent.rank, -1)
	}
	if proc.rma.CanCopy(c.offers, world) {
		made.Copy = 1
	}
	var ok bool
	if c.mapped, ok = proc.rma.MapShared(c.offers, world); ok {
		made.Mapped = 1
	}
	if c.reused = c.spare.Fits(c.offers); !c.reused {
		c.spare.Close()
	}
	switch {
	case c.reused:
		c.segment = c.spare.Clear(c.offers, c.parent.rank)
		if c.failed == nil {
			c.desc, c.failed = rma.ReserveDesc(c.parent.size)
		}
	case c.failed == nil && c.parent.rank == c.leader():
		c.segment, c.failed = rma.CreateSegment(c.offers, c.node(), made)
	}
	c.spare = nil
	return c.exchange(made, c.mades)
}

// openSegment maps the segment on the other ranks. If there is no network it makes the window; else it registers this
// rank's part.
func (c *winCreation) openSegment(s *sequence) round {
	if s.err = c.failure(c.mades, "could not number the window or make its shared memory"); s.err != nil {
		return nil
	}
	if c.reused {
		if s.err = c.makeWin(); s.err != nil {
			return nil
		}
		for ; c.left > 0; c.left-- {
			c.parent.coll.Pass()
		}
		return c.finish(s)
	}
	mine := &c.mine[0]
	if first := c.leader(); c.parent.rank != first {
		var err error
		if c.segment, err = rma.OpenSegment(c.offers, &c.mades[first]); err != nil {
			c.segment = nil
			c.failed = errs.New(errs.Win, "map the window's shared memory: %v", err)
		}
	}
	if c.segment != nil {
		c.region = proc.rma.Register(mine, c.parent.rank, c.parent.group.ranks, c.offers, c.segment)
		if c.local {
			c.failed = c.makeWin()
		}
	}
	return c.exchange(mine, c.offers)
}

// agree starts the last round, if there is one more.
func (c *winCreation) agree(s *sequence) round {
	if c.reused {
		return c.publishWin(s)
	}
	s.err = c.failure(c.offers, "could not map the window's shared memory (it must run as the same user, and /proc must be mounted)")
	if s.err != nil {
		return nil
	}
	c.segment.CloseFD()
	if !c.local {
		if s.err = c.makeWin(); s.err != nil {
			return nil
		}
		return c.comm.assembled()
	}
	return c.finish(s)
}

// finish gives the communicator its block, and the program the window, or starts the round that tells which block it is.
func (c *winCreation) finish(s *sequence) round {
	if c.byBoard {
		c.adopt(c.openings[0].block, c.parent.rank == 0)
	} else if o := c.announce(); o != nil {
		return o
	}
	return c.publishWin(s)
}

// publishWin gives the program the window.
func (c *winCreation) publishWin(s *sequence) round {
	win := &Window{Win: c.win, comm: c.comm, commHandle: c.complete(0)}
	win.Bar = c.comm.coll.Bar
	win.Hint = hintFor(c.handle)
	win.prepare()
	s.result = wins.add(win)
	win.Desc.Handle = s.result
	win.logWindow()
	return nil
}

// failure returns this rank's error, or what an exchange says of that of another.
func (c *winCreation) failure(all []rma.Offer, what string) *errs.Error {
	if c.failed != nil {
		return c.failed
	}
	for i := range all {
		if class := errs.Class(all[i].Failed); class != 0 {
			return errs.New(class, "rank %d of the communicator %s", i, what)
		}
	}
	return nil
}

// makeWin makes the window, of what the ranks have exchanged.
func (c *winCreation) makeWin() (e *errs.Error) {
	setup := rma.Setup{ID: c.comm.ctx, Rank: c.parent.rank, World: c.parent.group.ranks, Offers: c.offers, Segment: c.segment,
		Region: c.region, Mapped: c.mapped, Desc: c.desc, Copies: true}
	for i := range c.mades {
		setup.Copies = setup.Copies && c.mades[i].Copy == 1
		if c.mades[i].Mapped == 0 {
			setup.Mapped = nil
		}
	}
	c.win, e = proc.rma.NewWin(&setup)
	return e
}

// undo gives up what has been made.
func (c *winCreation) undo(s *sequence) {
	if o, yes := s.cur.(onBoard); yes && o.Contributed() && c.reused { // this was the last round
		c.offered = -1
	}
	c.spare.Close()
	switch {
	case c.win != nil:
		c.win.Free(false)
	case c.segment != nil:
		if c.desc != nil {
			c.desc.Release()
		}
		if c.region != nil {
			_ = c.region.Close()
		}
		c.segment.Close()
	}
	c.making.undo(s)
}
