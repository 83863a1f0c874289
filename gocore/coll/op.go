package coll

import (
	"sync"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// maxTag keeps the tags of collectives positive.
const maxTag = 1<<30 - 1

// Op is a collective by messages in progress. It is safe for concurrent use: every
// thread that waits also advances nonblocking ones, see engine.Background.
type Op struct {
	mu         sync.Mutex
	c          *Comm
	call       Call
	seq        uint32 // sequence number of the collective
	hasCall    bool   // call is set
	tag        int
	step       func(k int) (done bool)
	steps      int // number of completed steps
	wait       []*p2p.Request
	used       int
	err        *errs.Error
	ended      bool
	temps      [][]byte // temporary memory
	generation uint32
}

// newOp starts a collective by messages. step starts the k-th step, from 0, and reports
// whether the collective is complete.
func (c *Comm) newOp(step func(o *Op, k int) bool) *Op {
	c.seq++
	o := &Op{c: c, seq: c.seq, tag: int(c.seq & maxTag), generation: c.Chan.Generation()}
	if c.board != nil {
		c.done(o.seq)
		if c.nextCall != nil {
			o.call, o.hasCall = *c.nextCall, true
			if c.board.room(o.seq, 0) {
				c.board.publish(o.seq, &o.call)
			}
		}
	}
	c.nextCall = nil
	o.step = func(k int) bool { return step(o, k) }
	o.Advance()
	return o
}

// Advance continues as far as it can without waiting and reports whether the
// collective has completed.
func (o *Op) Advance() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended {
		pending := false
		for _, r := range o.wait[:o.used] {
			if !r.Done() {
				pending = true
			} else if e := r.Status().Err; e != nil && o.err == nil {
				o.err = e
				if m := o.compare(); o.c.remote && m != nil && e.Class != errs.Buffer {
					o.err = m // the cause of the unexpected message
				}
			}
		}
		if pending && (o.err == nil || o.err.Class != errs.Buffer) {
			return false
		}
		if o.err != nil && o.err.Class == errs.Buffer {
			o.giveUp()
		}
		o.used = 0
		if o.err == nil {
			o.err = o.c.Chan.Dropped(o.generation)
		}
		if o.err != nil || o.nextStep() {
			o.ended = true
			if o.err == nil && o.c.remote {
				o.err = o.compare() // messages of different calls may have matched
			}
			if o.err == nil { // all requests are done, so no peer reads hold any more
				pool.give(o.temps)
				o.temps = nil
			}
		}
		o.steps++
	}
	return true
}

// next starts the next step and reports whether the collective is complete.
func (o *Op) nextStep() (last bool) {
	if fault := sys.Touch(func() { last = o.step(o.steps) }); fault != nil {
		o.err = o.call.faulted(fault)
		o.giveUp()
		return true
	}
	return last
}

// giveUp ends the collective on a rank whose memory has faulted, or that waits for such
// a rank, and notifies the others.
func (o *Op) giveUp() {
	for _, r := range o.wait[:o.used] {
		o.c.Chan.Abandon(r)
	}
	if o.c.board != nil {
		o.c.board.refuse(o.seq)
		o.c.ringOthers()
	}
}

// Err returns the error of a completed collective.
func (o *Op) Err() *errs.Error { return o.err }

// Pending returns a request that is not done, as what the collective waits for; nil if
// there is none.
func (o *Op) Pending() *p2p.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.wait[:o.used] {
		if !r.Done() {
			return r
		}
	}
	return nil
}

// Check returns why the collective can't complete any more, nil if it can.
func (o *Op) Check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.wait[:o.used] {
		if !r.Done() {
			if err := o.c.Chan.Check(r); err != nil {
				return err
			}
		}
	}
	if e := o.compare(); e != nil {
		o.abandon()
		return e
	}
	return nil
}

// compare returns an error if another rank has called another collective, or has given
// this one up.
func (o *Op) compare() *errs.Error {
	if !o.hasCall {
		return nil
	}
	for r := range o.c.Size {
		if e := o.c.board.compare(&o.call, r, o.seq, false); e != nil {
			return e
		}
		if r != o.c.Rank && o.c.board.refused(r, o.seq) {
			return o.call.mismatch(givenUp, r)
		}
	}
	return nil
}

// Abandon gives the collective up. From here on the ranks' sequence numbers differ,
// until a collective reset.
func (o *Op) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.abandon()
}

func (o *Op) abandon() {
	for _, r := range o.wait[:o.used] {
		o.c.Chan.Abandon(r)
	}
	o.ended = true
}

// request returns a request of the current step.
func (o *Op) request() *p2p.Request {
	if o.used == len(o.wait) {
		o.wait = append(o.wait, new(p2p.Request))
	}
	r := o.wait[o.used]
	o.used++
	return r
}

func (o *Op) send(b p2p.Buf, to int)   { o.c.Chan.Send(o.request(), p2p.Standard, b, to, o.tag) }
func (o *Op) recv(b p2p.Buf, from int) { o.c.Chan.Recv(o.request(), b, from, o.tag) }

// temp returns n bytes of memory that live as long as the operation. Their contents
// are undefined.
func (o *Op) temp(n int) unsafe.Pointer {
	b := pool.take(max(n, 1))
	o.temps = append(o.temps, b)
	return unsafe.Pointer(&b[0])
}
