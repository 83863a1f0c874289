//go:build interleave && model

package cachemodel

import (
	"container/heap"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"unsafe"

	"gormapy/gocore/sys/atom"
)

// World runs ranks as coroutines, the one with the earliest clock first. It is the atom.Stepper of the run. A rank may
// be stopped at any of its accesses, so none may hold a mutex there that the ranks of one process share.
type World struct {
	machine  Machine
	lines    lines
	memory   []byte // shared memory whose lines are followed; of other data only the bytes are counted
	ranks    []*rank
	runnable queue
	current  *rank
	failure  string
}

type rank struct {
	number  int
	w       *World
	clock   Cost
	traffic Traffic
	next    func() (struct{}, bool)
	stop    func()
	resume  func(struct{}) bool

	looked  map[*line]bool // lines loaded since the last poll
	changed bool           // there was a transfer since then
	stopped bool           // until a line that it has looked at is written
	asleep  *uint32        // until this word is woken
	ended   bool
}

// queue has the ranks that can continue, by clock.
type queue []*rank

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].clock.Time != q[j].clock.Time {
		return q[i].clock.Time < q[j].clock.Time
	}
	return q[i].number < q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*rank)) }
func (q *queue) Pop() any {
	old := *q
	r := old[len(old)-1]
	*q = old[:len(old)-1]
	return r
}

type unwind struct{} // ends the coroutine of a run that is over

// Uncontained marks this panic: code that contains panics passes it on.
func (unwind) Uncontained() {}

// spawn adds a rank that runs body.
func (w *World) spawn(body func(r *rank)) {
	r := &rank{number: len(w.ranks), w: w, looked: map[*line]bool{}}
	w.ranks = append(w.ranks, r)
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.resume = yield
		debug.SetPanicOnFault(true)
		defer func() {
			r.ended = true
			switch p := recover().(type) {
			case nil, unwind:
			default:
				w.failure = fmt.Sprintf("rank %d: panic: %v\n%s", r.number, p, debug.Stack())
			}
		}()
		body(r)
	})
	w.ready(r)
}

func (w *World) ready(r *rank) { heap.Push(&w.runnable, r) }

// run runs the ranks to their ends.
func (w *World) run() error {
	atom.Explorer, atom.Data = w, w.data
	defer func() {
		for _, r := range w.ranks {
			w.current = r
			r.stop()
		}
		atom.Explorer, atom.Data, w.current = nil, nil, nil
	}()
	for len(w.runnable) > 0 && w.failure == "" {
		w.current = heap.Pop(&w.runnable).(*rank)
		w.current.next()
	}
	if w.failure != "" {
		return fmt.Errorf("%s", w.failure)
	}
	var stuck []string
	for _, r := range w.ranks {
		if !r.ended {
			stuck = append(stuck, fmt.Sprint(r.number))
		}
	}
	if stuck != nil {
		return fmt.Errorf("ranks %s wait for ever", strings.Join(stuck, ", "))
	}
	return nil
}

// pause returns control to run until the rank is chosen again.
func (r *rank) pause() {
	if !r.resume(struct{}{}) {
		panic(unwind{})
	}
}

// turn returns when no other rank's clock is earlier.
func (r *rank) turn() {
	q := r.w.runnable
	if len(q) > 0 && (q[0].clock.Time < r.clock.Time || q[0].clock.Time == r.clock.Time && q[0].number < r.number) {
		r.w.ready(r)
		r.pause()
	}
}

// poll is called by a rank that polls and has found nothing: it stops the rank until a line that it has looked at
// since the last poll is written.
func (r *rank) poll() {
	r.turn()
	still := !r.changed
	for l := range r.looked {
		still = still && l.holds(r.number)
	}
	if still {
		r.stopped = true
		r.pause()
	}
	clear(r.looked)
	r.changed = false
}

// The functions of atom.Stepper.

// Step implements atom.Stepper.
func (w *World) Step(op atom.Op, p unsafe.Pointer) {
	r := w.current
	r.turn()
	w.current = r
	l := w.lines.of(uintptr(p))
	if !w.access(r, l, op != atom.OpLoad, false) {
		r.changed = true
	}
	if op == atom.OpLoad {
		r.looked[l] = true
	} else {
		r.changed = true
	}
}

// Done implements atom.Stepper.
func (w *World) Done(atom.Op, unsafe.Pointer, uint64, bool) {}

// Delay implements atom.Stepper.
func (w *World) Delay(unsafe.Pointer, int, uint64) bool { return false }

// Yield implements atom.Stepper.
func (w *World) Yield() { w.current.poll() }

// Sleep implements atom.Stepper.
func (w *World) Sleep(p *uint32, v uint32) {
	r := w.current
	r.turn()
	if *p != v {
		return
	}
	r.asleep = p
	r.pause()
}

// Wake implements atom.Stepper.
func (w *World) Wake(p *uint32) {
	r := w.current
	r.turn()
	r.kernel()
	for _, o := range w.ranks {
		if o.asleep == p {
			o.asleep = nil
			r.traffic.Woken++
			o.clock = later(o.clock, r.clock)
			w.ready(o)
		}
	}
}

func (r *rank) kernel() {
	r.traffic.Calls++
	r.clock.Calls++
	r.clock.Time += r.w.machine.Call
}

// data is told of the data that collectives move.
func (w *World) data(p unsafe.Pointer, n int, way atom.Way) {
	r := w.current
	r.turn()
	if way == atom.WayWrite {
		r.traffic.Written += n
	} else {
		r.traffic.Read += n
	}
	if way == atom.WayKernel {
		r.kernel()
	}
	if first := uintptr(unsafe.Pointer(&w.memory[0])); uintptr(p)-first >= uintptr(len(w.memory)) {
		r.clock.Bytes += n
		r.clock.Time += float64(n) * w.machine.Byte
		return
	}
	more := false
	w.span(p, n, func(l *line) {
		if !w.access(r, l, way == atom.WayWrite, more) {
			r.changed, more = true, true
		}
	})
}
