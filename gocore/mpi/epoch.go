package mpi

import (
	"slices"
	"sync/atomic"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// The epochs of windows: fences, locks, flushes, and Post/Start/Complete/Wait.

// syncOp is the synchronization of a fence or a free: first all operations of this
// process complete, then all ranks pass a barrier.
type syncOp struct {
	win     *Window
	call    job.Call
	entered bool
	passed  bool
	msg     *coll.Op // barrier by messages, if the window has no barrier block
	then    func()
	gen     uint32 // a collective reset ends it
	err     *errs.Error
}

func (o *syncOp) Advance() bool {
	if o.passed {
		return true
	}
	if over, e := o.win.comm.pt.Ended(o.gen); e != nil { // the barrier is that of later calls
		if over {
			o.err = e
			o.freeAlone()
		}
		return over
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
		if o.passed = o.msg.Advance(); o.passed && o.msg.Err() != nil {
			o.err = o.msg.Err()
			o.win.QuitFence()
			return true
		}
	} else {
		o.passed = o.win.Bar.Passed()
	}
	if o.passed {
		o.win.Settle(true)
		o.err = o.win.Failure()
		o.then()
	}
	return o.passed
}

func (o *syncOp) Check() error {
	switch {
	case o.win.comm.pt.Dropped(o.gen) != nil:
		return nil // Advance ends it
	case !o.entered:
		return o.win.CheckQuiet(-1)
	case o.msg != nil:
		return o.msg.Check()
	}
	return o.win.Bar.Check(proc.eng)
}

// Abandon implements operation.
func (o *syncOp) Abandon() {
	if o.entered && !o.passed {
		o.win.QuitFence()
	}
	if o.msg != nil {
		o.msg.Abandon()
	}
	o.freeAlone()
}

// freeAlone frees this rank's part of a window whose Free has ended without the others, if they reach it without this
// process. Else this process goes on serving them.
func (o *syncOp) freeAlone() {
	if o.call == job.CallWinFree && o.entered && !o.passed && o.win.Bar != nil && o.win.Direct() {
		o.then()
		o.passed = true
	}
}

func (o *syncOp) Err() *errs.Error { return o.err }

func (o *syncOp) describe(why *engine.Reason) {
	why.Call, why.Ctx = o.call, uint64(o.win.ID)
	why.Info = o.win.label
}

// later makes a request of an operation that has not completed. The caller waits for
// it.
func later(o operation, pending *int64) Code {
	*pending = reqs.add(&Request{op: o})
	return Interrupted
}

// finishNow waits for an operation. It makes a request of it only if the wait is
// interrupted, or if it fails and others still use its memory: until that request is over.
func finishNow(o operation, pending *int64) Code {
	var r *Request
	code := Code(0)
	if o.Advance() {
		if code = CodeOf(o.Err()); code == 0 {
			return 0
		}
		r = &Request{op: o}
	} else {
		r = takeRequestOf(o)
		code = r.wait(0, nil, 0)
	}
	switch code {
	case 0:
		giveRequest(r)
	case Interrupted:
		*pending = reqs.add(r)
	default:
		outlive(r, pending)
	}
	return code
}

// outlive keeps the request of a call that has failed, if others still use its memory: until that is over.
func outlive(r *Request, pending *int64) {
	if r.busy() {
		r.ownership.Store(freed)
		*pending = reqs.add(r)
	}
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
	if rma.Idle(assert) {
		win.Fenced(assert)
		return 0
	}
	gen := win.comm.pt.Generation()
	if win.Bar == nil || !win.Quiet(-1) {
		return finishNow(&syncOp{win: win, call: job.CallFence, gen: gen, then: func() { win.Fenced(assert) }}, pending)
	}
	win.fenceGen.Store(gen)
	if !win.Bar.Arrive() {
		why := engine.Reason{Call: job.CallFence, Peer: -2, Tag: -1, Ctx: uint64(win.ID), Info: win.label}
		switch err := proc.eng.Wait(&why, win.passed, win.checkBarrier); err {
		case nil:
			if _, e := win.comm.pt.Ended(gen); e != nil {
				return CodeOf(e)
			}
		case engine.ErrInterrupted:
			if e := ready(); e != nil {
				win.QuitFence()
				return CodeOf(e)
			}
			o := &syncOp{win: win, call: job.CallFence, gen: gen, entered: true, then: func() { win.Fenced(assert) }}
			*pending = reqs.add(&Request{op: o, why: why})
			return Interrupted
		default:
			win.QuitFence()
			return codeOfErr(err)
		}
	}
	win.Settle(true)
	win.Fenced(assert)
	return CodeOf(win.Failure())
}

// lockOp is the acquisition of one or all locks as an operation.
type lockOp struct {
	*rma.Lock
	win *Window
}

// crowd times the number of cores is how many turns may come before a rank's for it to yield the processor
// before it sleeps. A few ranks that only yield hand a lock on ten times as fast; many keep the others from running.
const crowd = 4

func (o lockOp) describe(why *engine.Reason) {
	why.Call, why.Ctx = job.CallLock, uint64(o.win.ID)
	why.SleepAtOnce = o.Ahead() > crowd*int(proc.eng.Job.Head.Cores)
	why.Peer = o.win.World[o.Target()]
	why.Info = o.win.label
}

// Lock types, numbered as in gormapy.MPI.
const (
	LockExclusive = 1
	LockShared    = 2
)

// Lock locks one target. It never waits: if the lock is not free, it returns
// Interrupted, and the caller waits for the request in *pending.
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
	waiting := l // on the heap; l stays on the stack
	return later(lockOp{&waiting, win}, pending)
}

