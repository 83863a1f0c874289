package mpi

import (
	"runtime/debug"

	"gormapy/gocore/errs"
)

// RequestFree frees a request. An operation in progress continues, as MPI requires, but
// the program can't wait for it: RequestOver reports when it has ended.
func RequestFree(h int64) (code Code) {
	defer Contain(&code)
	if h == 0 {
		return classError(errs.Request, "the request is REQUEST_NULL")
	}
	if h == RequestSent {
		return 0
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
	case collective, nonblocking, singleCopyOp, *joined, *transferOp, fileOp, *partitionedSend, *partitionedRecv, *agreeing:
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
