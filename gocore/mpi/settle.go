package mpi

import (
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
)

// settling is the wait of Disconnect for the operations of this rank in a communicator, as an operation. It is local: if
// it is given up, nothing has happened.
type settling struct{ c *Comm }

// CommSettle begins to wait until no operation of this rank in a communicator is under way, but for those that can't complete.
func CommSettle(h int64) (req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	if h == CommWorld || h == CommSelf {
		return 0, classError(errs.Comm, "COMM_WORLD and COMM_SELF can't be freed")
	}
	return reqs.add(&Request{op: settling{c}}), 0
}

// Advance implements operation.
func (s settling) Advance() bool { return len(s.c.underWay()) == 0 }

// Check implements operation. If nothing that is under way can complete, the error of the first one ends the wait.
func (s settling) Check() (err error) {
	for _, r := range s.c.underWay() {
		e := r.check()
		if e == nil {
			return nil
		}
		if err == nil {
			err = e
		}
	}
	return err
}

// Abandon implements operation.
func (s settling) Abandon() {}

// Err implements operation.
func (s settling) Err() *errs.Error { return nil }

func (s settling) describe(why *engine.Reason) {
	why.Call, why.Ctx = job.CallWait, uint64(s.c.pt.Ctx)
}