// LockAll locks all targets shared. It never waits; see Lock.
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
	if l.Advance() {
		return CodeOf(l.Err())
	}
	waiting := l // on the heap; l stays on the stack
	return later(lockOp{&waiting, win}, pending)
}

// flushOp waits until all operations on a target (-1: on all) have completed.
type flushOp struct {
	win  *Window
	rank int
	call job.Call
	then func()
	done bool
	err  *errs.Error
}

func (o *flushOp) Advance() bool {
	if !o.done && o.win.Quiet(o.rank) && o.win.Decided(o.rank) {
		o.end()
	}
	return o.done
}

// failure returns the error of operations on a target (-1: on any) that failed after their calls.
func (win *Window) failure(rank int) *errs.Error {
	if e := win.Failure(); e != nil {
		return e
	}
	return win.BundleFailure(rank)
}

func (o *flushOp) end() {
	o.done = true
	failure := o.win.failure(o.rank)
	if o.err == nil {
		o.err = failure
	}
	if o.then != nil {
		o.then()
	}
}

// Check gives up the operations on a target that has ended. The epoch ends
// nevertheless, with that error, but not before the living targets have answered: a
// program may use its memory once it gets the error.
func (o *flushOp) Check() error {
	err := o.win.CheckQuiet(o.rank)
	if err == nil {
		return nil
	}
	if o.err == nil {
		o.err, _ = err.(*errs.Error)
	}
	if !o.win.Quiet(o.rank) {
		return nil
	}
	o.end()
	return err
}

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
	if win.Quiet(rank) && win.Decided(rank) {
		win.Win.Unlock(rank)
		return CodeOf(win.failure(rank))
	}
	return later(&flushOp{win: win, rank: rank, call: job.CallUnlock, then: func() { win.Win.Unlock(rank) }}, pending)
}

// UnlockAll ends the access to all targets. It never waits; see Lock.
func UnlockAll(h int64, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckUnlockAll("Unlock_all")
	}
	if e != nil {
		return CodeOf(e)
	}
	win.Push(-1)
	if win.Quiet(-1) && win.Decided(-1) {
		failure := win.failure(-1)
		win.Win.UnlockAll()
		return CodeOf(failure)
	}
	return later(&flushOp{win: win, rank: -1, call: job.CallUnlock, then: win.Win.UnlockAll}, pending)
}

// Flush completes all operations on rank (-1: on all); like Blocking.
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
	win.Push(rank)
	return finishNow(&flushOp{win: win, rank: rank, call: job.CallFlush}, pending)
}

