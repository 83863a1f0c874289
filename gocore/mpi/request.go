package mpi

import (
	"runtime/debug"
	"sync"
	"sync/atomic"

	"gormapy/gocore/check/events"
	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/trace"
)

// operation is what a request waits for, other than a send or receive.
type operation interface {
	// Advance makes as much progress as it can without waiting, and reports whether
	// the operation has completed.
	Advance() bool
	// Check returns an error if the operation can't complete.
	Check() error
	// Abandon gives up the operation.
	Abandon()
	// Err returns the error of a completed operation.
	Err() *errs.Error
	// describe fills in the wait record.
	describe(why *engine.Reason)
}

// Request is an operation in progress, or a persistent one between two starts.
type Request struct {
	p2p.Request // a send or receive, unless op is set
	ch          *p2p.Channel
	op          operation

	// A persistent request: what to start.
	persistent bool
	inactive   atomic.Bool
	starting   sync.Mutex // held by Start, deactivate and over
	mode       p2p.Mode
	buf        p2p.Buf
	peer, tag  int
	recv       bool
	start      starter // of an operation other than a send or receive

	null     bool // to or from PROC_NULL: complete at once
	blocking bool // its call waits for it: the program can't wait again
	why      engine.Reason

	waiting   atomic.Int32  // threads that wait for it; only the first may use why
	ownership atomic.Uint32 // owned, freed, givenUp or dropped
	gen       uint32        // the generation in which it was dropped

	known atomic.Bool // see spareRequests
	spare bool        // likewise
}

// Values of Request.ownership. The operation of a request that is no longer owned may
// still use memory; RequestOver reports when it has ended.
const (
	owned   = iota // the program can wait for it
	freed          // it continues until it completes
	givenUp        // a send whose call Ctrl-C ended: it continues, but Finalize gives it up
	dropped        // peers may use the memory until a collective reset
)

func addRequest(s *sequence) int64 {
	return inBackground(s)
}

// inBackground makes a request of an operation that advances in any wait of this
// process, not only in a wait for the request.
func inBackground(o operation) int64 {
	advanceInBackground(o)
	return reqs.add(takeRequestOf(o))
}

func advanceInBackground(o operation) {
	if !o.Advance() {
		proc.eng.AddBackground(o)
	}
}

func getRequest(h int64) (*Request, *errs.Error) { return ownedRequest(reqs.get(h)) }

// ownedRequest returns r, if the program can wait for it.
func ownedRequest(r *Request) (*Request, *errs.Error) {
	debug.SetPanicOnFault(true) // as ready does: this may be the thread's first call
	if r != nil && r.ownership.Load() == owned {
		return r, nil
	}
	return nil, errs.New(errs.Request, "the request has been completed or freed")
}

// advance makes local progress and reports whether the request is complete.
func (r *Request) advance() bool {
	switch {
	case r.inactive.Load() || r.null:
		return true
	case r.op != nil:
		return r.op.Advance()
	}
	return r.Done()
}

func (r *Request) check() error {
	if r.op != nil {
		return r.op.Check()
	}
	return r.ch.Check(&r.Request)
}

func (r *Request) abandon() {
	switch {
	case r.inactive.Load() || r.null:
	case r.op != nil:
		r.op.Abandon()
	default:
		r.ch.Abandon(&r.Request)
	}
}

// reason returns the wait record of a wait for r in call (0: Send or Recv, as r is).
func (r *Request) reason(call job.Call) *engine.Reason {
	if r.why.Call == 0 {
		r.explain(&r.why, call)
	}
	return &r.why
}

// explain fills in a wait record.
func (r *Request) explain(why *engine.Reason, call job.Call) {
	*why = engine.Reason{Call: call, Peer: -2, Tag: -1}
	if r.null { // which is never waited for
		return
	}
	if r.op != nil {
		r.op.describe(why)
		return
	}
	if call == 0 {
		why.Call = job.CallSend
		if r.IsRecv() {
			why.Call = job.CallRecv
		}
	}
	why.Peer, why.Tag, why.Ctx = r.Peer(), r.Tag(), uint64(r.ch.Ctx)
	why.Copying = r.buf.Bytes() >= longMessage
}

