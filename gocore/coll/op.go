package coll

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Comm is the part of a communicator that collectives need.
type Comm struct {
	Chan *p2p.Channel
	Rank int
	Size int
	Bar  *Barrier // nil: synchronise by messages

	eng    *engine.Engine
	ranks  []*job.Rank
	board  *Board   // nil: all collectives use messages
	block  *Barrier // the barrier in the block that has the board, even if Bar is nil
	remote bool     // ranks are reached by a network: board has calls but no data
	next   *Call    // the call that starts next, see Calling
	spare  atomic.Pointer[BoardOp]
	seq    uint32 // number of collectives that this rank has called

	singleCopy uint8  // whether the ranks can read each other's memory
	word       uint64 // read by the other ranks to find that out
}

// Attach gives the communicator block i of the job's memory, for its barrier
// and its small collectives. If its ranks are reached by a network, the block is only
// used to detect that another rank on the same host has called another collective. All
// ranks of the communicator attach before any of them calls a collective.
func (c *Comm) Attach(e *engine.Engine, i int) {
	c.eng = e
	c.block = NewBarrier(e.Job, i, c.Chan.World)
	if c.remote = !e.AllLocal(c.Chan.World); !c.remote {
		c.Bar = c.block
	}
	c.ranks = c.block.ranks
	c.board = newBoard(e.Job, i, c.Size, c.Rank)
}

// Leave records that this rank does not use the block any more. It returns true on the
// last rank, which frees the block.
func (c *Comm) Leave() bool { return c.block.Leave() }

// maxTag keeps the tags of collectives positive.
const maxTag = 1<<30 - 1

// Op is a collective by messages in progress. It is safe for concurrent use: every
// thread that waits also advances nonblocking ones, see engine.Background.
type Op struct {
	mu      sync.Mutex
	c       *Comm
	call    Call
	k       uint32 // sequence number of the collective
	hasCall bool   // call is set
	tag     int
	step    func(k int) (done bool)
	n       int // number of completed steps
	wait    []*p2p.Request
	used    int
	err     *errs.Error
	fin     bool
	hold    [][]byte // temporary memory
	gen     uint32
}

// newOp starts a collective by messages. step starts the k-th step, from 0, and reports
// whether the collective is complete.
func (c *Comm) newOp(step func(o *Op, k int) bool) *Op {
	c.seq++
	o := &Op{c: c, k: c.seq, tag: int(c.seq & maxTag), gen: c.Chan.Generation()}
	if c.board != nil {
		c.done(o.k)
		if c.next != nil {
			o.call, o.hasCall = *c.next, true
			if c.board.room(o.k, 0) {
				c.board.publish(o.k, &o.call)
			}
		}
	}
	c.next = nil
	o.step = func(k int) bool { return step(o, k) }
	o.Advance()
	return o
}

// Calling sets the call that this rank is about to start, for the other ranks to
// compare with theirs.
func (c *Comm) Calling(call Call) { c.next = &call }

// done records that this rank reads no slot of collective k any more, and wakes the
// ranks that may wait for that.
func (c *Comm) done(k uint32) {
	if c.board.leave(k) {
		c.ringOthers()
	}
}

// ringOthers wakes the other ranks that sleep.
func (c *Comm) ringOthers() {
	for i, r := range c.ranks {
		if i != c.Rank {
			r.Ring()
		}
	}
}

// Advance continues as far as it can without waiting and reports whether the
// collective has completed.
func (o *Op) Advance() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.fin {
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
			o.err = o.c.Chan.Dropped(o.gen)
		}
		if o.err != nil || o.next() {
			o.fin = true
			if o.err == nil && o.c.remote {
				o.err = o.compare() // messages of different calls may have matched
			}
			if o.err == nil { // all requests are done, so no peer reads hold any more
				spare.give(o.hold)
				o.hold = nil
			}
		}
		o.n++
	}
	return true
}

// next starts the next step and reports whether the collective is complete.
func (o *Op) next() (last bool) {
	if fault := sys.Touch(func() { last = o.step(o.n) }); fault != nil {
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
		o.c.board.refuse(o.k)
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
		if e := o.c.board.compare(&o.call, r, o.k, false); e != nil {
			return e
		}
		if r != o.c.Rank && o.c.board.refused(r, o.k) {
			return o.call.mismatch(giveUp, r)
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
	o.fin = true
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
	b := spare.take(max(n, 1))
	o.hold = append(o.hold, b)
	return unsafe.Pointer(&b[0])
}

// spare keeps the temporary memory of completed operations, by size class: new
// memory costs a page fault every 4 KiB, which is most of a large reduction.
var spare spares

type spares struct {
	mu   sync.Mutex
	free [48][][]byte // by the binary logarithm of the size
}

// Temporary memory of keepFrom to keepTo bytes is kept, at most keepCount of a size
// class.
const (
	keepFrom  = 4 << 10
	keepTo    = 64 << 20
	keepCount = 8
)

func (s *spares) take(n int) []byte {
	if n < keepFrom || n > keepTo {
		return make([]byte, n)
	}
	class := bits.Len(uint(n - 1))
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.free[class]; len(l) > 0 {
		b := l[len(l)-1]
		s.free[class] = l[:len(l)-1]
		return b[:n]
	}
	return make([]byte, 1<<class)[:n]
}

// give returns to the pool the memory of an operation, which no peer reads any more.
func (s *spares) give(all [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range all {
		if n := cap(b); n >= keepFrom && n <= keepTo {
			if class := bits.Len(uint(n - 1)); len(s.free[class]) < keepCount {
				s.free[class] = append(s.free[class], b)
			}
		}
	}
}

// Restart makes the ranks' sequence numbers agree again. The collective reset calls it.
func (c *Comm) Restart() {
	c.seq = 0
	c.singleCopy = singleCopyUnknown // the reset may have interrupted the trial
	if c.board != nil {
		c.board.zero()
	}
}

// CheckBarrier returns why the barrier that this rank waits in can't complete, nil if
// it can.
func (c *Comm) CheckBarrier() error {
	if err := c.Bar.Check(c.eng); err != nil {
		return err
	}
	if c.board == nil {
		return nil
	}
	// A rank can't be in the next collective without having passed the barrier.
	if r, theirs, found := c.board.other(c.seq + 1); found && !c.Bar.Passed() {
		mine := Call{Kind: KindBarrier}
		return mine.mismatch(theirs, r)
	}
	return nil
}
