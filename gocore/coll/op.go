package coll

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// maxTag keeps the tags of collectives positive.
const maxTag = 1<<30 - 1

// Op is a collective by messages in progress. It is safe for concurrent use: every
// thread that waits also advances nonblocking ones, see engine.Background.
type Op struct {
	mu      sync.Mutex
	c       *Comm
	call    Call
	hasCall bool // call is set
	tag     int
	step    func(k int) (done bool)
	steps   int // number of completed steps
	wait    []*p2p.Request
	used    int
	err     *errs.Error
	own     *errs.Error // see keep
	ended   bool
	temps   [][]byte // temporary memory
	lent    []uint64 // tokens of messages, see Lent

	objects *Objects // not nil: it is one of objects
	ledger  *ledger  // nil: there is a board
	entry
	cause cause // of err
	askAt int64 // when it asks the ranks that it awaits, 0: it has not waited yet
	pause int64 // until it asks again
	again bool  // it has asked again because a rank has failed

	refused bool // there is a board, and a rank that is awaited has given up
}

// newOp starts a collective by messages. step starts the k-th step, from 0, and reports
// whether the collective is complete.
func (c *Comm) newOp(step func(o *Op, k int) bool) *Op {
	next := c.next.Swap(nil)
	if next == nil {
		next = &starting{}
	}
	if next.continues {
		return c.newStep(next, step)
	}
	c.seq++
	o := &Op{c: c, wait: takeRequests(), call: next.call, hasCall: next.hasCall, tag: int(c.seq & maxTag), cause: cause{rank: c.Rank, label: gaveUp}, objects: next.objects}
	o.number, o.label, o.generation = c.seq, unknown, c.Chan.Generation()
	if o.hasCall {
		o.label, o.called = o.call.label(), o.call.Objects
	}
	switch {
	case c.board != nil:
		c.done(o.number)
		if o.hasCall && c.board.room(o.number, 0) {
			c.board.publish(o.number, &o.call)
		}
	case c.Size > 1:
		c.Listen()
		o.ledger = c.ledger
		o.ledger.begin(&o.entry)
	}
	o.step = func(k int) bool { return step(o, k) }
	next.objects = nil
	c.spareNext.Store(next)
	o.Advance()
	return o
}

// Advance continues as far as it can without waiting and reports whether the
// collective has completed.
func (o *Op) Advance() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended {
		pending, hopeless := o.look()
		// Others may depend on those that this one awaits: one that asks, or all on a board, whose program may wait for something else.
		if pending && !hopeless && (o.wanted.Load() || o.ledger == nil && o.c.board != nil && o.c.lostOne()) {
			if e := o.stuck(); e != nil {
				o.err, hopeless = e, true
			}
		}
		switch {
		case hopeless:
			o.giveUp()
		case pending:
			return false
		}
		o.used = 0
		if o.err == nil {
			o.err = o.c.Chan.Dropped(o.generation)
		}
		if o.err != nil || o.nextStep() {
			if o.err == nil {
				o.err = o.left()
			}
			if o.err == nil { // all requests are done, so no peer reads hold any more
				pool.give(o.temps)
				o.temps = nil
				if o.used == 0 {
					giveRequests(o.wait)
					o.wait = nil
				}
			}
			if e := o.c.Chan.Revoked(); e != nil && o.err != nil {
				o.err = e // which is why others have given up
			}
			if o.err == nil && o.ledger != nil && o.objects != nil && o.objects.More != nil && o.objects.More() {
				o.ended = true
				o.c.keep(o)
			} else {
				o.end(o.err != nil)
			}
		}
		o.steps++
	}
	return true
}

// look looks at the requests of the current step. pending: not all are done. hopeless: the
// others need not be waited for, because this rank or another one has given up.
func (o *Op) look() (pending, hopeless bool) {
	if v := o.verdict.Load(); v != nil {
		hopeless = true
		if o.err == nil {
			o.err = o.unreadable()
		}
		if o.err == nil {
			o.err, o.cause = o.alsoEnded(v.err, v.cause.rank), v.cause
		}
	}
	for _, r := range o.wait[:o.used] {
		if !r.Done() {
			pending = true
			continue
		}
		e := r.Status().Err
		if e != nil && o.err == nil {
			o.err = o.alsoEnded(e, r.Other())
			o.blame(r, e)
		}
		if e == nil || e.Class != errs.Buffer {
			hopeless = o.received(r) || hopeless
		}
	}
	return pending, hopeless || o.err != nil && o.err.Class == errs.Buffer
}

// unreadable returns the error of a request of the current step whose memory can't be read or written; nil if there is none. It
// is why others have given up: their news of it may come in the same poll.
func (o *Op) unreadable() *errs.Error {
	for _, r := range o.wait[:o.used] {
		if r.Done() {
			if e := r.Status().Err; e != nil && e.Class == errs.Buffer {
				return e
			}
		}
	}
	return nil
}

