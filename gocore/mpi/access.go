package mpi

import (
	"sync"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// Kinds of one-sided operations.
const (
	KindPut = iota
	KindGet
	KindAcc
	KindGetAcc
	KindFetchOp
	KindCAS
)

// requestNames are the request-based calls, by kind.
var requestNames = [...]string{KindPut: "Rput", KindGet: "Rget", KindAcc: "Raccumulate", KindGetAcc: "Rget_accumulate"}

// transferOp is a request-based operation: the messages to its target up to its
// own have to be answered.
type transferOp struct {
	mu   sync.Mutex // several threads may wait for it
	win  *Window
	rank int
	sent uint64
	net  *rma.Outstanding // what a network does of it
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
			o.err = o.win.Lost(o.rank, o.sent, o.net)
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

// RMARequest is RMA with a request for the completion of that operation alone.
func RMARequest(kind int, h, oaddr, ocount, otype, raddr, rcount, rtype int64, rank int, disp, tcount, ttype, oph int64) (req int64, code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil && rank != p2p.ProcNull {
		e = win.CheckPassive(requestNames[kind], rank)
	}
	if e != nil {
		return 0, CodeOf(e)
	}
	var net *rma.Outstanding
	if rank != p2p.ProcNull {
		net = win.NewOutstanding(rank)
	}
	if code := transfer(kind, h, oaddr, ocount, otype, raddr, rcount, rtype, rank, disp, tcount, ttype, oph, net); code != 0 {
		net.Drop()
		return 0, code
	}
	if rank == p2p.ProcNull {
		return reqs.add(&Request{null: true}), 0
	}
	return reqs.add(&Request{op: &transferOp{win: win, rank: rank, sent: win.Sent(rank), net: net, gen: win.Resets()}}), 0
}

// RMA starts a one-sided operation; it has completed after the next flush,
// unlock or fence. For KindCAS origin is at oaddr, the value to compare with at
// tcount, the result at raddr.
func RMA(kind int, h, oaddr, ocount, otype, raddr, rcount, rtype int64, rank int, disp, tcount, ttype, oph int64) (code Code) {
	defer Contain(&code)
	return transfer(kind, h, oaddr, ocount, otype, raddr, rcount, rtype, rank, disp, tcount, ttype, oph, nil)
}

// transfer is RMA, counted in net if that is not nil.
func transfer(kind int, h, oaddr, ocount, otype, raddr, rcount, rtype int64, rank int, disp, tcount, ttype, oph int64, net *rma.Outstanding) Code {
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	if rank == p2p.ProcNull {
		return 0
	}
	defer w.eng.HandOver()
	if !win.Settled(rank) && kind != KindPut {
		if code := win.awaitSettled(rank); code != 0 {
			return code
		}
	}
	if kind == KindCAS {
		t, e := committedType(otype)
		for _, at := range []int64{oaddr, tcount, raddr} {
			if e == nil {
				_, e = buf(at, 1, otype)
			}
		}
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
	target, e := shape(tcount, ttype)
	if e != nil {
		return CodeOf(e)
	}
	spot := rma.Spot{Rank: rank, Disp: int(disp), Count: target.Count, Type: target.Type, Outstanding: net}
	var origin p2p.Buf
	f := op.Op(oph)
	if kind == KindPut || kind == KindGet || f != op.NoOp {
		if origin, e = buf(oaddr, ocount, otype); e != nil {
			return CodeOf(e)
		}
	}
	switch kind {
	case KindPut:
		e := win.Put(origin, spot)
		if e == rma.ErrUnsettled {
			if code := win.awaitSettled(rank); code != 0 {
				return code
			}
			e = win.Put(origin, spot)
		}
		return CodeOf(e)
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

// awaitSettled waits until a target has left the last fence. Interrupted: the
// operation has not begun; the caller looks at signals and calls it again.
func (win *Window) awaitSettled(rank int) Code {
	why := engine.Reason{Call: job.CallFence, Peer: win.World[rank], Tag: -1, Ctx: uint64(win.ID), Info: win.label}
	switch err := w.eng.Wait(&why, func() bool { return win.Settled(rank) }, func() error { return win.CheckSettled(rank) }); err {
	case nil:
		return 0
	case engine.ErrInterrupted:
		return interrupted()
	default:
		return codeOfErr(err)
	}
}
