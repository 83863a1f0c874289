package mpi

import (
	"sync/atomic"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
)

// grequest is the operation of a generalized request. The program completes it.
type grequest struct{ done atomic.Bool }

func (g *grequest) Advance() bool    { return g.done.Load() }
func (g *grequest) Check() error     { return nil }
func (g *grequest) Abandon()         { g.done.Store(true) }
func (g *grequest) Err() *errs.Error { return nil }

func (g *grequest) describe(why *engine.Reason) { why.Call = job.CallWait }

// GrequestStart makes a generalized request.
func GrequestStart() (req int64, code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return 0, CodeOf(e)
	}
	return reqs.add(&Request{op: new(grequest)}), 0
}

// GrequestComplete completes a generalized request and wakes the threads that wait for
// it.
func GrequestComplete(h int64) (code Code) {
	defer Contain(&code)
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	g, ok := r.op.(*grequest)
	if !ok {
		return classError(errs.Request, "Complete: the request is not a generalized one")
	}
	g.done.Store(true)
	proc.me.Ring()
	return 0
}
