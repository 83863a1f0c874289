package rma

import (
	"sync/atomic"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
)

// remoteLock is an origin's view of the lock of a target that a network reaches.
//
// # Protocol
//
// All ranks use the lock of lock.go, in the target's control segment. A rank that
// shares no memory with the target has a proxy there (lockProxy), which uses that
// rank's slot. Proxies run under the target's poll lock, so the target's progress
// engine serves them while the program computes.
//
//	origin                                    proxy
//	Lock(number, mode)   ------------------>  draws a ticket (wants, until its slot is free), waits
//	                     <------------------  Locked(number): it is the ticket's turn
//	...operations, until all have completed...
//	Unlock(number)       ------------------>  releases; or leaves the queue, if it still waits
//
// Try asks for the shared lock without queueing: the answer is Locked at once, or Busy.
//
// Numbers grow with each request of an origin for a target's lock. An origin that
// gives up (Ctrl-C) sends Unlock as well: a Locked that is already on its way has an
// outdated number, and the origin ignores it. Messages from one rank to another keep
// their order, so a proxy that gets a Lock has got the Unlock before it. The origin
// does not wait for an Unlock to arrive: its next Lock comes after it.
//
// A proxy learns of its turn as other waiters do: the rank that passes the turn on
// rings. For a rank with a proxy it rings the progress engine of the target's process.
//
// The proxy of a dead origin does nothing more. Its slot shows that the rank died,
// and the living ranks skip it as lock.go says. A proxy that finds a dead exclusive
// holder reports it in place of the lock (Refused), as Lock.Check does. A dead target
// sends no answer: the origin's wait ends by its own check.
type remoteLock struct {
	w      *Win
	target int
	word   atomic.Uint64 // number<<remoteShift | state: an answer is to one request
	holder atomic.Int32  // of a refused lock: the rank that died holding it
}

const remoteShift = 3

// States of a remoteLock.
const (
	remoteIdle uint64 = iota
	remoteAsked
	remoteGranted
	remoteRefused
	remoteBusy
)

// Values of Aux in KindLock (ask…) and KindLocked (lock…).
const (
	askShared uint32 = iota
	askExclusive
	askTry
	askUnlock

	lockGranted uint32 = iota
	lockRefused
	lockBusy
)

func (r *remoteLock) send(what uint32, number uint64) {
	h := r.w.header(fabric.KindLock)
	h.Aux, h.A = what, number
	r.w.rma.eng.Send(r.w.World[r.target], &h, nil, nil, nil)
}

func (r *remoteLock) state() uint64 { return r.word.Load() & (1<<remoteShift - 1) }

// ask asks for the lock, if it has not been asked for.
func (r *remoteLock) ask(what uint32) {
	if r.state() != remoteIdle {
		return
	}
	number := r.word.Load()>>remoteShift + 1
	r.word.Store(number<<remoteShift | remoteAsked)
	r.send(what, number)
}

// unlock releases the lock, or gives up asking for it.
func (r *remoteLock) unlock() {
	for {
		word := r.word.Load()
		number := word >> remoteShift
		idle := number << remoteShift // with remoteIdle, which is 0
		if !r.word.CompareAndSwap(word, idle) {
			continue // an answer has come
		}
		switch word & (1<<remoteShift - 1) {
		case remoteAsked, remoteGranted:
			r.send(askUnlock, number)
		}
		return
	}
}

func (r *remoteLock) reset() {
	r.word.Store((r.word.Load()>>remoteShift + 1) << remoteShift)
}

// onLocked handles the answer at the origin.
func (m *RMA) onLocked(src int, h *fabric.Header, _ []byte) {
	w := m.window(h.Ctx)
	if w == nil || h.Src < 0 || int(h.Src) >= w.Size || w.World[h.Src] != src {
		return
	}
	r := w.remoteLocks[h.Src]
	if r == nil || h.A != r.word.Load()>>remoteShift {
		return
	}
	to := remoteGranted
	switch h.Aux {
	case lockRefused:
		r.holder.Store(int32(h.B))
		to = remoteRefused
	case lockBusy:
		to = remoteBusy
	}
	r.word.CompareAndSwap(h.A<<remoteShift|remoteAsked, h.A<<remoteShift|to)
}

// lockProxy uses the lock of this rank's part on behalf of a rank that shares no
// memory with it.
type lockProxy struct {
	lock   *lock
	number uint64
	mode   lockMode
	state  proxyState
}

type proxyState uint8

const (
	proxyIdle proxyState = iota
	proxyWants
	proxyWaits
	proxyHolds
)

// waiting reports whether pollers have to advance the proxy.
func (p *lockProxy) waiting() bool { return p.state == proxyWants || p.state == proxyWaits }