// CompleteAt completes all operations on rank, in any epoch; like Blocking. It bounds the
// memory that outstanding operations keep.
func CompleteAt(h int64, rank int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	win.Push(rank)
	return finishNow(&flushOp{win: win, rank: rank, call: job.CallFlush}, pending)
}

// membership is a group, and the ranks in a window of its processes.
type membership struct {
	group *Group
	ranks []int
}

// members returns the ranks in the window of a group's processes, which nobody changes. Programs name the same group again and
// again: last is what it has been for the call before.
func (win *Window) members(call string, h int64, last *atomic.Pointer[membership]) ([]int, *errs.Error) {
	g, e := getGroup(h)
	if e != nil {
		return nil, e
	}
	if m := last.Load(); m != nil && m.group == g {
		return m.ranks, nil
	}
	ranks := make([]int, len(g.ranks))
	for i, world := range g.ranks {
		if ranks[i] = slices.Index(win.World, world); ranks[i] < 0 {
			return nil, errs.New(errs.Group, "%s: rank %d of the group, rank %d of COMM_WORLD, is not in the window, which has %d; its group is win.group", call, i, world, win.Size)
		}
	}
	last.Store(&membership{g, ranks})
	return ranks, nil
}

// WinPost exposes this process's part to a group. It does not wait.
func WinPost(h, group int64, assert int) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	origins, e := win.members("Post", group, &win.posted)
	if e == nil {
		e = win.Win.Post(origins, assert)
	}
	return CodeOf(e)
}

// startOp is an access epoch that waits for its targets to post.
type startOp struct {
	*rma.Start
	win *Window
}

func (o startOp) describe(why *engine.Reason) { o.win.awaits(why, job.CallStart, o.Awaited()) }

// awaits fills in the wait record for a rank of the window, or -1.
func (win *Window) awaits(why *engine.Reason, call job.Call, rank int) {
	why.Call, why.Ctx, why.Peer, why.Info = call, uint64(win.ID), -2, win.label
	if rank >= 0 {
		why.Peer = win.World[rank]
	}
}

// WinStart begins an access epoch on a group; like Blocking.
func WinStart(h, group int64, assert int, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	targets, e := win.members("Start", group, &win.started)
	if e != nil {
		return CodeOf(e)
	}
	start, e := win.Win.Start(targets, assert)
	if e != nil {
		return CodeOf(e)
	}
	if start.Advance() {
		return CodeOf(start.Err())
	}
	return finishNow(startOp{start, win}, pending)
}

// WinComplete ends the access epoch that Start began. It never waits; see Lock.
func WinComplete(h int64, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckComplete()
	}
	if e != nil {
		return CodeOf(e)
	}
	if win.Quiet(-1) && win.Decided(-1) {
		failure := win.failure(-1)
		win.Win.Complete()
		return CodeOf(failure)
	}
	return later(&flushOp{win: win, rank: -1, call: job.CallComplete, then: win.Win.Complete}, pending)
}

// exposedOp is an exposure epoch that waits for its origins to complete.
type exposedOp struct {
	*rma.Exposed
	win *Window
}

func (o exposedOp) describe(why *engine.Reason) { o.win.awaits(why, job.CallExposed, o.Awaited()) }

// WinWait waits for the end of the exposure epoch that Post began; like
// Blocking.
func WinWait(h int64, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckExposed("Wait")
	}
	if e != nil {
		return CodeOf(e)
	}
	x := win.Exposed()
	if x.Advance() {
		return CodeOf(x.Err())
	}
	return finishNow(exposedOp{x, win}, pending)
}

// WinTest sets *done to 1 if the exposure epoch has ended.
func WinTest(h int64, done *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckExposed("Test")
	}
	if e != nil {
		return CodeOf(e)
	}
	x := win.Exposed()
	if !x.Advance() {
		proc.eng.Progress()
		if !x.Advance() {
			if err := x.Check(); err != nil {
				return codeOfErr(err)
			}
			proc.eng.GiveWay()
			return 0
		}
	}
	*done = 1
	return CodeOf(x.Err())
}
