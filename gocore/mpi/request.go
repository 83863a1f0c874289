package mpi

import (
	"sync"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/trace"
)

// operation is what a request waits for, other than a send or receive.
type operation interface {
	// Advance goes on as far as it can and reports whether it is complete.
	Advance() bool
	// Check tells why it can't complete any more.
	Check() error
	// Abandon gives up.
	Abandon()
	// Err is the error of a completed operation.
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
	inactive   bool
	mode       p2p.Mode
	buf        p2p.Buf
	peer, tag  int
	recv       bool
	start      starter // of an operation other than a send or receive

	null bool // to or from PROC_NULL: complete at once
	why  engine.Reason
}

func addRequest(s *sequence) int64 {
	return carried(s)
}

// carried makes a request of an operation that is to go on whatever its caller
// does meanwhile.
func carried(o operation) int64 {
	if !o.Advance() {
		w.eng.Carry(o)
		w.eng.HandOver()
	}
	return reqs.add(&Request{op: o})
}

func getRequest(h int64) (*Request, *errs.Error) {
	if r := reqs.get(h); r != nil {
		return r, nil
	}
	return nil, errs.New(errs.Request, "the request has been completed or freed")
}

// advance makes local progress and reports whether the request is complete.
func (r *Request) advance() bool {
	switch {
	case r.inactive || r.null:
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
	case r.inactive || r.null:
	case r.op != nil:
		r.op.Abandon()
	default:
		r.ch.Abandon(&r.Request)
	}
}

// reason is the wait record of a wait for r in call (0: by what r is).
func (r *Request) reason(call job.Call) *engine.Reason {
	if r.why.Call != 0 {
		return &r.why
	}
	r.why = engine.Reason{Call: call, Peer: -2, Tag: -1}
	if r.op != nil {
		r.op.describe(&r.why)
		return &r.why
	}
	if r.ch == nil { // of an operation on no process, which never waits
		return &r.why
	}
	if call == 0 {
		r.why.Call = job.CallSend
		if r.IsRecv() {
			r.why.Call = job.CallRecv
		}
	}
	r.why.Peer, r.why.Tag, r.why.Ctx = r.Peer(), r.Tag(), uint64(r.ch.Ctx)
	return &r.why
}

// Status is what C and Python see of a status.
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
		r.inactive = true
		r.why = engine.Reason{}
	} else if h != 0 {
		reqs.take(h)
	}
	return code
}

// record notes that a message was received.
func (r *Request) record(p *trace.Part) {
	if j, ok := r.op.(*joined); ok {
		r = j.recv
	}
	if r.inactive || r.null || r.op != nil || !r.IsRecv() || r.ch.Internal {
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
	case r.inactive:
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
	err := w.eng.Wait(r.reason(call), r.advance, r.check)
	switch err {
	case nil:
		return r.finish(h, st)
	case engine.ErrInterrupted:
		// At the end of the main thread, one that waits must not keep it.
		e := ready()
		if e == nil {
			return Interrupted
		}
		err = e
	}
	r.abandon()
	if st != nil {
		*st = empty
	}
	if h != 0 {
		if r.persistent {
			r.inactive = true
		} else {
			reqs.take(h)
		}
	}
	return codeOfErr(err)
}

// interrupted is what a call that was interrupted returns: to be called again,
// unless MPI has been finalized meanwhile.
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
		return CodeOf(e)
	}
	return r.wait(h, st, 0)
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

// Test tells whether a request is complete, and then finishes it.
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
		return false, CodeOf(e)
	}
	if !r.advance() {
		w.eng.Progress()
		if !r.advance() {
			if err := r.check(); err != nil {
				r.abandon()
				if !r.persistent {
					reqs.take(h)
				}
				return false, codeOfErr(err)
			}
			return false, 0
		}
	}
	return true, r.finish(h, st)
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
		w.eng.Progress()
		if !r.advance() {
			return false, 0
		}
	}
	r.outcome(st)
	st.Error = 0
	return true, 0
}

