package mpi

import (
	"runtime/debug"
	"sync"
	"sync/atomic"

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
	if !o.Advance() {
		proc.eng.AddBackground(o)
	}
	return reqs.add(&Request{op: o})
}

func getRequest(h int64) (*Request, *errs.Error) {
	debug.SetPanicOnFault(true) // as ready does: this may be the thread's first call
	if r := reqs.get(h); r != nil && r.ownership.Load() == owned {
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
}

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
	if recording := trace.On(); recording != nil {
		r.record(recording)
	}
	if r.persistent {
		r.deactivate()
	} else if h != 0 {
		r.leaveTable(h)
	}
	return code
}

// leaveTable takes a request that is over out of the table; if others still use its memory, once they do not any more.
func (r *Request) leaveTable(h int64) {
	if r.busy() {
		r.ownership.Store(freed)
	} else {
		reqs.take(h)
	}
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

// record records in a trace that a message was received.
func (r *Request) record(p *trace.Part) {
	if j, ok := r.op.(*joined); ok {
		r = j.recv
	}
	if r.inactive.Load() || r.null || r.op != nil || !r.IsRecv() || r.ch.Internal() {
		return
	}
	if s := r.Request.Status(); !s.Cancelled && s.Err == nil || s.Err != nil && s.Err.Class == errs.Truncate {
		p.Received(r.Number(), r.ch.Ctx, r.Peer(), s.Tag, s.Bytes)
	}
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

// Wait waits for a request, or returns Interrupted.
func Wait(h int64, st *Status) (code Code) {
	defer Contain(&code)
	if h == 0 {
		if st != nil {
			*st = empty
		}
		return 0
	}
	r, e := getRequest(h)
	if e != nil {
		code = CodeOf(e)
		fillFailed(st, code)
		return code
	}
	return r.wait(h, st, 0)
}

// Await waits until each request has completed or can't complete any more, or returns
// Interrupted. It finishes none of them, so an interrupted caller may wait for all of
// them again.
func Await(hs []int64) (code Code) {
	defer Contain(&code)
	for _, h := range hs {
		if h == 0 {
			continue
		}
		if r, e := getRequest(h); e == nil && !r.advance() && r.await() == engine.ErrInterrupted {
			return interrupted()
		}
	}
	return 0
}

func (r *Request) await() error {
	defer r.leave()
	return proc.eng.Wait(r.enter(0), r.advance, r.check)
}

// maker is an operation that makes an object.
type maker interface{ handle() int64 }

// Result waits for a request that makes an object and returns its handle.
func Result(h int64, out *int64) (code Code) {
	defer Contain(&code)
	if h == 0 {
		*out = 0
		return 0
	}
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	if code = r.wait(h, nil, 0); code == 0 {
		if m, ok := r.op.(maker); ok {
			*out = m.handle()
		}
	}
	return code
}

// Test reports whether a request is complete, and then finishes it.
func Test(h int64, st *Status) (done bool, code Code) {
	defer Contain(&code)
	if h == 0 {
		if st != nil {
			*st = empty
		}
		return true, 0
	}
	r, e := getRequest(h)
	if e != nil {
		code = CodeOf(e)
		fillFailed(st, code)
		return false, code
	}
	if !r.advance() {
		proc.eng.Progress()
		if !r.advance() {
			if err := r.check(); err != nil {
				return false, r.failWith(err, h, st)
			}
			return false, 0
		}
	}
	return true, r.finish(h, st)
}

// Blocks makes the request one that its call waits for.
func Blocks(h int64) {
	if r := reqs.get(h); r != nil {
		r.blocking = true
	}
}

// RequestStatus is Test without finishing the request.
func RequestStatus(h int64, st *Status) (done bool, code Code) {
	defer Contain(&code)
	if h == 0 {
		*st = empty
		return true, 0
	}
	r, e := getRequest(h)
	if e != nil {
		return false, CodeOf(e)
	}
	if !r.advance() {
		proc.eng.Progress()
		if !r.advance() {
			switch err := r.check(); {
			case err == nil:
				return false, 0
			case mayComplete(err):
				return false, codeOfErr(err)
			}
			*st = empty // the call that finishes it returns the error
			return true, 0
		}
	}
	r.outcome(st)
	st.Error = 0
	return true, 0
}

// Waitany waits for one of several requests; index is -1 if none is active. If there is
// an error and an index, it is the error of that request.
func Waitany(hs []int64, st *Status) (index int, code Code) {
	defer Contain(&code)
	list, index, code := active(hs)
	if code != 0 {
		fillFailed(st, code)
		return index, code
	}
	if len(list) == 0 {
		if st != nil {
			*st = empty
		}
		return -1, 0
	}
	var found activeRequest
	defer list[0].r.leave()
	err := proc.eng.Wait(list[0].r.enter(job.CallWait), func() bool {
		for _, a := range list {
			if a.r.advance() {
				found = a
				return true
			}
		}
		return false
	}, func() error {
		for _, a := range list {
			if err := a.r.check(); err != nil {
				found = a
				return err
			}
		}
		return nil
	})
	switch {
	case err == engine.ErrInterrupted:
		return -1, interrupted()
	case err != nil && found.r == nil:
		return -1, codeOfErr(err)
	case err != nil:
		return found.i, found.r.failWith(err, hs[found.i], st)
	}
	return found.i, found.r.finish(hs[found.i], st)
}

type activeRequest struct {
	i int
	r *Request
}

// active returns the active requests. If a handle is stale, it returns its index and an
// error code.
func active(hs []int64) ([]activeRequest, int, Code) {
	list := make([]activeRequest, 0, len(hs))
	for i, h := range hs {
		if h == 0 {
			continue
		}
		r, e := getRequest(h)
		if e != nil {
			return nil, i, CodeOf(e)
		}
		if !r.inactive.Load() {
			list = append(list, activeRequest{i, r})
		}
	}
	return list, -1, 0
}

// Testsome finishes all requests that have completed and writes their indices; n is -1
// if none is active. codes[k] belongs to indices[k]. If any has failed, Testsome
// finishes only the failed ones and leaves the others for the next call.
func Testsome(hs []int64, indices []int32, sts []Status, codes []int32) (n int, code Code) {
	defer Contain(&code)
	list, stale, code := active(hs)
	if code != 0 {
		indices[0], codes[0] = int32(stale), int32(code)
		fillFailed(&sts[0], code)
		return 1, 0
	}
	if len(list) == 0 {
		return -1, 0
	}
	proc.eng.Progress()
	var complete, failed []activeRequest
	var why []error // of those that can't complete; nil for those that have completed with an error
	for _, a := range list {
		if a.r.advance() {
			if a.r.outcome(nil) == 0 {
				complete = append(complete, a)
			} else {
				failed, why = append(failed, a), append(why, nil)
			}
		} else if err := a.r.check(); err != nil {
			failed, why = append(failed, a), append(why, err)
		}
	}
	for k, a := range failed {
		indices[n] = int32(a.i)
		if why[k] != nil {
			codes[n] = int32(a.r.failWith(why[k], hs[a.i], &sts[n]))
		} else {
			codes[n] = int32(a.r.finish(hs[a.i], &sts[n]))
		}
		n++
	}
	if n == 0 {
		for _, a := range complete {
			indices[n] = int32(a.i)
			codes[n] = int32(a.r.finish(hs[a.i], &sts[n]))
			n++
		}
	}
	return n, 0
}

// RequestFree frees a request. An operation in progress continues, as MPI requires, but
// the program can't wait for it: RequestOver reports when it has ended.
func RequestFree(h int64) (code Code) {
	defer Contain(&code)
	if h == 0 {
		return classError(errs.Request, "the request is REQUEST_NULL")
	}
	r := reqs.get(h)
	if r == nil || !r.ownership.CompareAndSwap(owned, freed) {
		return classError(errs.Request, "the request has been completed or freed")
	}
	if s, ok := r.op.(*partitionedSend); ok {
		s.drop()
	}
	if r.op != nil && !usesMemory(r.op) {
		reqs.take(h)
	}
	return 0
}

// RequestAbandon gives a request up, after a Ctrl-C in a call that waited for it (waited)
// or had only started it. A receive is withdrawn. A send continues, since its receiver
// may know of it. Other operations continue unless the call waited for them.
func RequestAbandon(h int64, waited bool) {
	var code Code
	defer Contain(&code)
	debug.SetPanicOnFault(true)
	r := reqs.get(h)
	switch {
	case r == nil:
		return
	case r.inactive.Load() || r.null:
	case r.op == nil && !r.IsRecv():
		r.ownership.Store(givenUp)
		return
	case r.op != nil:
		if j, ok := r.op.(*joined); ok {
			j.recv.abandon()
			r.op = &joined{recv: &Request{null: true}, send: j.send}
			r.ownership.Store(givenUp)
			return
		}
		if usesMemory(r.op) {
			if s, ok := r.op.(*partitionedSend); ok {
				s.drop()
			}
			r.ownership.Store(freed)
			if waited {
				r.op.Abandon()
				r.gen = proc.p2p.Generation()
				r.ownership.Store(dropped)
			}
			return
		}
		r.abandon()
	default:
		r.abandon()
	}
	reqs.take(h)
}

// usesMemory reports whether an operation uses memory of the program.
func usesMemory(o operation) bool {
	switch o.(type) {
	case collective, singleCopyOp, *joined, *transferOp, fileOp, *partitionedSend, *partitionedRecv, *agreeing:
		return true
	}
	return false
}

// RequestOver reports whether the memory of an operation can be reused: the operation
// has ended, and no network may access the memory any more.
func RequestOver(h int64) (over bool) {
	debug.SetPanicOnFault(true)
	if h != 0 {
		if r := reqs.get(h); r != nil {
			if !r.over(false) {
				return false
			}
			if r.ownership.Load() != owned {
				reqs.take(h)
			}
		}
	}
	return proc == nil || !proc.p2p.Left()
}

// RequestComplete is RequestOver for a request that the program may still wait for: an operation that can't complete any
// more is left to that wait, which has its error.
func RequestComplete(h int64) (over bool) {
	debug.SetPanicOnFault(true)
	if r := reqs.get(h); r != nil && r.ownership.Load() == owned {
		return r.over(true)
	}
	return RequestOver(h)
}

// Progress polls once. It is no error that ranks have failed.
func Progress() {
	var code Code
	defer Contain(&code)
	if e := ready(); e == nil {
		proc.eng.Progress()
	}
}

// over reports whether the operation has ended. One that can't complete any more is given up, unless the program may
// still wait for it. If finding out panics, the operation lasts until a collective reset.
func (r *Request) over(wanted bool) (over bool) {
	defer func() {
		if recover() != nil {
			r.gen = proc.p2p.Generation()
			r.ownership.Store(dropped)
			over = false
		}
	}()
	if r.persistent { // another thread may be starting it
		if !r.starting.TryLock() {
			return false
		}
		defer r.starting.Unlock()
	}
	if r.ownership.Load() == dropped {
		return r.gen != proc.p2p.Generation() && !r.busy()
	}
	if !r.advance() {
		if wanted || r.check() == nil {
			return false
		}
		r.abandon()
	}
	return !r.busy()
}

// endSends gives up the sends of calls that Ctrl-C has ended, so that the end of the
// program does not wait for their receivers.
func endSends() {
	reqs.each(func(_ int64, r *Request) {
		if r.ownership.Load() == givenUp {
			r.abandon()
		}
	})
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

// round is a collective of a sequence: a *coll.Op or an onBoard.
type round interface {
	Advance() bool
	Check() error
	Abandon()
	Err() *errs.Error
}

// onBoard is a round by the board of a communicator.
type onBoard struct {
	*coll.BoardOp
	c *Comm
}

// sequence is an operation of several collectives, each built from the results of the
// one before. step starts collective number k; it returns nil at the end.
type sequence struct {
	mu         sync.Mutex
	step       func(s *sequence, k int) round
	k          int
	cur        round
	done       bool
	err        *errs.Error
	result     int64
	undo       func() // called if it fails, or is given up
	background bool   // it advances in any wait of this process when its call does not wait for it
	call       job.Call
	ch         *p2p.Channel
	gen        uint32
}

func newSequence(c *Comm, step func(s *sequence, k int) round) *sequence {
	return &sequence{step: step, call: job.CallCommCreate, ch: c.pt, gen: c.pt.Generation()}
}

func (s *sequence) Advance() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.done {
		if s.cur != nil {
			if !s.cur.Advance() {
				return false
			}
			if s.err = s.cur.Err(); s.err != nil {
				s.done = true
				break
			}
			if o, yes := s.cur.(onBoard); yes {
				o.Release()
				s.cur = nil // another call may be using it
			}
		}
		if s.err = s.ch.Dropped(s.gen); s.err != nil {
			s.done = true
			break
		}
		s.cur = s.step(s, s.k)
		s.k++
		s.done = s.cur == nil || s.err != nil
	}
	if s.err != nil {
		s.takeBack()
	}
	return true
}

// takeBack undoes what has been done, once.
func (s *sequence) takeBack() {
	if s.undo != nil {
		s.undo()
		s.undo = nil
	}
}

func (s *sequence) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		return s.cur.Check()
	}
	return nil
}

func (s *sequence) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		s.cur.Abandon()
	}
	if !s.done {
		s.takeBack()
	}
	s.done = true
}

func (s *sequence) Err() *errs.Error { return s.err }

// active reports whether the operation has not ended.
func (s *sequence) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.done
}

func (s *sequence) handle() int64 { return s.result }

func (s *sequence) rest() engine.Background {
	if s.background {
		return s
	}
	return nil
}

func (s *sequence) describe(why *engine.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why.Call = s.call
	switch o := s.cur.(type) {
	case *coll.Op:
		describeColl(o, why)
	case onBoard:
		why.Peer = o.c.group.ranks[o.Pending()]
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
