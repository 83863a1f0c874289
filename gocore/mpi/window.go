package mpi

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/op"
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
	win.Win.Reset(win.Rank == 0)
}

// WinCreate begins to make a window; the request's result is its handle. The
// ranks exchange offers, agree on whether the kernel copies between them, and
// map the segment that rank 0 makes.
func WinCreate(flavor int, addr, bytes, unit, comm int64) (req int64, code Code) {
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
	if f != rma.FlavorCreate && f != rma.FlavorAllocate && f != rma.FlavorShared {
		return 0, classError(errs.RMAFlavor, "windows of flavor %d are not supported yet", flavor)
	}
	dup := parent.split(0, int64(parent.rank))
	var c *Comm
	var seg *sys.Segment
	mine := []rma.Offer{rma.NewOffer(f, pointer(addr), int(bytes), int(unit))}
	offers := make([]rma.Offer, parent.size)
	second := []rma.Offer{{}}
	seconds := make([]rma.Offer, parent.size)
	gather := func(mine, all []rma.Offer) *coll.Op {
		b := rawBytes(unsafe.Pointer(&mine[0]), rma.OfferBytes)
		return c.coll.Allgather(&b, coll.Uniform(rawBytes(unsafe.Pointer(&all[0]), rma.OfferBytes), c.size)).Announce(madeTogether)
	}
	fail := func(s *sequence, e *errs.Error) *coll.Op {
		s.err = e
		if seg != nil {
			seg.Close()
		}
		comms.take(dup.result)
		c.close()
		return nil
	}
	phase := 0
	s := &sequence{call: job.CallWinCreate}
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
			if c.rank == 0 {
				var e *errs.Error
				if seg, e = rma.CreateSegment(offers); e != nil {
					second[0].Failed = int32(e.Class)
				} else {
					second[0].FD = int32(seg.FD)
				}
			}
			return gather(second, seconds)
		case 3:
			if cls := seconds[0].Failed; cls != 0 {
				return fail(s, errs.New(errs.Class(cls), "rank 0 of the communicator could not make the shared memory for the window"))
			}
			mine[0].Failed = 0
			if c.rank != 0 {
				var err error
				if seg, err = sys.OpenSegment(int(offers[0].PID), int(seconds[0].FD)); err != nil {
					mine[0].Failed = int32(errs.Win)
					seg = nil
				}
			}
			return gather(mine, offers)
		case 4:
			for i := range offers {
				if offers[i].Failed != 0 {
					return fail(s, errs.New(errs.Win, "rank %d of the communicator could not map the window's shared memory (it must run as the same user, and /proc must be mounted)", i))
				}
			}
			seg.CloseFD()
			copies := true
			for i := range seconds {
				copies = copies && seconds[i].Copy == 1
			}
			win := &Window{comm: c}
			h := wins.add(win)
			var e *errs.Error
			if win.Win, e = w.rma.Attach(c.ctx, h, c.rank, c.group.ranks, offers, seg, copies, c.coll.Bar); e != nil {
				wins.take(h)
				return fail(s, e)
			}
			win.Hint = hintFor(comm)
			win.prepare()
			s.result = h
			win.logWindow()
			// Nobody may use the window before all have it.
			return c.coll.BarrierByMessages().Announce(madeTogether)
		}
		return nil
	}
	s.Advance()
	return reqs.add(&Request{op: s}), 0
}

// syncOp is a fence or the synchronisation of a free: first everything this
// process started completes, then all ranks meet.
type syncOp struct {
	win     *Window
	call    job.Call
	entered bool
	passed  bool
	msg     *coll.Op // barrier by messages, if the window has no block
	then    func()
	err     *errs.Error
}

func (o *syncOp) Advance() bool {
	if o.passed {
		return true
	}
	if !o.entered {
		if !o.win.Quiet(-1) {
			return false
		}
		o.entered = true
		if o.win.Bar != nil {
			o.win.Bar.Arrive()
		} else {
			o.msg = o.win.comm.coll.BarrierByMessages()
		}
	}
	if o.msg != nil {
		o.passed = o.msg.Advance()
	} else {
		o.passed = o.win.Bar.Passed()
	}
	if o.passed {
		o.err = o.win.Failure()
		o.then()
	}
	return o.passed
}

func (o *syncOp) Check() error {
	switch {
	case !o.entered:
		return o.win.CheckQuiet(-1)
	case o.msg != nil:
		return o.msg.Check()
	}
	return o.win.Bar.Check(w.eng)
}

func (o *syncOp) Abandon() {
	if o.msg != nil {
		o.msg.Abandon()
	}
}

func (o *syncOp) Err() *errs.Error { return o.err }

func (o *syncOp) describe(why *engine.Reason) {
	why.Call, why.Ctx = o.call, uint64(o.win.ID)
	why.Info = o.win.label
}