// longMessage is from how many bytes on other ranks take noticeable time to copy a message.
const longMessage = 64 << 10

// enter is reason for a request that several threads may wait for; each calls leave.
func (r *Request) enter(call job.Call) *engine.Reason {
	if r.waiting.Add(1) == 1 {
		return r.reason(call)
	}
	why := new(engine.Reason)
	r.explain(why, call)
	return why
}

func (r *Request) leave() { r.waiting.Add(-1) }

// Status is the layout of a status for C and Python.
type Status struct {
	Source, Tag, Error, Cancelled int32
	Bytes                         int64
}

// empty is the status of an inactive request.
var empty = Status{Source: p2p.AnySource, Tag: p2p.AnyTag}

// finish collects the outcome of a completed request and makes it inactive or
// frees it.
func (r *Request) finish(h int64, st *Status) Code {
	code := r.outcome(st)
	if recording, checked := trace.On(), events.On(); recording != nil || checked != nil {
		r.record(recording, checked, true)
	}
	if r.persistent {
		r.deactivate()
	} else if h != 0 && r.leaveTable(h) && r.unshared() {
		r.spare = true
	}
	return code
}

// leaveTable takes a request that is over out of the table; if others still use its memory, once they do not any more. It reports whether
// this call has taken it.
func (r *Request) leaveTable(h int64) bool {
	if r.busy() {
		r.ownership.Store(freed)
		return false
	}
	return reqs.take(h) != nil
}

// deactivate makes a persistent request that has completed inactive, unless another thread that
// waited for it has done so, and has started it again.
func (r *Request) deactivate() {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.advance() && r.inactive.CompareAndSwap(false, true) && r.waiting.Load() <= 1 {
		r.why = engine.Reason{}
	}
}

// record records in a trace, and tells a checker, that a message was received. over is false if the request stays, so that
// this is called again.
func (r *Request) record(p *trace.Part, checked *events.Stream, over bool) {
	switch op := r.op.(type) {
	case *joined:
		r = op.recv
	case *partitionedRecv:
		if checked != nil && !r.inactive.Load() {
			op.tell(checked, over)
		}
		return
	}
	if r.inactive.Load() || r.null || r.op != nil || !r.IsRecv() || r.ch.Internal() {
		return
	}
	if s := r.Request.Status(); !s.Cancelled && s.Err == nil || s.Err != nil && s.Err.Class == errs.Truncate {
		if p != nil {
			p.Received(r.Number(), r.ch.Ctx, r.Peer(), s.Tag, s.Bytes)
		}
		if checked != nil {
			tellReceived(checked, &r.Request, over)
		}
	}
}

// tellReceived tells a checker that the thread knows of a message; over: that it has been received, so that nobody asks for it again.
func tellReceived(checked *events.Stream, r *p2p.Request, over bool) {
	words := []int64{int64(r.Number()), int64(r.Peer())}
	if !over {
		words = append(words, 1)
	}
	checked.Write(events.Received, words...)
}

// outcome writes the status of a completed request and returns its error.
func (r *Request) outcome(st *Status) Code {
	out := empty
	var e *errs.Error
	switch {
	case r.inactive.Load():
	case r.null:
		out.Source = p2p.ProcNull
	case r.op != nil:
		e = r.op.Err()
		if o, ok := r.op.(interface{ status() Status }); ok {
			out = o.status()
		}
	default:
		s := r.Request.Status()
		e = s.Err
		if r.IsRecv() {
			out.Source, out.Tag, out.Bytes = int32(s.Source), int32(s.Tag), int64(s.Bytes)
		}
		if s.Cancelled {
			out.Cancelled = 1
		}
	}
	code := CodeOf(e)
	out.Error = int32(code & 0xff)
	if st != nil {
		*st = out
	}
	return code
}

// wait waits for r under the handle h (0: none).
func (r *Request) wait(h int64, st *Status, call job.Call) Code {
	defer r.leave()
	err := proc.eng.Wait(r.enter(call), r.advance, r.check)
	switch err {
	case nil:
		return r.finish(h, st)
	case engine.ErrInterrupted:
		// A thread that still waits must not delay the end of the program.
		e := ready()
		if e == nil {
			return Interrupted
		}
		err = e
	}
	if h == 0 || r.blocking {
		err = noneLeft(err)
	}
	return r.failWith(err, h, st)
}

