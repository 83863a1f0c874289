package mpi

import (
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
)

// RequestSent is the handle of all sends that were complete when their call returned: most short messages are, and a request of
// their own would be made and freed for nothing. It is always complete, and neither waiting for it nor freeing it ends it.
const RequestSent = 1

func newRequests() *table[Request] {
	t := newTable[Request](RequestSent + 1)
	t.found = func(r *Request) { r.known.Store(true) }
	t.set(RequestSent, &Request{op: sent{}})
	return t
}

// sent is the operation of RequestSent.
type sent struct{}

func (sent) Advance() bool               { return true }
func (sent) Check() error                { return nil }
func (sent) Abandon()                    {}
func (sent) Err() *errs.Error            { return nil }
func (sent) describe(why *engine.Reason) { why.Call = job.CallSend }
