package mpi

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
	"gormapy/gocore/sys"
)

// Window is a window and the communicator of its own that it synchronises on.
type Window struct {
	*rma.Win
	comm *Comm

	// What a fence needs while it waits, made once.
	label        string
	passed       func() bool
	checkBarrier func() error
}

// prepare makes what later calls need.
func (win *Window) prepare() {
	win.label = fmt.Sprintf("window %d", win.ID)
	if bar := win.Bar; bar != nil {
		win.passed, win.checkBarrier = bar.Passed, func() error { return bar.Check(w.eng) }
	}
}

func getWin(h int64) (*Window, *errs.Error) {
	if win := wins.get(h); win != nil {
		if e := ready(); e != nil {
			return nil, e
		}
		return win, nil
	}
	if h == 0 {
		return nil, errs.New(errs.Win, "the window is WIN_NULL (it was never made, or has been freed)")
	}
	return nil, errs.New(errs.Win, "the window has been freed")
}

func (win *Window) reset() {
	win.comm.coll.Restart()
	win.Win.Reset()
}

// WinCreate begins to make a window; the request's result is its handle. The
// ranks exchange offers, agree on whether the kernel copies between them, and
// map the segment that rank 0 makes. hints are those of package rma; align is
// what the memory of the core's is to be aligned to, 0 for nothing.
func WinCreate(flavor int, addr, bytes, unit, comm, hints, align int64) (req int64, code Code) {
	defer Contain(&code)
	parent, e := getComm(comm)
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
		if base, e = place(addr, bytes); e != nil {
			return 0, CodeOf(e)
		}
	}
	dup := parent.split(0, int64(parent.rank))
	var c *Comm
	var seg *sys.Segment
	var own *errs.Error // what has failed here
	var shared []unsafe.Pointer
	var region fabric.Region
	mine := []rma.Offer{rma.NewOffer(f, base, int(bytes), int(unit))}
	mine[0].Hints, mine[0].Align = rma.Hints(hints), int32(align)
	offers := make([]rma.Offer, parent.size)
	second := []rma.Offer{{}}
	seconds := make([]rma.Offer, parent.size)
	gather := func(mine, all []rma.Offer) *coll.Op {
		b := rawBytes(unsafe.Pointer(&mine[0]), rma.OfferBytes)
		c.coll.Calling(madeTogether)
		return c.coll.Allgather(&b, coll.Uniform(rawBytes(unsafe.Pointer(&all[0]), rma.OfferBytes), c.size))
	}
	fail := func(s *sequence, e *errs.Error) *coll.Op {
		s.err = e
		if region != nil {
			_ = region.Close()
		}
		if seg != nil {
			seg.Close()
		}
		comms.take(dup.result)
		c.close()
		return nil
	}
	phase := 0
	s := newSequence(parent, nil)
	s.call = job.CallWinCreate
	s.step = func(s *sequence, _ int) *coll.Op {
		if !dup.done { // the first phases are those of the duplication
			if op := dup.step(dup, dup.k); op != nil {
				dup.k++
				return op
			}
			dup.done = true
			c = comms.get(dup.result)
		}
		phase++
		switch phase {
		case 1:
			return gather(mine, offers)
		case 2:
			if e := rma.CheckOffers(offers); e != nil {
				return fail(s, e) // all ranks see the same offers, so all fail
			}
			second[0].FD = -1
			if w.rma.CanCopy(offers, c.group.ranks) {
				second[0].Copy = 1
			}
			var mapped bool
			if shared, mapped = w.rma.MapShared(offers, c.group.ranks); mapped {
				second[0].Mapped = 1
			}
			if c.rank == 0 {
				if seg, own = rma.CreateSegment(offers); own != nil {
					second[0].Failed = int32(own.Class)
				} else {
					second[0].FD = int32(seg.FD)
				}
			}
			return gather(second, seconds)
		case 3:
			if own != nil {
				return fail(s, own)
			}
			if cls := seconds[0].Failed; cls != 0 {
				return fail(s, errs.New(errs.Class(cls), "rank 0 of the communicator could not make the shared memory for the window"))
			}
			mine[0].Failed = 0
			if c.rank != 0 {
				var err error
				if seg, err = rma.OpenSegment(offers, &seconds[0]); err != nil {
					mine[0].Failed = int32(errs.Win)
					own = errs.New(errs.Win, "map the window's shared memory: %v", err)
					seg = nil
				}
			}
			if seg != nil {
				region = w.rma.Register(&mine[0], c.rank, c.group.ranks, offers, seg)
			}
			return gather(mine, offers)
		case 4:
			if own != nil {
				return fail(s, own)
			}
			for i := range offers {
				if offers[i].Failed != 0 {
					return fail(s, errs.New(errs.Win, "rank %d of the communicator could not map the window's shared memory (it must run as the same user, and /proc must be mounted)", i))
				}
			}
			seg.CloseFD()
			copies := true
			for i := range seconds {
				copies = copies && seconds[i].Copy == 1
				if seconds[i].Mapped == 0 {
					shared = nil
				}
			}
			win := &Window{comm: c}
			h := wins.add(win)
			var e *errs.Error
			if win.Win, e = w.rma.Attach(c.ctx, h, c.rank, c.group.ranks, offers, seg, region, copies, shared, c.coll.Bar); e != nil {
				wins.take(h)
				return fail(s, e)
			}
			win.Hint = hintFor(comm)
			win.prepare()
			s.result = h
			win.logWindow()
			// Nobody may use the window before all have it.
			c.coll.Calling(madeTogether)
			return c.coll.BarrierByMessages()
		}
		return nil
	}
	s.Advance()
	return reqs.add(&Request{op: s}), 0
}