// failWith ends the request under the handle h (0: none) with an error, unless it may still complete.
func (r *Request) failWith(err error, h int64, st *Status) Code {
	code := codeOfErr(err)
	fillFailed(st, code)
	if !mayComplete(err) {
		r.fail(h)
	}
	return code
}

// mayComplete reports whether an error of a request leaves it under way: that of a receive from any source, which a process that has
// failed may have been meant to send to.
func mayComplete(err error) bool {
	e, ok := err.(*errs.Error)
	return ok && e.Class == errs.ProcFailedPending
}

// noneLeft returns the error of a call that leaves no request under way.
func noneLeft(err error) error {
	if mayComplete(err) {
		return errs.New(errs.ProcFailed, "%s", err.(*errs.Error).Detail)
	}
	return err
}

// fillFailed writes the status of a request that ends with an error without having completed.
func fillFailed(st *Status, code Code) {
	if st != nil {
		*st = empty
		st.Error = int32(code & 0xff)
	}
}

// fail ends a request under the handle h (0: none) that can't complete.
func (r *Request) fail(h int64) {
	r.abandon()
	switch {
	case h == 0:
	case r.persistent:
		r.inactive.Store(true)
	default:
		r.leaveTable(h)
	}
}

// busy reports whether an operation that was given up still uses memory.
func (r *Request) busy() bool {
	o, ok := r.op.(interface{ Busy() bool })
	return ok && o.Busy()
}

// interrupted returns the code of a call that was interrupted: Interrupted, unless MPI
// has been finalized meanwhile.
func interrupted() Code {
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	return Interrupted
}

// Blocks makes the request one that its call waits for.
func Blocks(h int64) {
	if r := reqs.get(h); r != nil && h != RequestSent {
		r.blocking = true
	}
}

// Progress polls once. It is no error that ranks have failed.
func Progress() {
	var code Code
	defer Contain(&code)
	if e := ready(); e == nil {
		proc.eng.Progress()
	}
}

// RequestCancel withdraws a receive that has not been matched, and wakes the threads that wait for it.
func RequestCancel(h int64) (code Code) {
	defer Contain(&code)
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	if r.op != nil || r.inactive.Load() || r.null {
		return 0
	}
	r.ch.Cancel(&r.Request)
	proc.me.Ring()
	return 0
}

// Start starts a persistent request.
func Start(h int64) (code Code) {
	defer Contain(&code)
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	r.starting.Lock()
	defer r.starting.Unlock()
	switch {
	case r.ownership.Load() != owned:
		return classError(errs.Request, "Start of a request that has been freed")
	case !r.persistent:
		return classError(errs.Request, "Start of a request that is not persistent")
	case !r.inactive.Load():
		return classError(errs.Request, "Start of a persistent request that is active: wait for it first")
	}
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	if r.start != nil {
		if code = r.renew(); code != 0 {
			return code
		}
	}
	r.launch()
	r.inactive.Store(false) // last: until then no other thread uses the request's operation
	return 0
}

// launch starts what the request describes.
func (r *Request) launch() {
	switch {
	case r.null || r.op != nil:
	case r.recv:
		r.ch.Recv(&r.Request, r.buf, r.peer, r.tag)
	default:
		r.ch.Send(&r.Request, r.mode, r.buf, r.peer, r.tag)
	}
}

func describeColl(o *coll.Op, why *engine.Reason) {
	if r := o.Pending(); r != nil {
		why.Peer = r.Peer()
	}
}

// collective is a coll.Op as a request.
type collective struct{ *coll.Op }

// Busy reports whether peers may still use memory of an operation that was given up.
func (c collective) Busy() bool { return c.Lent() }

func (c collective) describe(why *engine.Reason) {
	why.Call = job.CallCollective
	if c.Across() { // who waits for whom depends on the groups
		why.Info, why.Ctx = c.Name(), uint64(contextOf(c.Context()))
	}
	describeColl(c.Op, why)
}

// RequestInactive reports whether a persistent request is inactive.
func RequestInactive(h int64) bool {
	r := reqs.get(h)
	return r != nil && r.inactive.Load()
}
