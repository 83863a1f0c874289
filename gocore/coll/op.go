package coll

import (
	"math/bits"
	"sync"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Comm is what a collective needs of a communicator.
type Comm struct {
	Chan *p2p.Channel
	Rank int
	Size int
	Bar  *Barrier // nil: synchronise by messages
	seq  uint32
}

// maxTag keeps the tags of collectives positive.
const maxTag = 1<<30 - 1

// Op is a collective in progress. It is not safe for concurrent use: MPI lets
// one thread at a time wait for a request.
type Op struct {
	c    *Comm
	tag  int
	step func(k int) (done bool)
	k    int
	wait []*p2p.Request
	used int
	err  *errs.Error
	fin  bool
	hold [][]byte // temporary memory
}

func (c *Comm) newOp(step func(o *Op, k int) bool) *Op {
	o := &Op{c: c, tag: int(c.seq & maxTag)}
	c.seq++
	o.step = func(k int) bool { return step(o, k) }
	o.Advance()
	return o
}

// Advance goes on as far as it can without waiting and reports whether the
// collective has completed.
func (o *Op) Advance() bool {
	for !o.fin {
		for _, r := range o.wait[:o.used] {
			if !r.Done() {
				return false
			}
			if e := r.Status().Err; e != nil && o.err == nil {
				o.err = e
			}
		}
		o.used = 0
		if o.err != nil || o.step(o.k) {
			o.fin = true
			if o.err == nil { // all requests are done, so no peer reads it any more
				spare.give(o.hold)
				o.hold = nil
			}
		}
		o.k++
	}
	return true
}

// Err is the error of a completed collective.
func (o *Op) Err() *errs.Error { return o.err }

// Pending is a request of this process that is not done, nil if none: what to
// say the collective waits for.
func (o *Op) Pending() *p2p.Request {
	for _, r := range o.wait[:o.used] {
		if !r.Done() {
			return r
		}
	}
	return nil
}

// Check tells why the collective can't complete any more.
func (o *Op) Check() error {
	for _, r := range o.wait[:o.used] {
		if !r.Done() {
			if err := o.c.Chan.Check(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Abandon gives up: the ranks' collectives are out of step from here on, until
// a collective reset.
func (o *Op) Abandon() {
	for _, r := range o.wait[:o.used] {
		o.c.Chan.Abandon(r)
	}
	o.fin = true
}

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

// temp is n bytes of memory that live as long as the operation. What is in it
// is undefined.
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
	free [48][][]byte // by the power of two that the size is
}

// Temporary memory from keepFrom to keepTo bytes is kept, a few of each size.
const (
	keepFrom = 4 << 10
	keepTo   = 64 << 20
	keepMost = 8
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

// give takes back the memory of an operation that peers are done with too.
func (s *spares) give(all [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range all {
		if n := cap(b); n >= keepFrom && n <= keepTo {
			if class := bits.Len(uint(n - 1)); len(s.free[class]) < keepMost {
				s.free[class] = append(s.free[class], b)
			}
		}
	}
}

// Restart makes the ranks' collectives be in step again, within a reset.
func (c *Comm) Restart() { c.seq = 0 }
