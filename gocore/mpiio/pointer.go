package mpiio

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
)

// # The shared file pointer
//
// It counts etypes. If all ranks of the file are on one node, it is a word in memory that
// they share, and each rank adds to it. Else it is a word of rank 0, to which the other
// ranks, near or far, send requests:
//
//	any rank                               rank 0
//	ask(token, n)   ------------------>    adds n to the word, in its progress engine
//	                <------------------    moved(token, old value)
//
// The file's communicator names the word. Requests of ranks that give up are served, too:
// then the pointer has moved, as if the access had been made and its data dropped.

// Pointers has the shared file pointers of a process's files whose ranks are on several
// nodes.
type Pointers struct {
	eng   *engine.Engine
	mu    sync.Mutex
	words map[uint32]*int64 // by context; of rank 0
	moves map[uint64]*move
	last  uint64
}

// NewPointers makes them, and handles their messages.
func NewPointers(e *engine.Engine) *Pointers {
	p := &Pointers{eng: e, words: map[uint32]*int64{}, moves: map[uint64]*move{}}
	e.Handle(fabric.KindFilePointer, p.handle)
	return p
}

// Values of Header.Aux. A is the token, B the number of etypes or the old value.
const (
	pointerAsk uint32 = iota
	pointerMoved
	pointerUnknown // rank 0 has closed the file
)

// serve makes a word the pointer of the file with a context, at rank 0; nil ends that.
func (p *Pointers) serve(ctx uint32, word *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if word == nil {
		delete(p.words, ctx)
	} else {
		p.words[ctx] = word
	}
}

func (p *Pointers) handle(src int, h *fabric.Header, _ []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Aux != pointerAsk {
		if m := p.moves[h.A]; m != nil && m.owner == src {
			delete(p.moves, h.A)
			m.old, m.known = int64(h.B), h.Aux == pointerMoved
			m.done.Store(true)
		}
		return
	}
	reply := fabric.Header{Kind: fabric.KindFilePointer, Gen: h.Gen, Ctx: h.Ctx, Aux: pointerUnknown, A: h.A}
	if word := p.words[h.Ctx]; word != nil {
		reply.Aux, reply.B = pointerMoved, uint64(atomic.AddInt64(word, int64(h.B))-int64(h.B))
	}
	p.eng.Send(src, &reply, nil, nil, nil)
}

// move is a request to move the pointer. It implements Waiting.
type move struct {
	p     *Pointers
	f     *File
	token uint64
	owner int // world rank
	done  atomic.Bool
	known bool
	old   int64
}

// moveShared begins to move the shared file pointer by count etypes. get returns the old
// value once the request has completed; nil means that it has.
func (f *File) moveShared(count int64) (m *move, get func() int64) {
	if f.pointer() != nil {
		old := addShared(f, count)
		return nil, func() int64 { return old }
	}
	p := f.Pointers
	m = &move{p: p, f: f, owner: f.Comm.Chan.World[0]}
	p.mu.Lock()
	p.last++
	m.token = p.last
	p.moves[m.token] = m
	p.mu.Unlock()
	h := fabric.Header{Kind: fabric.KindFilePointer, Flags: engine.FlagUrgent, Gen: f.Comm.Chan.Generation(), Ctx: f.Comm.Chan.Ctx, Aux: pointerAsk, A: m.token, B: uint64(count)}
	p.eng.Send(m.owner, &h, nil, nil, nil)
	return m, func() int64 { return m.old }
}

// Advance reports whether the answer has come.
func (m *move) Advance() bool { return m.done.Load() }

// Check returns an error if no answer will come.
func (m *move) Check() error {
	if !m.done.Load() && m.p.eng.Gone(m.owner) {
		return errs.New(errs.ProcFailed, "the shared file pointer of %s is lost: %s", m.f.name(), m.p.eng.HowGone(m.owner))
	}
	return nil
}

// Abandon gives up.
func (m *move) Abandon() {
	m.p.mu.Lock()
	delete(m.p.moves, m.token)
	m.p.mu.Unlock()
}

// Err returns the error of a request that has completed.
func (m *move) Err() *errs.Error {
	if m.known {
		return nil
	}
	return errs.New(errs.File, "rank 0 of the file's communicator has closed %s", m.f.name())
}

// pointerTime bounds how long a call waits for the pointer's value alone.
const pointerTime = 30 * time.Second

// loadShared returns the shared file pointer. It waits for rank 0.
func (f *File) loadShared() (int64, *errs.Error) {
	m, get := f.moveShared(0)
	if m == nil {
		return get(), nil
	}
	why := &engine.Reason{Call: job.CallFile, Peer: m.owner, Tag: -1}
	for end := time.Now().Add(pointerTime); !m.Advance(); {
		if err := m.p.eng.Wait(why, m.Advance, m.Check); err != nil && err != engine.ErrInterrupted {
			m.Abandon()
			e, ok := err.(*errs.Error)
			if !ok {
				e = errs.New(errs.Other, "%v", err)
			}
			return 0, e
		}
		if time.Now().After(end) {
			m.Abandon()
			return 0, errs.New(errs.Other, "rank 0 of the file's communicator has not told the shared file pointer of %s within %v", f.name(), pointerTime)
		}
	}
	return get(), m.Err()
}

// pointer returns the address of the shared file pointer, nil if it is at another rank.
func (f *File) pointer() *int64 {
	if f.shared != nil {
		return (*int64)(unsafe.Pointer(&f.shared.Mem[0]))
	}
	return f.word
}

// addShared moves the shared file pointer by count etypes and returns its old value. This
// process has the pointer.
func addShared(f *File, count int64) int64 { return atomic.AddInt64(f.pointer(), count) - count }
