package mpi

import (
	"sync"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// Access describes a one-sided operation. Types and the operation are handles.
// pybind/shim/gormapy.h has the same layout.
type Access struct {
	Kind           AccessKind
	Win            int64
	Origin, Result Operand
	Rank           int64
	Target         TargetSpec
	Op             int64
}

// Operand is memory of the program: count elements of a type.
type Operand struct{ Addr, Count, Type int64 }

func (o Operand) buf() (p2p.Buf, *errs.Error) { return buf(o.Addr, o.Count, o.Type) }

// TargetSpec is the target side of an access: count elements of a type at a displacement
// in the target's part of the window, in the target's units.
type TargetSpec struct{ Disp, Count, Type int64 }

// AccessKind is a kind of one-sided operation, numbered as in pybind/shim/gormapy.h.
type AccessKind int64

// Kinds of one-sided operations.
const (
	KindPut AccessKind = iota
	KindGet
	KindAcc
	KindGetAcc
	KindFetchOp
	KindCompareAndSwap // of RMACheck alone
)

// requestNames are the request-based calls, by kind.
var requestNames = [...]string{KindPut: "Rput", KindGet: "Rget", KindAcc: "Raccumulate", KindGetAcc: "Rget_accumulate"}

// transferOp is a request-based operation. It is complete when its target has answered
// its messages and all before them, and the network has completed its operations.
type transferOp struct {
	mu   sync.Mutex // several threads may wait for it
	win  *Window
	rank int
	sent uint64
	net  *rma.Outstanding // its operations that a network carries out
	gen  uint32           // Win.Resets when it was started
	done bool
	err  *errs.Error
}

func (o *transferOp) Advance() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done && o.win.Resets() != o.gen {
		o.done, o.err = true, errs.New(errs.Pending, "the request was dropped by the collective reset")
		o.net.Drop()
	}
	if !o.done && o.win.Answered(o.rank, o.sent) && o.net.Over() {
		o.done, o.err = true, o.net.Failure()
		if o.err == nil {
			o.err = o.win.LostError(o.rank, o.sent, o.net)
		}
		if o.err == nil {
			o.err = o.win.Failure()
		}
		o.net.Drop()
	}
	return o.done
}

func (o *transferOp) Check() error     { return o.win.CheckQuiet(o.rank) }
func (o *transferOp) Abandon()         { o.net.Drop() } // its target is gone, or MPI finalized
func (o *transferOp) Err() *errs.Error { return o.err }
func (o *transferOp) describe(why *engine.Reason) {
	why.Call, why.Ctx, why.Peer, why.Info = job.CallWait, uint64(o.win.ID), o.win.World[o.rank], o.win.label
}

// RMARequest is RMA, and returns a request for the completion of this operation alone.
func RMARequest(a *Access) (req int64, code Code) {
	defer Contain(&code)
	win, e := getWin(a.Win)
	if e == nil && a.Rank != p2p.ProcNull {
		e = win.CheckPassive(requestNames[a.Kind], int(a.Rank))
	}
	if e != nil {
		return 0, CodeOf(e)
	}
	if a.Rank == p2p.ProcNull {
		return reqs.add(&Request{null: true}), 0
	}
	rank := int(a.Rank)
	net := win.NewOutstanding(rank)
	if code := win.access(a, net); code != 0 {
		net.Drop()
		return 0, code
	}
	return reqs.add(&Request{op: &transferOp{win: win, rank: rank, sent: win.Sent(rank), net: net, gen: win.Resets()}}), 0
}

// RMA starts a one-sided operation. The next call that ends the epoch or flushes
// completes it.
func RMA(a *Access) (code Code) {
	defer Contain(&code)
	win, e := getWin(a.Win)
	if e != nil {
		return CodeOf(e)
	}
	if a.Rank == p2p.ProcNull {
		return 0
	}
	return win.access(a, nil)
}