// Waitany waits for one of several requests; index is -1 if none is active.
func Waitany(hs []int64, st *Status) (index int, code Code) {
	defer Contain(&code)
	list, code := active(hs)
	if code != 0 {
		return -1, code
	}
	if len(list) == 0 {
		if st != nil {
			*st = empty
		}
		return -1, 0
	}
	found := -1
	err := w.eng.Wait(list[0].r.reason(job.CallWait), func() bool {
		for _, a := range list {
			if a.r.advance() {
				found = a.i
				return true
			}
		}
		return false
	}, func() error {
		for _, a := range list {
			if err := a.r.check(); err != nil {
				found = a.i
				return err
			}
		}
		return nil
	})
	switch {
	case err == engine.ErrInterrupted:
		return -1, interrupted()
	case err != nil:
		r := reqs.get(hs[found])
		r.abandon()
		reqs.take(hs[found])
		return found, codeOfErr(err)
	}
	return found, reqs.get(hs[found]).finish(hs[found], st)
}

type activeRequest struct {
	i int
	r *Request
}

func active(hs []int64) ([]activeRequest, Code) {
	list := make([]activeRequest, 0, len(hs))
	for i, h := range hs {
		if h == 0 {
			continue
		}
		r, e := getRequest(h)
		if e != nil {
			return nil, CodeOf(e)
		}
		if !r.inactive {
			list = append(list, activeRequest{i, r})
		}
	}
	return list, 0
}

// Testsome finishes all that are complete and writes their indices; n is -1 if
// none is active. codes[k] belongs to indices[k].
func Testsome(hs []int64, indices []int32, sts []Status, codes []int32) (n int, code Code) {
	defer Contain(&code)
	list, code := active(hs)
	if code != 0 {
		return 0, code
	}
	if len(list) == 0 {
		return -1, 0
	}
	w.eng.Progress()
	for _, a := range list {
		if a.r.advance() {
			indices[n] = int32(a.i)
			codes[n] = int32(a.r.finish(hs[a.i], &sts[n]))
			n++
		}
	}
	return n, 0
}

// RequestFree frees a request. One in progress goes on, as MPI has it, but
// without anybody waiting for it.
func RequestFree(h int64) (code Code) {
	defer Contain(&code)
	if h == 0 {
		return classError(errs.Request, "the request is REQUEST_NULL")
	}
	if reqs.take(h) == nil {
		return classError(errs.Request, "the request has been completed or freed")
	}
	return 0
}

// RequestAbandon gives a request up after a Ctrl-C in a blocking call.
func RequestAbandon(h int64) {
	var code Code
	defer Contain(&code)
	if r := reqs.take(h); r != nil {
		r.abandon()
	}
}

// Left tells whether a network may still write to the memory of receives that were
// given up: that of a receive given up just before must then stay.
func Left() bool { return w.p2p.Left() }

// RequestCancel withdraws a receive that has not been matched.
func RequestCancel(h int64) (code Code) {
	defer Contain(&code)
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	if r.op != nil || r.inactive || r.null {
		return 0
	}
	r.ch.Cancel(&r.Request)
	return 0
}

// Start starts a persistent request.
func Start(h int64) (code Code) {
	defer Contain(&code)
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	switch {
	case !r.persistent:
		return classError(errs.Request, "Start of a request that is not persistent")
	case !r.inactive:
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
	r.inactive = false
	r.launch()
	w.eng.HandOver()
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

// sequence is an operation of several collectives, each built from the results
// of the one before. step returns nil when there is nothing more to wait for.
type sequence struct {
	mu     sync.Mutex
	step   func(s *sequence, k int) *coll.Op
	k      int
	cur    *coll.Op
	done   bool
	err    *errs.Error
	result int64
	call   job.Call
}

func newSequence(_ *Comm, step func(s *sequence, k int) *coll.Op) *sequence {
	return &sequence{step: step, call: job.CallCommCreate}
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
		}
		s.cur = s.step(s, s.k)
		s.k++
		s.done = s.cur == nil || s.err != nil
	}
	return true
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
	s.done = true
}

func (s *sequence) Err() *errs.Error { return s.err }
func (s *sequence) handle() int64    { return s.result }

func (s *sequence) describe(why *engine.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why.Call = s.call
	if s.cur != nil {
		describeColl(s.cur, why)
	}
}

func describeColl(o *coll.Op, why *engine.Reason) {
	if r := o.Pending(); r != nil {
		why.Peer = r.Peer()
	}
}

// collective is a coll.Op as a request.
type collective struct{ *coll.Op }

func (c collective) describe(why *engine.Reason) {
	why.Call = job.CallCollective
	describeColl(c.Op, why)
}

// RequestInactive tells whether a persistent request waits to be started.
func RequestInactive(h int64) bool {
	r := reqs.get(h)
	return r != nil && r.inactive
}
