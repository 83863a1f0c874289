//go:build interleave

package explore

import (
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"unsafe"

	"gormapy/gocore/sys/atom"
)

// World is one run: the memory and the threads with their states.
type World struct {
	opt     Options
	threads []*Thread
	regions []region
	names   map[unsafe.Pointer]string
	final   func() error

	current *Thread
	last    *Thread // the thread that ran last, for counting preemptions
	failure string
	deaths  int
	early   int // number of early time-outs
	preempt int
	trace   *strings.Builder // receives the schedule; nil: it is not printed
}

type region struct {
	name string
	base uintptr
	mem  []byte
}

// Memory makes n bytes at p part of the state. All memory that package atom accesses
// and that the test's own checks depend on must be registered in this way.
func (w *World) Memory(name string, p unsafe.Pointer, n uintptr) {
	w.regions = append(w.regions, region{name, uintptr(p), unsafe.Slice((*byte)(p), int(n))})
}

// Watch makes *p part of the state.
func Watch[T any](w *World, name string, p *T) {
	w.Memory(name, unsafe.Pointer(p), unsafe.Sizeof(*p))
}

// Name sets the name of a word in printed schedules.
func (w *World) Name(p unsafe.Pointer, name string) { w.names[p] = name }

// Finally sets a check that must succeed when all threads have ended.
func (w *World) Finally(f func() error) { w.final = f }

type status uint8

const (
	ready   status = iota
	yielded        // in Yield
	waiting        // in Await
	asleep         // on a futex
	dead
	ended
)

// Thread is one logical thread.
type Thread struct {
	Name   string
	w      *World
	index  int
	daemon bool
	mortal bool

	next   func() (struct{}, bool)
	stop   func()
	resume func(struct{}) bool

	past    uint64 // hash of all that it has learnt
	pending uint64 // the access before which it has stopped
	status  status
	word    unsafe.Pointer // the futex on which it sleeps
	cond    func() bool    // the condition of Await
	fresh   bool           // another thread has written since the last Yield
	idle    int            // number of yields since another thread's last step
	wrote   bool           // its last step was a write
	unwinds bool           // the run is over and the coroutine is being ended
	onDeath func()
	clock   int64
	buffer  []delayed // with Options.Weak
}

// Thread adds a thread with that body and lets it run to the beginning of the body.
func (w *World) Thread(name string, body func(t *Thread)) *Thread {
	t := &Thread{Name: name, w: w, index: len(w.threads), fresh: true, wrote: true}
	w.threads = append(w.threads, t)
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.resume = yield
		defer func() {
			t.status = ended
			switch p := recover().(type) {
			case nil, unwind:
			case failed:
				w.fail("%s: %s", t.Name, string(p))
			default:
				w.fail("%s: panic: %v\n%s", t.Name, p, debug.Stack())
			}
		}()
		t.pause(ready)
		body(t)
	})
	w.run(t)
	return t
}

// Daemon lets the run end although this thread has not ended.
func (t *Thread) Daemon() *Thread {
	t.daemon = true
	return t
}

// Mortal lets this thread die, as far as Options.Deaths allows.
func (t *Thread) Mortal() *Thread {
	t.mortal = true
	return t
}

// OnDeath sets a function that is called at the moment of the thread's death.
func (t *Thread) OnDeath(f func()) { t.onDeath = f }

type (
	unwind struct{} // ends the coroutine of a run that is over
	failed string
)

// Uncontained marks these panics: code that contains panics passes them on.
func (unwind) Uncontained() {}
func (failed) Uncontained() {}

func (w *World) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

// pause returns control to the explorer until it chooses this thread.
func (t *Thread) pause(s status) {
	if t.unwinds {
		return // deferred calls of a thread that is being ended
	}
	t.status = s
	if !t.resume(struct{}{}) {
		t.unwinds = true
		panic(unwind{})
	}
	t.status = ready
}

func (w *World) run(t *Thread) {
	w.current = t
	t.next()
	w.current = nil
}

func (w *World) close() {
	for _, t := range w.threads {
		w.current = t
		t.unwinds = true
		t.stop()
	}
	w.current = nil
}

// Check fails the test, with the schedule that led to this point, unless ok is true.
func (t *Thread) Check(ok bool, format string, args ...any) {
	if !ok && !t.unwinds {
		panic(failed(fmt.Sprintf(format, args...)))
	}
}

// Pause lets other threads run at this point. For Options.Plain and for dying, it is
// also a boundary between the accesses before and after it.
func (t *Thread) Pause() {
	t.pause(ready)
	t.w.log(t, "continues")
	t.done(1<<60, true)
}

// Note makes values that the thread has learnt other than through package atom part of
// its past.
func (t *Thread) Note(values ...uint64) {
	for _, v := range values {
		t.past = mix(t.past, v)
	}
}

// NoteBytes is Note for memory.
func (t *Thread) NoteBytes(b []byte) { t.past = mixBytes(mix(t.past, uint64(len(b))), b) }

// Forget declares that the thread's future depends, apart from shared memory, only on
// values. The values must also distinguish this call of Forget from the others in the
// code.
func (t *Thread) Forget(values ...uint64) {
	t.past = 0x51
	t.clock = 0
	t.Note(values...)
}

// Await blocks until cond returns true. cond must depend only on shared memory and on
// which threads are dead, and must not use package atom.
func (t *Thread) Await(what string, cond func() bool) {
	t.cond = cond
	t.pause(waiting)
	t.w.log(t, "continues: %s", what)
	t.done(2<<60, false)
}

// Dead reports whether the thread has died. A thread that acts on it has to Note it.
func (t *Thread) Dead() bool { return t.status == dead }