// nextStep starts the next step and reports whether the collective is complete.
func (o *Op) nextStep() (last bool) {
	if fault := sys.Touch(func() { last = o.step(o.steps) }); fault != nil {
		o.err = o.call.faulted(fault)
		o.giveUp()
		return true
	}
	return last
}

// giveUp drops what this rank still awaits, because its memory has faulted or another rank
// has given up, and lets ranks with a board know.
func (o *Op) giveUp() {
	o.drop()
	if o.ledger == nil && o.c.board != nil {
		o.c.refuse(o.number)
	}
}

// end records that the collective has ended. failed: other ranks may wait for what this one
// has not sent.
func (o *Op) end(failed bool) {
	switch o.ended = true; {
	case o.ledger == nil:
		// A rank that has ended or given up is awaited by few, on whose messages others depend.
		if failed && (o.refused || o.cause.label == ended) && o.c.board != nil && o.c.Chan.Dropped(o.generation) == nil {
			o.c.refuse(o.number)
		}
	case failed:
		o.ledger.end(&o.entry, &o.cause)
		o.c.Chan.Drop(o.tag, o.generation, func(h *fabric.Header) { o.ledger.dropped(h, o.number) })
	default:
		o.ledger.end(&o.entry, nil)
	}
}

// Active reports whether the collective has not ended.
func (o *Op) Active() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ended
}

// Err returns the error of a completed collective.
func (o *Op) Err() *errs.Error {
	if o.err == nil {
		return o.own
	}
	return o.err
}

// Lent reports whether a peer may still read the memory of a collective that was given up: it
// has been told of a message that it takes from there, has not said that it has, and lives.
func (o *Op) Lent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.c.Chan.Dropped(o.generation) != nil {
		return false
	}
	return slices.ContainsFunc(o.lent, o.c.Chan.Unreceived)
}

// drop gives up what this rank still awaits in the current step.
func (o *Op) drop() {
	for _, r := range o.wait[:o.used] {
		if token, ok := o.c.Chan.Announced(r); ok {
			o.lent = append(o.lent, token)
		}
		o.c.Chan.Abandon(r)
	}
}

// Number returns the collective's number.
func (o *Op) Number() uint32 { return o.number }

// Generation returns the generation in which the collective was started.
func (o *Op) Generation() uint32 { return o.generation }

// Across reports whether the collective is one of an intercommunicator.
func (o *Op) Across() bool { return o.c.Sides != nil }

// Context returns the context of the collective's messages.
func (o *Op) Context() uint32 { return o.c.Chan.Ctx }

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

// Abandon gives the collective up.
func (o *Op) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.abandon()
}

func (o *Op) abandon() {
	if o.ended {
		return
	}
	o.drop()
	if o.ledger == nil || o.c.nodes == nil || o.err != nil || o.cause.label != gaveUp {
		o.end(true)
		return
	}
	// The program has been interrupted. Others depend on this rank although they await nothing
	// of its own, and most likely are about to be interrupted, too: that is what they should
	// say, and not that this rank has given up.
	o.ended = true
	time.AfterFunc(interruptTime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.c.Chan.Dropped(o.generation) == nil {
			o.end(true)
		}
	})
}

// interruptTime is after what time a rank of a divided communicator tells others that it has
// been interrupted.
const interruptTime = 2 * time.Second

// spareWaits are lists of requests of completed collectives, for the next ones. Nothing accesses a request after its completion.
var spareWaits sync.Pool

func takeRequests() []*p2p.Request {
	if kept := spareWaits.Get(); kept != nil {
		return *kept.(*[]*p2p.Request)
	}
	return nil
}

// mostSpare keeps a list from growing to that of the largest collective that there has been.
const mostSpare = 64

func giveRequests(all []*p2p.Request) {
	if len(all) > 0 && len(all) <= mostSpare {
		spareWaits.Put(&all)
	}
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

func (o *Op) send(b p2p.Buf, to int)   { o.c.Chan.SendLabelled(o.request(), b, to, o.tag, o.labelled()) }
func (o *Op) recv(b p2p.Buf, from int) { o.c.Chan.Recv(o.request(), b, from, o.tag) }

// labelled returns the label of the messages: none if calls are compared on the board.
func (o *Op) labelled() p2p.Label {
	if o.ledger == nil {
		return p2p.Label{}
	}
	return o.label
}

// temp returns n bytes of memory that live as long as the operation. Their contents
// are undefined.
func (o *Op) temp(n int) unsafe.Pointer {
	b := pool.take(max(n, 1))
	o.temps = append(o.temps, b)
	return unsafe.Pointer(&b[0])
}