// RMACheck returns the error that RMA, or CompareAndSwap, has whenever the operation is done. The addresses are not looked at.
func RMACheck(a *Access) (code Code) {
	defer Contain(&code)
	win, e := getWin(a.Win)
	if e == nil && (a.Rank < 0 || a.Rank >= int64(win.Size)) {
		e = win.NoRank("the target rank", int(a.Rank))
	}
	if e == nil {
		e = win.check(a)
	}
	return CodeOf(e)
}

func (win *Window) check(a *Access) *errs.Error {
	if a.Kind == KindFetchOp {
		if e := a.single(); e != nil {
			return e
		}
	}
	target, e := shape(a.Target.Count, a.Target.Type)
	if e != nil {
		return e
	}
	to := rma.TargetSpec{Rank: int(a.Rank), Disp: int(a.Target.Disp), Count: target.Count, Type: target.Type}
	if a.Kind == KindCompareAndSwap {
		return win.CheckCompareAndSwap(to.Type, to.Rank, to.Disp)
	}
	var origin, result p2p.Buf
	if !a.isAccumulate() || op.Op(a.Op) != op.NoOp {
		if origin, e = shape(a.Origin.Count, a.Origin.Type); e != nil {
			return e
		}
	}
	if !a.isAccumulate() {
		return win.CheckTransfer(to, origin.Bytes())
	}
	if e := a.checkOp(); e != nil {
		return e
	}
	if a.Kind == KindAcc {
		return win.CheckAccumulate(origin, nil, to, op.Op(a.Op))
	}
	if result, e = shape(a.Result.Count, a.Result.Type); e != nil {
		return e
	}
	return win.CheckAccumulate(origin, &result, to, op.Op(a.Op))
}

// CompareAndSwap replaces an element at a target by *origin if it equals *compare, and
// writes its former value to *result.
func CompareAndSwap(h, origin, compare, result, datatype int64, rank int, disp int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	if rank == p2p.ProcNull {
		return 0
	}
	if code := win.awaitSettled(rank); code != 0 {
		return code
	}
	t, e := committedType(datatype)
	for _, at := range []int64{origin, compare, result} {
		if e == nil {
			_, e = buf(at, 1, datatype)
		}
	}
	if e == nil {
		e = win.CompareAndSwap(pointer(origin), pointer(compare), pointer(result), t, rank, int(disp))
	}
	return CodeOf(e)
}

// HotUpdate is RMA for a short accumulate, or a fetch if out is not nil, that the hot calls have checked; see rma.HotUpdate. It
// returns false if RMA is to do it.
func HotUpdate(h int64, f op.Op, t *dtype.Type, in, out unsafe.Pointer, n, rank int, at int64) (done bool, code Code) {
	win, e := getWin(h)
	if e != nil {
		return false, 0
	}
	done, e = win.HotUpdate(f, t, in, out, n, rank, at)
	return done, CodeOf(e)
}

// HotCompareAndSwap is CompareAndSwap, likewise.
func HotCompareAndSwap(h int64, t *dtype.Type, origin, compare, result unsafe.Pointer, rank int, at int64) (done bool, code Code) {
	win, e := getWin(h)
	if e != nil {
		return false, 0
	}
	done, e = win.HotCompareAndSwap(t, origin, compare, result, rank, at)
	return done, CodeOf(e)
}

// access starts an operation on a rank of the window, counted in net if that is not
// nil.
func (win *Window) access(a *Access, net *rma.Outstanding) Code {
	if code := win.awaitRoom(int(a.Rank)); code != 0 {
		return code
	}
	if a.Kind != KindPut { // a put may go as a message before the target has left the fence
		if code := win.awaitSettled(int(a.Rank)); code != 0 {
			return code
		}
	}
	if a.Kind == KindFetchOp {
		if e := a.single(); e != nil {
			return CodeOf(e)
		}
	}
	target, e := shape(a.Target.Count, a.Target.Type)
	if e != nil {
		return CodeOf(e)
	}
	to := rma.TargetSpec{Rank: int(a.Rank), Disp: int(a.Target.Disp), Count: target.Count, Type: target.Type, Outstanding: net}
	var origin p2p.Buf
	if !a.isAccumulate() || op.Op(a.Op) != op.NoOp {
		if origin, e = a.Origin.buf(); e != nil {
			return CodeOf(e)
		}
	}
	switch a.Kind {
	case KindPut:
		return win.putWhenSettled(origin, to)
	case KindGet:
		return CodeOf(win.Get(origin, to))
	}
	return CodeOf(win.accumulate(a, origin, to))
}

