//go:build interleave

package simulate

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"unsafe"

	"gormapy/gocore/sys/atom"
)

// scheduler runs coroutines one at a time, in an order that a seed decides. It is the
// atom.Stepper of the run.
type scheduler struct {
	rand    *rand.Rand
	threads []*thread
	current *thread
	clock   int64
	steps   int
	trace   uint64 // hash of the order in which threads ran
	stopped map[int]int
	failure string
	event   func(step int) // called before each step
	where   func() string  // describes what the ranks do
}

// stepNanos is how much time passes in a step.
const stepNanos = 2000

type thread struct {
	s      *scheduler
	rank   int
	daemon bool // the run does not wait for it
	next   func() (struct{}, bool)
	stop   func()
	resume func(struct{}) bool

	word    *uint32 // the futex on which it sleeps
	value   uint32
	until   int64
	ended   bool
	dead    bool // its process has been killed: it never runs again
	unwinds bool
}

type unwind struct{} // ends the coroutine of a run that is over

// Uncontained marks this panic: code that contains panics passes it on.
func (unwind) Uncontained() {}

func newScheduler(seed uint64) *scheduler {
	return &scheduler{rand: rand.New(rand.NewPCG(seed, 1)), stopped: map[int]int{}}
}

func (s *scheduler) thread(rank int, daemon bool, body func()) {
	t := &thread{s: s, rank: rank, daemon: daemon}
	s.threads = append(s.threads, t)
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		debug.SetPanicOnFault(true)
		t.resume = yield
		defer func() {
			t.ended = true
			switch p := recover().(type) {
			case nil, unwind:
			default:
				s.fail("rank %d: panic: %v\n%s", rank, p, debug.Stack())
			}
		}()
		body()
	})
}

func (s *scheduler) fail(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf(format, args...)
	}
}

// pause returns control to the scheduler until it chooses this thread again.
func (t *thread) pause() {
	if t.unwinds {
		return // deferred calls of a thread that is being ended
	}
	if !t.resume(struct{}{}) {
		t.unwinds = true
		panic(unwind{})
	}
}

// sleepNanos is about as long as the sleeps of the engine's waits, whose time-outs Sleep
// does not receive.
const sleepNanos = 20_000_000

// The functions of atom.Stepper. The scheduler switches threads at yields and sleeps
// only, so that no mutex is held meanwhile.

func (s *scheduler) Step(atom.Op, unsafe.Pointer)               {}
func (s *scheduler) Done(atom.Op, unsafe.Pointer, uint64, bool) {}
func (s *scheduler) Delay(unsafe.Pointer, int, uint64) bool     { return false }
func (s *scheduler) Yield()                                     { s.current.pause() }
func (s *scheduler) Sleep(p *uint32, v uint32) {
	t := s.current
	t.word, t.value, t.until = p, v, s.clock+sleepNanos
	t.pause()
	t.word = nil
}

func (s *scheduler) Wake(p *uint32) {
	for _, t := range s.threads {
		if t.word == p {
			t.word = nil
		}
	}
}

func (s *scheduler) now() int64 {
	s.clock += 100
	return s.clock
}

func (t *thread) runnable() bool {
	if t.ended || t.dead || t.s.stopped[t.rank] > 0 {
		return false
	}
	return t.word == nil || *t.word != t.value || t.s.clock >= t.until
}

// run runs the threads until all but daemons have ended, for at most maxSteps steps.
func (s *scheduler) run(maxSteps int) {
	defer s.end()
	for s.failure == "" {
		busy, all := []*thread(nil), true
		for _, t := range s.threads {
			all = all && (t.ended || t.dead || t.daemon)
			if t.runnable() {
				busy = append(busy, t)
			}
		}
		if all {
			return
		}
		if s.steps++; s.steps > maxSteps {
			s.fail("not done after %d steps:\n%s", maxSteps, s.where())
			return
		}
		s.event(s.steps)
		for r := range s.stopped {
			if s.stopped[r]--; s.stopped[r] <= 0 {
				delete(s.stopped, r)
			}
		}
		s.clock += stepNanos
		if len(busy) == 0 {
			s.clock += sleepNanos / 10 // all sleep, or are stopped
			continue
		}
		t := busy[s.rand.IntN(len(busy))]
		s.trace = (s.trace ^ uint64(t.rank)<<1 ^ uint64(s.steps)) * 0x9e3779b97f4a7c15
		s.current = t
		t.next()
		s.current = nil
	}
}

// end runs the deferred calls of the threads.
func (s *scheduler) end() {
	for _, t := range s.threads {
		s.current = t
		t.unwinds = true
		t.stop()
	}
	s.current = nil
}

// kill stops the threads of a rank at their current points.
func (s *scheduler) kill(rank int) {
	for _, t := range s.threads {
		if t.rank == rank {
			t.dead = true
		}
	}
}