// onLock handles requests at the target.
func (m *RMA) onLock(src int, h *fabric.Header, _ []byte) {
	w := m.window(h.Ctx)
	if w == nil || h.Src < 0 || int(h.Src) >= w.Size || w.World[h.Src] != src || int(h.Src) == w.Rank {
		return
	}
	p := w.lockProxies[h.Src]
	if p == nil {
		own := w.locks[w.Rank]
		p = &lockProxy{lock: &lock{words: own.words, slots: own.slots, ring: own.ring, me: int(h.Src)}}
		w.lockProxies[h.Src] = p
	}
	if h.Aux == askUnlock {
		if p.number == h.A {
			w.retire(p)
		}
		return
	}
	w.retire(p)
	p.number, p.mode = h.A, shared
	if h.Aux == askTry {
		w.tryFor(int(h.Src), p)
		return
	}
	p.state = proxyWants
	if h.Aux == askExclusive {
		p.mode = exclusive
	}
	m.eng.NeedPollHooks(1)
	w.advanceProxy(int(h.Src), p)
}

// tryFor has the proxy of an origin take the lock if it is free, and answers.
func (w *Win) tryFor(origin int, p *lockProxy) {
	h := fabric.Header{Kind: fabric.KindLocked, Gen: w.rma.gen.Load(), Ctx: w.ID, Src: int32(w.Rank), A: p.number, Aux: lockBusy}
	if p.lock.tryShared() {
		p.state, h.Aux = proxyHolds, lockGranted
	}
	w.rma.eng.Send(w.World[origin], &h, nil, nil, nil)
}

// retire releases the proxy's lock, or leaves the queue for it.
func (w *Win) retire(p *lockProxy) {
	switch p.state {
	case proxyWaits:
		p.lock.leave()
	case proxyHolds:
		p.lock.release()
	}
	if p.waiting() {
		w.rma.eng.NeedPollHooks(-1)
	}
	p.state = proxyIdle
}

// dropLockProxies drops all proxies without touching their locks, which are about to
// be freed or reset.
func (w *Win) dropLockProxies() {
	w.rma.eng.Exclude(func() {
		for i, p := range w.lockProxies {
			if p != nil && p.waiting() {
				w.rma.eng.NeedPollHooks(-1)
			}
			w.lockProxies[i] = nil
		}
	})
}

// advanceProxy advances the proxy of one origin and reports whether its state has
// become final: the lock is held or refused, or the origin is dead.
func (w *Win) advanceProxy(origin int, p *lockProxy) bool {
	dead := func(i int) bool { return i != w.Rank && w.rma.eng.Gone(w.World[i]) }
	if dead(origin) {
		p.state = proxyIdle // the living ranks skip its slot
		w.rma.eng.NeedPollHooks(-1)
		return true
	}
	if p.state == proxyWants {
		if !p.lock.begin(p.mode) {
			return false
		}
		p.state = proxyWaits
	}
	h := fabric.Header{Kind: fabric.KindLocked, Gen: w.rma.gen.Load(), Ctx: w.ID, Src: int32(w.Rank), A: p.number, Aux: lockGranted}
	if !p.lock.try() {
		holder := -1
		if w.rma.deaths.Load() > 0 {
			holder = p.lock.skip(dead)
		}
		switch {
		case holder >= 0:
			p.lock.leave()
			w.rma.eng.NeedPollHooks(-1)
			p.state = proxyIdle
			h.Aux, h.B = lockRefused, uint64(holder)
			w.rma.eng.Send(w.World[origin], &h, nil, nil, nil)
			return true
		case !p.lock.try():
			return false
		}
	}
	p.state = proxyHolds
	w.rma.eng.NeedPollHooks(-1)
	w.rma.eng.Send(w.World[origin], &h, nil, nil, nil)
	return true
}

// serveLockProxies advances all waiting proxies and returns how many are done. It runs
// under the poll lock.
func (m *RMA) serveLockProxies() (moved int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, w := range m.wins {
		for origin, p := range w.lockProxies {
			if p != nil && p.waiting() && w.advanceProxy(origin, p) {
				moved++
			}
		}
	}
	return moved
}

// bell returns the function that wakes a waiter for the lock of target's part.
func (w *Win) bell(target int) func(i int) {
	return func(i int) {
		if i != w.Rank && w.rma.eng.Remote(w.World[i]) {
			w.ranks[target].RingProgress()
		} else {
			w.ranks[i].Ring()
		}
	}
}

// tellRemote implements pscw.tell.
func (w *Win) tellRemote(rank int, completed bool) bool {
	if rank == w.Rank || !w.rma.eng.Remote(w.World[rank]) {
		return false
	}
	h := w.header(fabric.KindCounters)
	if completed {
		h.Aux = 1
	}
	w.rma.eng.Send(w.World[rank], &h, nil, nil, nil)
	return true
}

// onCounters handles tellRemote's message.
func (m *RMA) onCounters(src int, h *fabric.Header, _ []byte) {
	w := m.window(h.Ctx)
	if w != nil && h.Src >= 0 && int(h.Src) < w.Size && w.World[h.Src] == src {
		w.pscw.count(int(h.Src), h.Aux == 1)
	}
}

// refused returns the error of a lock whose holder died.
func (l *Lock) refused(rank, holder int) *errs.Error {
	w := l.w
	return errs.New(errs.ProcFailed, "rank %d of the window held rank %d locked exclusively when it ended (%s); its updates may be incomplete, the lock has been released",
		holder, rank, w.rma.eng.HowGone(w.World[holder]))
}
