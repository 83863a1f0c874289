package rma

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/log"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Outstanding counts the operations that a network has accepted and not completed: of
// one target, or of one request.
type Outstanding struct {
	w      *Win
	target int
	left   atomic.Int64
	cookie uint64
	parent *Outstanding // of a request: its target's
	err    atomic.Pointer[errs.Error]
}

func (w *Win) newOutstanding(target int) *Outstanding {
	o := &Outstanding{w: w, target: target}
	o.cookie = w.rma.eng.Enroll(o)
	return o
}

// NewOutstanding returns a count for one request to one target, which the target's
// count includes. It is nil if operations on that target are not counted.
func (w *Win) NewOutstanding(target int) *Outstanding {
	if w.paths[target] != pathRDMA {
		return nil
	}
	o := w.newOutstanding(target)
	o.parent = w.outstanding[target].Load()
	return o
}

// Idle reports whether all operations have completed; a nil Outstanding has none.
func (o *Outstanding) Idle() bool { return o == nil || o.left.Load() == 0 }

// Over reports whether the operations have completed or were given up.
func (o *Outstanding) Over() bool { return o.Idle() || o.givenUp() }

// givenUp reports whether a request's operations were given up with their target.
func (o *Outstanding) givenUp() bool {
	return o != nil && o.parent != nil && o.w.outstanding[o.target].Load() != o.parent
}

// Failure returns the error of a request's operations. The window does not report it
// again.
func (o *Outstanding) Failure() *errs.Error {
	if o == nil {
		return nil
	}
	e := o.err.Load()
	if e != nil {
		o.w.failure.CompareAndSwap(e, nil)
	}
	return o.w.judge(e, o.target)
}

// judge returns the error to report for e. Operations fail a little before it is known
// that their target is lost.
func (w *Win) judge(e *errs.Error, rank int) *errs.Error {
	if e == nil || e.Class != errs.Win || rank < 0 {
		return e
	}
	w.rma.eng.PollSure() // the transport that failed it reports the lost connection in the same poll
	if world := w.World[rank]; w.rma.eng.Lost(world) {
		return errs.New(errs.ProcFailed, "%s: %s", w.rma.eng.HowGone(world), e.Detail)
	}
	return e
}

// Drop ends the use of a request's count.
func (o *Outstanding) Drop() {
	if o != nil {
		o.cancel()
	}
}

func (o *Outstanding) cancel() { o.w.rma.eng.Cancel(o.cookie) }

func (o *Outstanding) begin() {
	o.left.Add(1)
	if o.parent != nil {
		o.parent.left.Add(1)
	}
}

// Completed implements engine.Completer.
func (o *Outstanding) Completed(err error) {
	if err != nil {
		e := o.w.failedLater(o.target, err)
		o.err.CompareAndSwap(nil, e)
		if o.w.failure.CompareAndSwap(nil, e) {
			o.w.culprit.Store(int32(o.target))
		}
	}
	o.left.Add(-1)
	if o.parent != nil {
		o.parent.left.Add(-1)
	}
	o.w.Ring(o.w.Rank) // no poll may have seen it: a thread that has it from the network at once calls this, too
}

// failedLater returns the error of an operation that the network had accepted. If the
// target's process has ended, that is the error.
func (w *Win) failedLater(rank int, err error) *errs.Error {
	class, gone := errs.Win, ""
	if sys.IsFault(err) {
		class = errs.Buffer
	} else if w.rma.eng.Gone(w.World[rank]) || errors.Is(err, fabric.ErrPeerGone) {
		class, gone = errs.ProcFailed, w.rma.eng.HowGone(w.World[rank])+": "
	}
	return errs.New(class, "an operation on rank %d of the window has failed: %s%v", rank, gone, err)
}

// networkLimit is how long a collective reset waits for outstanding operations. They
// may not complete: a peer can be stopped.
const networkLimit = time.Second

// awaitNetwork waits until the network no longer reads or writes local memory for the
// window: outstanding operations can't be revoked, and the program uses the memory
// again after the reset.
func (w *Win) awaitNetwork() {
	for start := time.Now(); !w.netIdle(); w.rma.eng.PollSure() {
		if time.Since(start) > networkLimit {
			log.Warnf("rma", "operations of before the collective reset are still under way on %s: their memory may change", w.name())
			return
		}
	}
}