// single sets the counts of a Fetch_and_op, a single element on both sides, and checks
// its type.
func (a *Access) single() *errs.Error {
	a.Target.Count, a.Target.Type, a.Result.Count, a.Result.Type = 1, a.Origin.Type, 1, a.Origin.Type
	if op.Op(a.Op) != op.NoOp {
		a.Origin.Count = 1
	}
	t, e := getType(a.Origin.Type)
	if e == nil && !t.IsPredefined() {
		e = errs.New(errs.Type, "Fetch_and_op takes a predefined datatype, not a derived one")
	}
	return e
}

func (win *Window) putWhenSettled(origin p2p.Buf, to rma.TargetSpec) Code {
	e := win.Put(origin, to)
	if e == rma.ErrUnsettled {
		if code := win.awaitSettled(to.Rank); code != 0 {
			return code
		}
		e = win.Put(origin, to)
	}
	return CodeOf(e)
}

// isAccumulate reports whether the operation combines, and does not only transfer.
func (a *Access) isAccumulate() bool { return a.Kind != KindPut && a.Kind != KindGet }

// checkOp returns an error if an accumulate has no such operation.
func (a *Access) checkOp() *errs.Error {
	f := op.Op(a.Op)
	if f <= 0 || f > op.NoOp {
		return errs.New(errs.Op, "the operation of an accumulate must be predefined (user-defined ones are not allowed by MPI)")
	}
	if a.Kind == KindAcc && f == op.NoOp {
		return errs.New(errs.Op, "NO_OP is for Get_accumulate and Fetch_and_op, not for Accumulate")
	}
	return nil
}

// accumulate starts an Accumulate, a Get_accumulate or a Fetch_and_op.
func (win *Window) accumulate(a *Access, origin p2p.Buf, to rma.TargetSpec) *errs.Error {
	if e := a.checkOp(); e != nil {
		return e
	}
	if a.Kind == KindAcc {
		return win.Accumulate(origin, nil, to, op.Op(a.Op))
	}
	result, e := a.Result.buf()
	if e != nil {
		return e
	}
	return win.Accumulate(origin, &result, to, op.Op(a.Op))
}

// awaitSettled waits until a target has left the last fence. If it returns Interrupted,
// the operation has not begun: the caller looks at signals and calls it again.
func (win *Window) awaitSettled(rank int) Code {
	if win.Settled(rank) {
		return 0
	}
	win.AwaitSettled(rank, 1)
	defer win.AwaitSettled(rank, -1)
	return win.awaitTarget(job.CallFence, rank, func() bool { return win.Settled(rank) }, func() error { return win.CheckSettled(rank) })
}

// awaitRoom waits, in the same way, until few enough messages to a target wait for room, so
// that a target that is slow does not use up this process's memory. If the target has ended
// it returns that error.
func (win *Window) awaitRoom(rank int) Code {
	if !win.Crowded(rank) {
		return 0
	}
	check := func() error { return win.CheckCrowded(rank) }
	if err := check(); err != nil {
		return codeOfErr(err)
	}
	return win.awaitTarget(job.CallFlush, rank, func() bool { return !win.Crowded(rank) }, check)
}

func (win *Window) awaitTarget(call job.Call, rank int, done func() bool, check func() error) Code {
	why := engine.Reason{Call: call, Peer: win.World[rank], Tag: -1, Ctx: uint64(win.ID), Info: win.label}
	why.Continue(win.waits.Load())
	err := proc.eng.Wait(&why, done, check)
	if err != engine.ErrInterrupted {
		win.waits.Store(0)
	} else {
		win.waits.CompareAndSwap(0, why.Since())
	}
	switch err {
	case nil:
		return 0
	case engine.ErrInterrupted:
		return interrupted()
	default:
		return codeOfErr(err)
	}
}
