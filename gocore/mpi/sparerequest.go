package mpi

import (
	"sync"
	"sync/atomic"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// spareRequests are requests of messages, collectives and accesses to files that have completed, for the next ones: what Go's collector has not yet collected would
// lie in so much memory that no cache holds it.
//
// # Protocol
//
// Nothing below this package accesses a request after its completion. So one that has never had a handle is spare when its call is
// over. One that had a handle is spare once it has left the table, if no thread but that of its wait has it any more:
//
//   - known: a thread has got it from the table, other than for a wait. That is noted under the table's lock. Such a request is
//     never used again.
//   - waiters: threads that are in a call that completes requests, one or several, and so may have got any request from the table. One that has taken a
//     request out of the table, and then finds itself the only one, is the only one that has it, and no other one can get it. It notes
//     that in spare, which another thread neither reads nor writes then: one that also finishes the request takes nothing.
var (
	spareRequests = sync.Pool{New: func() any { return new(Request) }}
	waiters       atomic.Int32
)

func takeRequest() *Request { return spareRequests.Get().(*Request) }

// giveRequest keeps a request that has completed for the next takeRequest.
func giveRequest(r *Request) {
	r.clear()
	spareRequests.Put(r)
}

// clear forgets what a request that has completed was about.
func (r *Request) clear() {
	r.ch, r.op, r.buf, r.null, r.mode, r.why = nil, nil, p2p.Buf{}, false, 0, engine.Reason{}
	r.blocking, r.spare = false, false
}

// takeRequestOf returns a request of an operation.
func takeRequestOf(o operation) *Request {
	r := takeRequest()
	r.op = o
	return r
}

// borrowRequest is getRequest for a thread that is counted in waiters.
func borrowRequest(h int64) (*Request, *errs.Error) { return ownedRequest(reqs.borrow(h)) }

// unshared reports whether only this thread has the request of a message or a collective, which it has taken out of the table.
func (r *Request) unshared() bool {
	switch r.op.(type) {
	case nil, collective, nonblocking:
	default:
		return false
	}
	return !r.null && waiters.Load() == 1 && !r.known.Load()
}

// giveBack gives a borrowed request to spareRequests, if that may have it.
func giveBack(r *Request) {
	if r.spare {
		giveRequest(r)
	}
}