// later makes a request of an operation that has not completed, for the caller
// to wait for.
func later(o operation, pending *int64) Code {
	*pending = reqs.add(&Request{op: o})
	return Interrupted
}

// finishNow completes an operation without a request if it can be.
func finishNow(o operation, pending *int64) Code {
	if o.Advance() {
		return CodeOf(o.Err())
	}
	r := &Request{op: o}
	code := r.wait(0, nil, 0)
	if code == Interrupted {
		*pending = reqs.add(r)
	}
	return code
}

// Fence is MPI_Win_fence; like Blocking.
func Fence(h int64, assert int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckFence(assert)
	}
	if e != nil {
		return CodeOf(e)
	}
	if win.Bar == nil || !win.Quiet(-1) {
		return finishNow(&syncOp{win: win, call: job.CallFence, then: func() { win.Fenced(assert) }}, pending)
	}
	if !win.Bar.Arrive() {
		why := engine.Reason{Call: job.CallFence, Peer: -2, Tag: -1, Ctx: uint64(win.ID), Info: win.label}
		switch err := w.eng.Wait(&why, win.passed, win.checkBarrier); err {
		case nil:
		case engine.ErrInterrupted:
			if e := ready(); e != nil {
				return CodeOf(e)
			}
			o := &syncOp{win: win, call: job.CallFence, entered: true, then: func() { win.Fenced(assert) }}
			*pending = reqs.add(&Request{op: o, why: why})
			return Interrupted
		default:
			return codeOfErr(err)
		}
	}
	win.Fenced(assert)
	return CodeOf(win.Failure())
}

// WinCheckFree tells whether a window can be freed now: before Python lets go of
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

// lockOp is the acquisition of locks as an operation.
type lockOp struct {
	*rma.Lock
	win *Window
}

func (o lockOp) describe(why *engine.Reason) {
	why.Call, why.Ctx = job.CallLock, uint64(o.win.ID)
	why.Peer = o.win.World[o.Target()]
	why.Info = o.win.label
}

// Lock types, numbered as in gormapy.MPI.
const (
	LockExclusive = 1
	LockShared    = 2
)

// Lock locks one target. It never waits: if the lock is not free it returns
// Interrupted, and the request in *pending is to be waited for.
func Lock(h int64, rank, kind, assert int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	if rank == p2p.ProcNull {
		return 0
	}
	if kind != LockExclusive && kind != LockShared {
		return classError(errs.Locktype, "the lock type %d is neither LOCK_EXCLUSIVE nor LOCK_SHARED", kind)
	}
	l, e := win.Win.Lock(rank, kind == LockExclusive, assert)
	if e != nil {
		return CodeOf(e)
	}
	if l.Advance() {
		return CodeOf(l.Err())
	}
	waiting := l // the copy that lives on
	return later(lockOp{&waiting, win}, pending)
}

// LockAll locks all targets shared; like Blocking.
func LockAll(h int64, assert int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	l, e := win.Win.LockAll(assert)
	if e != nil {
		return CodeOf(e)
	}
	return finishNow(lockOp{&l, win}, pending)
}

// flushOp waits until what was started for a target (-1: all) has completed.
type flushOp struct {
	win  *Window
	rank int
	call job.Call
	then func()
	done bool
	err  *errs.Error
}

func (o *flushOp) Advance() bool {
	if !o.done && o.win.Quiet(o.rank) {
		o.done = true
		o.err = o.win.Failure()
		if o.then != nil {
			o.then()
		}
	}
	return o.done
}
func (o *flushOp) Check() error     { return o.win.CheckQuiet(o.rank) }
func (o *flushOp) Abandon()         {}
func (o *flushOp) Err() *errs.Error { return o.err }
func (o *flushOp) describe(why *engine.Reason) {
	why.Call, why.Ctx, why.Peer = o.call, uint64(o.win.ID), -1
	if o.rank >= 0 {
		why.Peer = o.win.World[o.rank]
	}
	why.Info = o.win.label
}

// Unlock ends the access to one target. It never waits; see Lock.
func Unlock(h int64, rank int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	if rank == p2p.ProcNull {
		return 0
	}
	if e := win.CheckUnlock("Unlock", rank); e != nil {
		return CodeOf(e)
	}
	if win.Quiet(rank) {
		win.Win.Unlock(rank)
		return CodeOf(win.Failure())
	}
	return later(&flushOp{win: win, rank: rank, call: job.CallUnlock, then: func() { win.Win.Unlock(rank) }}, pending)
}

// UnlockAll ends the access to all targets; like Blocking.
func UnlockAll(h int64, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckUnlockAll("Unlock_all")
	}
	if e != nil {
		return CodeOf(e)
	}
	return finishNow(&flushOp{win: win, rank: -1, call: job.CallUnlock, then: win.Win.UnlockAll}, pending)
}