func (w *Win) netIdle() bool {
	for r := range w.outstanding {
		if o := w.outstanding[r].Load(); !o.Idle() && !w.rma.eng.Gone(w.World[r]) {
			return false
		}
	}
	return true
}

// renewOutstanding gives up the outstanding operations on a target.
func (w *Win) renewOutstanding(target int) {
	w.outstanding[target].Swap(w.newOutstanding(target)).cancel()
}

// pending is an operation of several parts. The last part to complete calls finish.
// Until then pending keeps alive what finish refers to, such as packed data.
type pending struct {
	o      *Outstanding
	cookie uint64
	parts  atomic.Int64
	finish func()
}

// pend begins an operation of one part, which the caller completes.
func (o *Outstanding) pend(finish func()) *pending {
	p := &pending{o: o, finish: finish}
	p.cookie = o.w.rma.eng.Enroll(p)
	p.begin()
	return p
}

func (p *pending) begin() {
	p.parts.Add(1)
	p.o.begin()
}

// Completed implements engine.Completer.
func (p *pending) Completed(err error) {
	if p.parts.Add(-1) == 0 {
		p.o.w.rma.eng.Cancel(p.cookie)
		if err == nil {
			err = sys.Touch(p.finish)
		}
	}
	p.o.Completed(err)
}

var _, _ engine.Completer = (*Outstanding)(nil), (*pending)(nil)

// byNet moves one run between p and an offset from a location that a network writes and
// reads.
func (w *Win) byNet(call string, put bool, to location, at int, p unsafe.Pointer, n int) *errs.Error {
	if fault := sys.Touch(func() { fabric.Probe(p, n) }); fault != nil {
		return w.failed(call, to.rank, p, n, fault) // a network would end the connection for it
	}
	k := w.keys[to.rank]
	k.Addr += uint64(to.off + at)
	to.outstanding.begin()
	done, err := false, error(nil)
	if put {
		done, err = w.rma.eng.Put(w.World[to.rank], p, k, n, to.outstanding.cookie)
	} else {
		done, err = w.rma.eng.Get(w.World[to.rank], p, k, n, to.outstanding.cookie)
	}
	if err != nil {
		to.outstanding.Completed(nil) // it is this call's error
		return w.failed(call, to.rank, p, n, err)
	}
	if done {
		to.outstanding.Completed(nil)
	}
	return nil
}

// runsByNet is byNet for derived types on either side: this process packs the data,
// and the network writes and reads the target's runs.
func (w *Win) runsByNet(call string, put bool, origin p2p.Buf, s TargetSpec, at location) *errs.Error {
	eng, peer, key := w.rma.eng, w.World[s.Rank], w.keys[s.Rank]
	local, finish := origin.Addr, func() {}
	if !origin.Type.Dense() {
		flat := make([]byte, origin.Bytes())
		local = unsafe.Pointer(&flat[0])
		if put {
			origin.Type.Pack(flat, origin.Addr, origin.Count)
			finish = func() { _ = flat }
		} else {
			finish = func() { origin.Type.Unpack(origin.Addr, flat, origin.Count) }
		}
	}
	_, caps := eng.Transport(peer)
	all := at.outstanding.pend(finish)
	b := newBatch(limits{runs: caps.MaxRuns, bytes: batchBytes, unit: 1}, func(from, n int, runs []fabric.Run) *errs.Error {
		for i := range runs {
			runs[i].Addr += key.Addr
		}
		part := unsafe.Add(local, from)
		if fault := sys.Touch(func() { fabric.Probe(part, n) }); fault != nil {
			return w.failed(call, s.Rank, part, n, fault)
		}
		all.begin()
		done, err := false, error(nil)
		if put {
			done, err = eng.PutRuns(peer, part, key.Key, runs, all.cookie)
		} else {
			done, err = eng.GetRuns(peer, part, key.Key, runs, all.cookie)
		}
		if err != nil {
			all.Completed(nil)
			return w.failed(call, s.Rank, part, n, err)
		}
		if done {
			all.Completed(nil)
		}
		return nil
	})
	b.addRuns(s, at.off)
	err := b.end()
	all.Completed(nil)
	return err
}