// Asleep reports whether the thread sleeps on a futex.
func (t *Thread) Asleep() bool { return t.status == asleep }

// Current returns the calling thread.
func (w *World) Current() *Thread { return w.current }

// Now is a clock for code that stops spinning after a while: it advances by d with each
// call.
func (t *Thread) Now(d int64) int64 {
	t.clock += d
	return t.clock
}

// Log adds a line to the printed schedule.
func (t *Thread) Log(format string, args ...any) { t.w.log(t, format, args...) }

func (w *World) log(t *Thread, format string, args ...any) {
	if w.trace != nil && !t.unwinds {
		fmt.Fprintf(w.trace, "    %-10s %s\n", t.Name, fmt.Sprintf(format, args...))
	}
}

// done ends a step of the thread.
func (t *Thread) done(learnt uint64, wrote bool) {
	t.past = mix(t.past, learnt)
	t.wrote = wrote
	if wrote {
		for _, o := range t.w.threads {
			if o != t {
				o.fresh = true
			}
		}
	}
}

// place returns an identification of the word at p that is the same in each run.
func (w *World) place(p unsafe.Pointer) uint64 {
	for i := range w.regions {
		r := &w.regions[i]
		if off := uintptr(p) - r.base; off < uintptr(len(r.mem)) {
			return uint64(i)<<32 | uint64(off)
		}
	}
	panic("the access is to memory that World.Memory was not told of")
}

func (w *World) name(p unsafe.Pointer) string {
	if s, ok := w.names[p]; ok {
		return s
	}
	at := w.place(p)
	return fmt.Sprintf("%s+%d", w.regions[at>>32].name, at&0xffffffff)
}

var opNames = [...]string{"load", "store", "add", "cas", "swap"}

// Step implements atom.Stepper.
func (w *World) Step(op atom.Op, p unsafe.Pointer) {
	t := w.current
	if t.unwinds {
		return
	}
	t.pending = mix(uint64(op)+1, w.place(p))
	t.pause(ready)
	t.pending = 0
	if op != atom.OpStore && !t.unwinds {
		t.drain()
	}
}

// Done implements atom.Stepper.
func (w *World) Done(op atom.Op, p unsafe.Pointer, result uint64, wrote bool) {
	t := w.current
	if t.unwinds {
		return
	}
	if w.trace != nil {
		w.log(t, "%-5s %s -> %#x", opNames[op], w.name(p), result)
	}
	t.past = mix(mix(t.past, uint64(op)), w.place(p))
	t.done(result, wrote)
	if wrote && (w.opt.Plain || w.opt.Weak) {
		t.pause(ready)
		t.done(3<<60, true)
	}
}

// Yield implements atom.Stepper.
func (w *World) Yield() {
	t := w.current
	t.pause(yielded)
	t.drain()
	t.fresh = false
	t.idle++
	w.log(t, "returns from yield")
	t.done(4<<60, false)
}

// Sleep implements atom.Stepper.
func (w *World) Sleep(p *uint32, v uint32) {
	t := w.current
	t.pause(ready)
	if t.unwinds {
		return
	}
	t.drain()
	t.past = mix(t.past, w.place(unsafe.Pointer(p)))
	if *p != v {
		w.log(t, "does not sleep: %s is %#x, not %#x", w.name(unsafe.Pointer(p)), *p, v)
		t.done(5<<60, false)
		return
	}
	w.log(t, "sleeps on %s", w.nameIf(unsafe.Pointer(p)))
	t.done(6<<60, false)
	t.word = unsafe.Pointer(p)
	t.pause(asleep)
	w.log(t, "has woken up")
	t.done(7<<60, false)
}

func (w *World) nameIf(p unsafe.Pointer) string {
	if w.trace == nil {
		return ""
	}
	return w.name(p)
}

// Wake implements atom.Stepper.
func (w *World) Wake(p *uint32) {
	t := w.current
	t.pause(ready)
	if t.unwinds {
		return
	}
	t.drain()
	n := uint64(0)
	for _, o := range w.threads {
		if o.status == asleep && o.word == unsafe.Pointer(p) {
			o.status = ready
			n++
		}
	}
	w.log(t, "wakes %d on %s", n, w.nameIf(unsafe.Pointer(p)))
	t.done(8<<60, true)
}

func mix(h, v uint64) uint64 {
	h = (h ^ (v + 0x632be59bd9b4e019)) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

func mixBytes(h uint64, b []byte) uint64 {
	for len(b) >= 8 {
		h = mix(h, *(*uint64)(unsafe.Pointer(&b[0])))
		b = b[8:]
	}
	for _, c := range b {
		h = mix(h, uint64(c))
	}
	return h
}

// state returns a hash of everything that the future depends on.
func (w *World) state() uint64 {
	h := uint64(0x676f726d617079)
	for i := range w.regions {
		h = mixBytes(h, w.regions[i].mem)
	}
	mayDie := w.deaths < w.opt.Deaths
	for _, t := range w.threads {
		s := uint64(t.status)
		h = t.mixBuffer(h)
		if t.status == dead || t.status == ended {
			h = mix(h, s)
			continue
		}
		if w.opt.IdleYields > 0 {
			s |= uint64(t.idle) << 16
		} else if t.fresh && !w.opt.FreeYield {
			s |= 1 << 8
		}
		if t.wrote && t.mortal && mayDie {
			s |= 1 << 9
		}
		h = mix(mix(mix(h, s), t.past), t.pending)
	}
	h = mix(h, uint64(w.early))
	if w.opt.Preemptions > 0 {
		h = mix(h, uint64(w.preempt))
		if w.last != nil {
			h = mix(h, uint64(w.last.index)+1)
		}
	}
	return h
}
