package mpi

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// # Awaited requests
//
// An event loop of the program (asyncio) sleeps in the system until a descriptor becomes readable, and many tasks of it may await
// a request each. So
//
//   - a loop has a Waker (package sys): an eventfd, and the numbers of awaited requests that have ended;
//   - whoever completes a send or receive tells the loop at once (p2p.Request.Watch);
//   - as long as anything is awaited, a goroutine, the attendant, waits in MPI as a thread of the program would that waits for
//     all of it: it polls the transports when a peer rings, and sleeps otherwise. It looks at operations other than sends and
//     receives, which tell nobody, and now and then whether something can't complete any more.
//
// That something has ended means that Wait returns at once, not that it has succeeded. It is told once, and
// may be told too early, so the caller awaits again if a Test says so. If a task is cancelled, its wait is forgotten, so
// that nothing is left of it however often a request is awaited in vain.

// loopWait names a wait of an event loop.
type loopWait struct {
	waker  *sys.Waker
	number int64
}

// watched is a request that an event loop awaits.
type watched struct {
	loopWait
	r     *Request
	ended atomic.Bool // or forgotten
}

// end tells the loop.
func (w *watched) end() {
	if !w.ended.Swap(true) {
		w.waker.Notify(w.number)
		attendant.less()
	}
}

// forget has the loop not told.
func (w *watched) forget() {
	if !w.ended.Swap(true) {
		attendant.less()
	}
}

// looksEvery is the time between two looks whether what is awaited can still complete.
const looksEvery = int64(25 * time.Millisecond)

// attendant is the goroutine that waits for what is awaited.
var attendant attending

type attending struct {
	open atomic.Int64 // how many have not ended

	mu         sync.Mutex
	running    bool
	all        map[loopWait]*watched // those that have ended are taken out at the next look
	operations []*watched            // of these, the ones that tell nobody
	look       int64                 // when it is time for the next look
}

var wakers = newTable[sys.Waker](1)

// WakerOpen makes a waker for an event loop.
func WakerOpen() (h int64, code Code) {
	defer Contain(&code)
	w, err := sys.NewWaker()
	if err != nil {
		return 0, classError(errs.NoMem, "make a descriptor for an event loop: %v", err)
	}
	return wakers.add(w), 0
}

// WakerFD returns the descriptor of a waker, which is readable when WakerTake has something; -1 if there is no such waker.
func WakerFD(h int64) int {
	if w := wakers.get(h); w != nil {
		return w.FD()
	}
	return -1
}

// WakerClose closes a waker, and ends all waits of its loop.
func WakerClose(h int64) {
	if w := wakers.take(h); w != nil {
		attendant.forgetLoop(w)
		_ = w.Close()
	}
}

// WakerTake writes at most n numbers of what has ended to addr, and returns how many.
func WakerTake(h, addr int64, n int) int {
	w := wakers.get(h)
	if w == nil {
		return 0
	}
	return w.Take(unsafe.Slice((*int64)(pointer(addr)), n))
}

// WakerWatch tells a waker the number when a request has ended. One that another thread has finished or freed has ended.
func WakerWatch(h, req, number int64) (code Code) {
	defer Contain(&code)
	w := wakers.get(h)
	if w == nil {
		return classError(errs.Arg, "the event loop has been closed")
	}
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	r, e := getRequest(req)
	if e != nil {
		w.Notify(number)
		return 0
	}
	a := &watched{loopWait: loopWait{w, number}, r: r}
	attendant.open.Add(1)
	if r.advance() {
		a.end()
		return 0
	}
	attendant.add(a)
	if r.op == nil {
		r.Watch(a.end)
	}
	return 0
}

// WakerForget ends the wait for what a waker was to tell a number of.
func WakerForget(h, number int64) {
	if w := wakers.get(h); w != nil {
		attendant.forget(loopWait{w, number})
	}
}

// less counts one that has ended or was forgotten.
func (t *attending) less() {
	if t.open.Add(-1) == 0 {
		proc.me.Ring() // the attendant can go
	}
}

func (t *attending) forget(name loopWait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.all[name]; a != nil {
		a.forget()
		delete(t.all, name)
	}
}

func (t *attending) forgetLoop(w *sys.Waker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(name loopWait, a *watched) bool {
		if name.waker == w {
			a.forget()
		}
		return name.waker == w
	})
}

func (t *attending) add(a *watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[loopWait]*watched{}
	}
	t.all[a.loopWait] = a
	if a.r.op != nil {
		t.operations = append(t.operations, a)
	}
	if !t.running {
		t.running = true
		go t.run()
		return
	}
	if a.r.op != nil {
		proc.me.Ring() // it looks at a new operation at once
	}
}

// run waits until nothing is awaited any more.
func (t *attending) run() {
	why := &engine.Reason{Call: job.CallWait, Peer: -2, Tag: -1, Info: "awaited requests"}
	for !t.rests() {
		why.Continue(job.Now()) // it sleeps at once: the processor is the program's
		t.wait(why)
	}
}

// wait waits for a slice of time at most.
func (t *attending) wait(why *engine.Reason) {
	var code Code
	defer func() {
		if code != 0 {
			t.endAll() // those that wait get the error
		}
	}()
	defer Contain(&code)
	if e := ready(); e != nil {
		code = CodeOf(e)
		return
	}
	if err := proc.eng.Wait(why, t.advance, t.check); err != nil && err != engine.ErrInterrupted {
		code = codeOfErr(err)
	}
}

// rests reports whether nothing is awaited. Then the attendant is not running any more.
func (t *attending) rests() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open.Load() > 0 && len(t.all) > 0 {
		return false
	}
	t.all, t.operations, t.running = nil, nil, false
	return true
}

// advance looks at the operations, and reports whether nothing is awaited.
func (t *attending) advance() bool {
	t.lookAtOperations()
	return t.open.Load() == 0
}

func (t *attending) lookAtOperations() {
	if !t.mu.TryLock() {
		return // a request is being added
	}
	defer t.mu.Unlock()
	t.operations = slices.DeleteFunc(t.operations, func(a *watched) bool {
		if !a.ended.Load() && a.r.advance() {
			a.end()
		}
		return a.ended.Load()
	})
}

// check ends what can't complete any more: a wait for it returns why.
func (t *attending) check() error {
	now := job.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.look {
		return nil
	}
	t.look = now + looksEvery
	maps.DeleteFunc(t.all, func(_ loopWait, a *watched) bool {
		if !a.ended.Load() && (a.r.advance() || a.r.check() != nil) {
			a.end()
		}
		return a.ended.Load()
	})
	return nil
}

func (t *attending) endAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		a.end()
	}
	t.all, t.operations = nil, nil
}