// Flush completes everything to rank (-1: to all); like Blocking.
func Flush(h int64, rank int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	switch {
	case e != nil:
	case rank == p2p.ProcNull:
		return 0
	case rank == -1:
		e = win.CheckUnlockAll("Flush_all")
	default:
		e = win.CheckUnlock("Flush", rank)
	}
	if e != nil {
		return CodeOf(e)
	}
	return finishNow(&flushOp{win: win, rank: rank, call: job.CallFlush}, pending)
}

// Drain waits until everything to rank has completed, in whatever epoch; like
// Blocking. It bounds the memory that operations under way keep.
func Drain(h int64, rank int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	return finishNow(&flushOp{win: win, rank: rank, call: job.CallFlush}, pending)
}

// Kinds of one-sided operations.
const (
	KindPut = iota
	KindGet
	KindAcc
	KindGetAcc
	KindFetchOp
	KindCAS
)

// RMA starts a one-sided operation; it has completed after the next flush,
// unlock or fence. For KindCAS origin is at oaddr, the value to compare with at
// tcount, the result at raddr.
func RMA(kind int, h, oaddr, ocount, otype, raddr, rcount, rtype int64, rank int, disp, tcount, ttype, oph int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	if rank == p2p.ProcNull {
		return 0
	}
	if kind == KindCAS {
		t, e := getType(otype)
		if e == nil {
			e = win.CompareAndSwap(pointer(oaddr), pointer(tcount), pointer(raddr), t, rank, int(disp))
		}
		return CodeOf(e)
	}
	if kind == KindFetchOp {
		tcount, ttype, rcount, rtype = 1, otype, 1, otype
		if op.Op(oph) != op.NoOp {
			ocount = 1
		}
		if t, e := getType(otype); e != nil {
			return CodeOf(e)
		} else if !t.IsPredefined() {
			return classError(errs.Type, "Fetch_and_op takes a predefined datatype, not a derived one")
		}
	}
	target, e := buf(0, tcount, ttype)
	if e != nil {
		return CodeOf(e)
	}
	spot := rma.Spot{Rank: rank, Disp: int(disp), Count: target.Count, Type: target.Type}
	var origin p2p.Buf
	f := op.Op(oph)
	if kind == KindPut || kind == KindGet || f != op.NoOp {
		if origin, e = buf(oaddr, ocount, otype); e != nil {
			return CodeOf(e)
		}
	}
	switch kind {
	case KindPut:
		return CodeOf(win.Put(origin, spot))
	case KindGet:
		return CodeOf(win.Get(origin, spot))
	}
	if f <= 0 || f > op.NoOp {
		return classError(errs.Op, "the operation of an accumulate must be predefined (user-defined ones are not allowed by MPI)")
	}
	var result *p2p.Buf
	if kind != KindAcc {
		b, e := buf(raddr, rcount, rtype)
		if e != nil {
			return CodeOf(e)
		}
		result = &b
	} else if f == op.NoOp {
		return classError(errs.Op, "NO_OP is for Get_accumulate and Fetch_and_op, not for Accumulate")
	}
	return CodeOf(win.Accumulate(origin, result, spot, f))
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

// WinShared is "addr nbytes disp_unit" of rank's part of a window as far as this
// process can load from and store to it; for a part that it can't, nbytes is 0.
func WinShared(h int64, rank int) string {
	win, e := getWin(h)
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
	t := win.Desc.Target(rank)
	if t.Base == nil {
		return fmt.Sprintf("0 0 %d", t.Unit)
	}
	return fmt.Sprintf("%d %d %d", uintptr(t.Base), t.Bytes, t.Unit)
}

// WinWay names the way to a target: direct, copy or message.
func WinWay(h int64, rank int) string {
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size {
		return ""
	}
	return win.Way(rank)
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

// AllocMem maps n bytes and returns their address and a handle for WinRelease.
func AllocMem(n int64, addr *int64) (h int64, code Code) {
	defer Contain(&code)
	if n < 0 {
		return 0, classError(errs.Size, "Alloc_mem of %d bytes", n)
	}
	mem, err := rma.AllocMem(int(n))
	if err != nil {
		return 0, classError(errs.NoMem, "Alloc_mem of %d bytes: %v", n, err)
	}
	*addr = int64(uintptr(unsafe.Pointer(&mem[0])))
	return held.add(&heldMemory{pages: mem}), 0
}

// WinRelease ends what WinRetain or AllocMem began.
func WinRelease(h int64) {
	m := held.take(h)
	switch {
	case m == nil:
	case m.win != nil:
		m.win.Release()
	default:
		rma.FreeMem(m.pages)
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
