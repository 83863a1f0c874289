package engine

import (
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// Completer is notified of the completion of one-sided operations.
type Completer interface {
	// Completed is called under the poll lock. It may start operations and send, but
	// must not poll or wait. err is not nil if the operation has failed.
	Completed(err error)
}

// completers has the Completers by the cookies of their operations. A cookie is not
// used again, so the completion of a cancelled operation finds none.
type completers struct {
	mu   sync.RWMutex
	last uint64
	by   map[uint64]Completer
}

// Enroll registers c and returns a cookie. c is notified of each operation with this
// cookie, until Cancel.
func (e *Engine) Enroll(c Completer) uint64 {
	t := &e.completers
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[uint64]Completer{}
	}
	t.last++
	t.by[t.last] = c
	return t.last
}

// Cancel drops the completions of operations with this cookie from now on.
func (e *Engine) Cancel(cookie uint64) {
	e.completers.mu.Lock()
	delete(e.completers.by, cookie)
	e.completers.mu.Unlock()
}

// Completed implements fabric.Sink.
func (e *Engine) Completed(cookie uint64, err error) {
	defer e.contain("the completion of an operation")
	e.completers.mu.RLock()
	c := e.completers.by[cookie]
	e.completers.mu.RUnlock()
	if c != nil {
		c.Completed(err)
	}
}

// op is a one-sided operation that waits for room in the transport.
type op struct {
	what   opKind
	local  unsafe.Pointer
	remote fabric.RemoteKey
	n      int
	runs   []fabric.Run
	a, b   uint64
	cookie uint64
}

type opKind uint8

const (
	opPut opKind = iota
	opGet
	opPutRuns
	opGetRuns
	opFetchAdd
	opCompareSwap
)

// issue starts the operation. Transports copy the data of short ones at once, so memory
// that faults does so here.
func (o *op) issue(ep fabric.Endpoint) (done bool, err error) {
	defer sys.CatchFault(&err)
	switch o.what {
	case opPut:
		return ep.Put(o.local, o.remote, o.n, o.cookie)
	case opGet:
		return ep.Get(o.local, o.remote, o.n, o.cookie)
	case opPutRuns:
		return ep.PutRuns(o.local, o.remote.Key, o.runs, o.cookie)
	case opGetRuns:
		return ep.GetRuns(o.local, o.remote.Key, o.runs, o.cookie)
	case opFetchAdd:
		return ep.FetchAdd(o.local, o.remote, o.a, o.cookie)
	default:
		return ep.CompareSwap(o.local, o.remote, o.a, o.b, o.cookie)
	}
}

// The one-sided operations of fabric.Endpoint, on world rank dst. An operation that the
// transport has no room for is queued. Like one that it has accepted, it is not done on
// return, and completes with its cookie. Callers may hold the poll lock.

// Put writes n bytes to memory of dst.
func (e *Engine) Put(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (done bool, err error) {
	return e.start(dst, op{what: opPut, local: local, remote: remote, n: n, cookie: cookie})
}

// Get reads n bytes of memory of dst.
func (e *Engine) Get(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (done bool, err error) {
	return e.start(dst, op{what: opGet, local: local, remote: remote, n: n, cookie: cookie})
}

// PutRuns writes to runs of memory of dst. The slice is copied if it is needed after
// the call.
func (e *Engine) PutRuns(dst int, local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (done bool, err error) {
	return e.start(dst, op{what: opPutRuns, local: local, remote: fabric.RemoteKey{Key: key}, runs: runs, cookie: cookie})
}

// GetRuns reads runs of memory of dst, likewise.
func (e *Engine) GetRuns(dst int, local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (done bool, err error) {
	return e.start(dst, op{what: opGetRuns, local: local, remote: fabric.RemoteKey{Key: key}, runs: runs, cookie: cookie})
}

// FetchAdd adds to 8 bytes of memory of dst, which may be this rank.
func (e *Engine) FetchAdd(dst int, old unsafe.Pointer, remote fabric.RemoteKey, add uint64, cookie uint64) (done bool, err error) {
	return e.start(dst, op{what: opFetchAdd, local: old, remote: remote, a: add, cookie: cookie})
}

// CompareSwap replaces 8 bytes of memory of dst, which may be this rank.
func (e *Engine) CompareSwap(dst int, old unsafe.Pointer, remote fabric.RemoteKey, compare, swap uint64, cookie uint64) (done bool, err error) {
	return e.start(dst, op{what: opCompareSwap, local: old, remote: remote, a: compare, b: swap, cookie: cookie})
}

func (e *Engine) start(dst int, o op) (done bool, err error) {
	p := &e.peers[dst]
	if o.what >= opFetchAdd && dst == e.Rank {
		p = &e.loop
	}
	if err := e.connect(dst, p); err != nil {
		return false, err
	}
	if p.synchronous { // no operation waits for room, and others can send while this one copies
		return o.issue(p.ep)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ops) == 0 {
		if done, err = o.issue(p.ep); err != fabric.ErrAgain {
			return done, err
		}
	}
	waiting := new(op) // o itself is not to be on the heap
	*waiting = o
	waiting.runs = slices.Clone(o.runs)
	p.ops = append(p.ops, waiting)
	e.countQueued(p, 1)
	return false, nil
}

// issueQueued issues the operations on rank dst that wait for room in the transport, and
// returns how many.
func (e *Engine) issueQueued(dst int, p *peer) (moved int) {
	for {
		o, done, err := e.issueFirst(dst, p)
		if o == nil || err == fabric.ErrAgain {
			return moved
		}
		moved++
		if done || err != nil {
			e.Completed(o.cookie, err)
		}
	}
}

// issueFirst issues the first operation that waits for room, and removes it from the
// queue. If there is still no room it stays, and the error is fabric.ErrAgain.
func (e *Engine) issueFirst(dst int, p *peer) (o *op, done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ops) == 0 {
		return nil, false, nil
	}
	o = p.ops[0]
	done, err = o.issue(p.ep)
	if err == fabric.ErrAgain && dst != e.Rank && e.Gone(dst) {
		err = fabric.ErrPeerGone
	}
	if err != fabric.ErrAgain {
		p.ops = p.ops[1:]
		e.countQueued(p, -1)
	}
	return o, done, err
}

// dropOps completes the operations that wait for room with an error.
func (e *Engine) dropOps(p *peer, err error) {
	for _, o := range e.takeOps(p) {
		e.Completed(o.cookie, err)
	}
}

// takeOps empties the queue of operations that wait for room.
func (e *Engine) takeOps(p *peer) []*op {
	p.mu.Lock()
	defer p.mu.Unlock()
	ops := p.ops
	p.ops = nil
	e.countQueued(p, -len(ops))
	return ops
}
