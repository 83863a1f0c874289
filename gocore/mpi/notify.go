package mpi

import (
	"math"
	"sync"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// notification is the wait for notifications as an operation; see rma/notify.go.
type notification struct {
	win   *Window
	name  int64 // the window's handle
	slot  int
	count int
	until int64 // by job.Now's clock; 0: it waits for ever

	mu    sync.Mutex
	waits bool // it has called AwaitNotified
	over  bool
	taken bool
	ended bool // ranks had failed or ended at the last check
	err   *errs.Error
}

// WinNotify tells a slot of a rank that the operations before have completed.
func WinNotify(h int64, rank, slot int) Code {
	win, e := getWin(h)
	if e == nil && rank != p2p.ProcNull {
		e = win.Notify(rank, slot)
	}
	return CodeOf(e)
}

// WinRing wakes a rank of this node that waits for notifications, and whose counter has been added to.
func WinRing(h int64, rank int) {
	if win := wins.get(h); win != nil {
		win.Ring(rank)
	}
}

// WinCheckNotify returns an error if a rank can't be notified now.
func WinCheckNotify(h int64, rank, slot int) Code {
	win, e := getWin(h)
	switch {
	case e != nil:
	case rank == p2p.ProcNull:
		e = rma.CheckSlot("put_notify", slot)
	default:
		e = win.CheckNotify(rank, slot)
	}
	return CodeOf(e)
}

// WinNotified begins to wait for count notifications in a slot of this rank, for at most wait nanoseconds, or for ever if that is
// negative. The request's result is 1 if they have come, and then they are taken, else 0.
func WinNotified(h int64, slot, count, wait int64) (req int64, code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = rma.CheckSlot("win_notified", int(slot))
	}
	if e == nil && (count < 1 || count > math.MaxInt32) {
		e = errs.New(errs.Count, "win_notified: the count %d is not between 1 and %d", count, math.MaxInt32)
	}
	if e != nil {
		return 0, CodeOf(e)
	}
	n := &notification{win: win, name: h, slot: int(slot), count: int(count)}
	if wait >= 0 {
		n.until = max(job.Now()+min(wait, math.MaxInt64/2), 1)
	}
	if !n.Advance() {
		win.AwaitNotified(1)
		n.waits = true
	}
	return reqs.add(&Request{op: n}), 0
}

// WinPending returns how many notifications of a slot have not been taken, or a negative code.
func WinPending(h int64, slot int) int {
	win, e := getWin(h)
	if e == nil {
		e = rma.CheckSlot("pending", slot)
	}
	if e != nil {
		return -CodeOf(e)
	}
	proc.eng.Progress()
	return win.Notified(slot)
}

// WinNotifiedDrop ends a wait for notifications that nobody waits for any more. It takes none: it gives back what it has taken.
func WinNotifiedDrop(req int64) {
	r := reqs.get(req)
	if r == nil {
		return
	}
	if n, ok := r.op.(*notification); ok && reqs.take(req) != nil {
		n.Abandon()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.taken {
			n.taken = false
			n.win.GiveBackNotified(n.slot, n.count)
		}
	}
}

// WinGiveBackNotified gives back what a wait for notifications has taken for a call that a signal's handler has ended.
func WinGiveBackNotified(h int64, slot, count int) {
	if win := wins.get(h); win != nil {
		win.GiveBackNotified(slot, count)
	}
}

// Advance implements operation.
func (n *notification) Advance() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.taken = n.exists() && n.win.TakeNotified(n.slot, n.count)
		if n.taken || n.until != 0 && job.Now() >= n.until {
			n.end(nil)
		}
	}
	return n.over
}

// exists reports whether the window does.
func (n *notification) exists() bool { return wins.get(n.name) == n.win }

// end ends the wait, under mu.
func (n *notification) end(e *errs.Error) {
	n.over, n.err = true, e
	if n.waits && n.exists() {
		n.win.AwaitNotified(-1)
	}
}

// Check implements operation.
func (n *notification) Check() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return nil
	}
	e := errs.New(errs.Win, "the window has been freed")
	if n.exists() {
		e = n.win.CheckNotified()
		if e != nil && !n.ended {
			n.ended = true // a rank may have notified before it ended, since the last look: look once more
			return nil
		}
	}
	if e == nil {
		return nil
	}
	n.end(e)
	return e
}

// Abandon implements operation. Nothing is taken any more.
func (n *notification) Abandon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.end(errs.New(errs.Other, "the wait for notifications was given up"))
	}
}

// Err implements operation.
func (n *notification) Err() *errs.Error { return n.err }

// handle implements maker.
func (n *notification) handle() int64 {
	if n.taken {
		return 1
	}
	return 0
}

func (n *notification) describe(why *engine.Reason) {
	why.Call, why.Ctx, why.Peer, why.Info, why.Until = job.CallNotified, uint64(n.win.ID), -1, n.win.label, n.until
}