// WinNoLocks says whether this rank promises to lock nothing of a window.
func WinNoLocks(h int64, on bool) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		win.SetNoLocks(on)
	}
	return CodeOf(e)
}

// WinCheckFree reports whether a window can be freed now: before Python lets go of
// what belongs to it.
func WinCheckFree(h int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckFree()
	}
	return CodeOf(e)
}

// WinFree begins to free a window.
func WinFree(h int64) (req int64, code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	if e := win.CheckFree(); e != nil {
		return 0, CodeOf(e)
	}
	o := &syncOp{win: win, call: job.CallWinFree, then: func() {
		wins.take(h)
		comms.each(func(ch int64, c *Comm) {
			if c == win.comm {
				comms.take(ch)
			}
		})
		win.comm.close()
		win.Win.Free()
		log.Debugf("rma", "window %d freed", win.ID)
	}}
	o.Advance()
	return reqs.add(&Request{op: o}), 0
}

// WinInfo is "addr nbytes disp_unit flavor rank size desc" of a window; desc is the
// address of its descriptor. Or "error CODE".
func WinInfo(h int64) string {
	win, e := getWin(h)
	if e != nil {
		return fmt.Sprintf("error %d", CodeOf(e))
	}
	t := win.Desc.Target(win.Rank)
	return fmt.Sprintf("%d %d %d %d %d %d %d", uintptr(t.Base), t.Bytes, t.Unit, win.Flavor, win.Rank, win.Size, uintptr(unsafe.Pointer(win.Desc)))
}

// WinCheck reports whether a handle names a window.
func WinCheck(h int64) Code {
	_, e := getWin(h)
	return CodeOf(e)
}

// WinShared is "addr nbytes disp_unit" of rank's part of a window as far as this
// process can load from and store to it; for a part that it can't, nbytes is 0.
func WinShared(h int64, rank int) string {
	win, e := getWin(h)
	if e == nil && win.Flavor == rma.FlavorDynamic {
		e = errs.New(errs.RMAFlavor, "Shared_query: memory is attached to a dynamic window in pieces; ask a window made by Win.Allocate_shared or Win.Allocate")
	}
	if e == nil && rank == p2p.ProcNull {
		for rank = 0; rank < win.Size-1 && win.Desc.Target(rank).Bytes == 0; {
			rank++
		}
	}
	if e == nil && (rank < 0 || rank >= win.Size) {
		e = win.NoRank("Shared_query: rank", rank)
	}
	if e != nil {
		return fmt.Sprintf("error %d", CodeOf(e))
	}
	t, base := win.Desc.Target(rank), win.Shown(rank)
	if base == nil {
		return fmt.Sprintf("0 0 %d", t.Unit)
	}
	return fmt.Sprintf("%d %d %d", uintptr(base), t.Bytes, t.Unit)
}

// WinPath names the way to a target: direct, copy, rdma or message.
func WinPath(h int64, rank int) string {
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size {
		return ""
	}
	return win.Path(rank)
}

// WinLater reports whether operations on a target may use their origin's memory after
// the call that starts them.
func WinLater(h int64, rank int) bool {
	win, e := getWin(h)
	return e == nil && rank >= 0 && rank < win.Size && win.Later(rank)
}

// WinAttach makes n bytes at addr part of a dynamic window.
func WinAttach(h, addr, n int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	at, e := place(addr, n)
	if e == nil {
		e = win.Attach(at, int(n))
	}
	return CodeOf(e)
}

// WinDetach takes back what was attached to a dynamic window at addr.
func WinDetach(h, addr int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.Detach(uintptr(addr))
	}
	return CodeOf(e)
}

// WinGroup makes the group of a window.
func WinGroup(h int64) int64 {
	win, e := getWin(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return addGroup(win.World)
}

// held is memory that Python objects hold: windows' segments and Alloc_mem.
var held = newTable[heldMemory](1)

type heldMemory struct {
	win   *rma.Memory
	pages []byte
}

// WinRetain keeps a window's memory mapped until WinRelease is called with the
// returned handle; 0 if the memory is the user's.
func WinRetain(h int64) int64 {
	win, e := getWin(h)
	if e != nil || win.Memory() == nil {
		return 0
	}
	win.Memory().Retain()
	return held.add(&heldMemory{win: win.Memory()})
}

// AllocMem allocates n bytes at a multiple of align (0: any), which windows know
// to be shared, and returns their address and a handle for WinRelease.
func AllocMem(n, align int64, addr *int64) (h int64, code Code) {
	defer Contain(&code)
	switch {
	case n < 0:
		return 0, classError(errs.Size, "Alloc_mem of %d bytes", n)
	case align < 0 || align > arena.MaxAlign || align&(align-1) != 0:
		return 0, classError(errs.InfoValue, "mpi_minimum_memory_alignment is %d; it must be a power of two up to %d", align, arena.MaxAlign)
	}
	mem, err := arena.Alloc(int(n), int(align))
	if err != nil {
		return 0, classError(errs.NoMem, "Alloc_mem of %d bytes: %v", n, err)
	}
	*addr = int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	return held.add(&heldMemory{pages: mem}), 0
}

// ArenaProblem says why memory that Alloc_mem gives is not shared, "" if it is.
func ArenaProblem() string {
	if err := arena.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// WinRelease ends what WinRetain or AllocMem began.
func WinRelease(h int64) {
	m := held.take(h)
	switch {
	case m == nil:
	case m.win != nil:
		m.win.Release()
	default:
		_ = arena.Free(m.pages)
	}
}

// WinDesc is the descriptor of a window that the hot calls use, nil if the
// handle names none.
func WinDesc(h int64) unsafe.Pointer {
	win, e := getWin(h)
	if e != nil {
		return nil
	}
	return unsafe.Pointer(win.Desc)
}
