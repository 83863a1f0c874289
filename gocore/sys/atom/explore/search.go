//go:build interleave

package explore

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"gormapy/gocore/sys/atom"
)

// Options restrict and extend a search.
type Options struct {
	// Deaths is how many of the mortal threads may die in one run.
	Deaths int
	// Timeouts lets sleepers time out when no thread can run otherwise; without
	// it that is a deadlock.
	Timeouts bool
	// EarlyTimeouts is how many time-outs may happen at any moment of a run.
	EarlyTimeouts int
	// FreeYield lets Yield return although no other thread has written, for code
	// that counts how often it yields.
	FreeYield bool
	// IdleYields is how often in a row Yield may return although no other thread
	// has made a step (0: FreeYield decides), for code that both counts yields and
	// spins on memory that the explorer does not step through.
	IdleYields int
	// Plain separates accesses to memory past package atom from the atomic access
	// before them.
	Plain bool
	// Weak gives each thread a store buffer: see "Weak memory". It implies Plain.
	Weak bool
	// Preemptions, if not 0, bounds how often a thread that could continue is
	// interrupted; the search is then not exhaustive.
	Preemptions int
	// MaxSteps is the length from which a run counts as a livelock; 0: 5000.
	MaxSteps int
	// MaxStates is the number of states after which the search gives up and fails the
	// test; 0: 4 million.
	MaxStates int
}

// Result counts what was explored.
type Result struct {
	Schedules int // runs, no two of which make the same choices
	Complete  int // runs that reached the end
	States    int
	Steps     int // steps in all runs
	Longest   int // steps in one run
	Failure   string
}

type choice uint16

const (
	choiceRun choice = iota << 8
	choiceKill
	choiceTimeout
	choiceCommit
	choiceKind  = choice(0xff00)
	choiceIndex = choice(0xff)
)

// node is a state on the path of the current run.
type node struct {
	id      uint32
	key     uint64
	choices []choice
	next    int // choices[:next] have been explored
}

type edge struct{ from, to uint32 }

// end is the id of the state in which all threads have ended.
const end = 0

type search struct {
	opt    Options
	setup  func(w *World)
	ids    map[uint64]uint32
	parent []edge // by id: the state from which it was first reached; to is the choice
	edges  []edge
	path   []node
	res    Result
}

// Run explores setup's world and fails the test with the schedule of the first
// failure found.
func Run(t testing.TB, opt Options, setup func(w *World)) Result {
	t.Helper()
	start := time.Now()
	res := Explore(opt, setup)
	if res.Failure != "" {
		t.Fatalf("after %d schedules, %d states: %s", res.Schedules, res.States, res.Failure)
	}
	t.Logf("%d schedules (%d to the end), %d states, %d steps, longest %d, %.1f s",
		res.Schedules, res.Complete, res.States, res.Steps, res.Longest, time.Since(start).Seconds())
	return res
}

// Explore is Run for tests that expect a failure.
func Explore(opt Options, setup func(w *World)) Result {
	if opt.MaxSteps == 0 {
		opt.MaxSteps = 5000
	}
	if opt.MaxStates == 0 {
		opt.MaxStates = 4 << 20
	}
	s := &search{opt: opt, setup: setup, ids: map[uint64]uint32{}, parent: make([]edge, 1)}
	for s.res.Failure == "" {
		s.once()
		for len(s.path) > 0 && s.path[len(s.path)-1].next == len(s.path[len(s.path)-1].choices) {
			s.path = s.path[:len(s.path)-1]
		}
		if len(s.path) == 0 {
			break
		}
	}
	s.res.States = len(s.ids)
	if s.res.Failure == "" {
		s.livelocks()
	}
	return s.res
}

func (s *search) world(trace *strings.Builder) *World {
	w := &World{opt: s.opt, names: map[unsafe.Pointer]string{}, trace: trace}
	atom.Explorer = nil // accesses of setup itself are no steps
	s.setup(w)
	atom.Explorer = w
	// The threads have stopped at the beginning of their bodies: let each run to its
	// first step.
	for _, t := range w.threads {
		w.run(t)
	}
	return w
}

func (s *search) drop(w *World) {
	w.close()
	atom.Explorer = nil
}

// once makes one run: along the path to its last node, then further.
func (s *search) once() {
	w := s.world(nil)
	defer s.drop(w)
	s.res.Schedules++
	steps := len(s.path)
	from := uint32(end)
	var took choice
	for i := range s.path {
		n := &s.path[i]
		took = n.choices[max(n.next-1, 0)]
		if i == len(s.path)-1 {
			if w.state() != n.key {
				s.res.Failure = "the threads are not deterministic: the same schedule led to another state"
				return
			}
			took = n.choices[n.next]
			n.next++
		}
		from = n.id
		w.do(took)
	}
	root := len(s.path) == 0
	for ; ; steps++ {
		s.res.Steps++
		s.res.Longest = max(s.res.Longest, steps)
		if w.failure != "" {
			s.report(s.choices(), w.failure)
			return
		}
		if w.over() {
			if w.final != nil {
				if err := w.final(); err != nil {
					s.report(s.choices(), "at the end: "+err.Error())
					return
				}
			}
			s.res.Complete++
			s.edges = append(s.edges, edge{from, end})
			return
		}
		choices := w.choices()
		if len(choices) == 0 || s.mayNotHappen(choices[0]) {
			// A death or an early time-out may happen, but nothing may depend on it.
			s.report(s.choices(), "deadlock: "+w.stuck())
			return
		}
		if steps > s.opt.MaxSteps {
			s.report(s.choices(), fmt.Sprintf("livelock? more than %d steps", s.opt.MaxSteps))
			return
		}
		key := w.state()
		id, seen := s.ids[key]
		if !seen {
			id = uint32(len(s.parent))
			s.ids[key] = id
			s.parent = append(s.parent, edge{from, uint32(took)})
		}
		if !root && !s.mayNotHappen(took) {
			s.edges = append(s.edges, edge{from, id})
		}
		if seen {
			return
		}
		if len(s.ids) > s.opt.MaxStates {
			s.res.Failure = fmt.Sprintf("not explored to the end: more than %d states", s.opt.MaxStates)
			return
		}
		root = false
		s.path = append(s.path, node{id: id, key: key, choices: choices, next: 1})
		from, took = id, choices[0]
		w.do(took)
	}
}

// mayNotHappen reports whether this choice need not happen, so that a thread that waits
// for it may wait for ever.
func (s *search) mayNotHappen(c choice) bool {
	return c&choiceKind == choiceKill || c&choiceKind == choiceTimeout && !s.opt.Timeouts
}

func (s *search) choices() []choice {
	out := make([]choice, len(s.path))
	for i, n := range s.path {
		out[i] = n.choices[n.next-1]
	}
	return out
}

// report runs the schedule once more and makes it the failure.
func (s *search) report(schedule []choice, what string) {
	var b strings.Builder
	w := s.world(&b)
	for _, c := range schedule {
		w.do(c)
	}
	s.res.Failure = what + "\n  schedule:\n" + b.String() + "  then: " + w.stuck() + "\n"
	s.drop(w)
}

// livelocks searches for states from which the end can't be reached.
func (s *search) livelocks() {
	start := make([]uint32, len(s.parent)+1)
	for _, e := range s.edges {
		start[e.to+1]++
	}
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	into := make([]uint32, len(s.edges))
	fill := append([]uint32(nil), start...)
	for _, e := range s.edges {
		into[fill[e.to]] = e.from
		fill[e.to]++
	}
	good := make([]bool, len(s.parent))
	good[end] = true
	todo := []uint32{end}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range into[start[id]:start[id+1]] {
			if !good[from] {
				good[from] = true
				todo = append(todo, from)
			}
		}
	}
	for id := uint32(1); int(id) < len(good); id++ {
		if good[id] {
			continue
		}
		var schedule []choice
		for at := id; s.parent[at].from != end; at = s.parent[at].from {
			schedule = append([]choice{choice(s.parent[at].to)}, schedule...)
		}
		s.report(schedule, "livelock: no schedule leads to the end from here")
		return
	}
}

func (w *World) over() bool {
	for _, t := range w.threads {
		if !t.daemon && t.status != ended && t.status != dead {
			return false
		}
	}
	return w.drained()
}

func (t *Thread) runnable() bool {
	switch t.status {
	case ready:
		return true
	case yielded:
		if n := t.w.opt.IdleYields; n > 0 {
			return t.idle < n
		}
		return t.fresh || t.w.opt.FreeYield
	case waiting:
		return t.cond()
	}
	return false
}

// busy reports whether choosing another thread interrupts the one that ran last.
func (w *World) busy() bool {
	return w.last != nil && w.last.status != yielded && w.last.runnable()
}

func (w *World) choices() []choice {
	var out []choice
	bound := w.opt.Preemptions > 0 && w.preempt >= w.opt.Preemptions && w.busy()
	if w.last != nil && w.last.runnable() {
		out = append(out, choiceRun|choice(w.last.index))
	}
	if !bound {
		for _, t := range w.threads {
			if t != w.last && t.runnable() {
				out = append(out, choiceRun|choice(t.index))
			}
		}
	}
	for _, t := range w.threads {
		if len(t.buffer) > 0 {
			out = append(out, choiceCommit|choice(t.index))
		}
	}
	idle := len(out) == 0
	for _, t := range w.threads {
		if t.status == asleep && ((idle && w.opt.Timeouts) || w.early < w.opt.EarlyTimeouts) {
			out = append(out, choiceTimeout|choice(t.index))
		}
	}
	if w.deaths < w.opt.Deaths {
		for _, t := range w.threads {
			if t.mortal && (t.wrote || w.opt.Plain || w.opt.Weak) && t.status != dead && t.status != ended {
				out = append(out, choiceKill|choice(t.index))
			}
		}
	}
	return out
}

func (w *World) do(c choice) {
	t := w.threads[c&choiceIndex]
	switch c & choiceKind {
	case choiceKill:
		w.log(t, "DIES")
		t.status = dead
		w.deaths++
		if t.onDeath != nil {
			t.onDeath()
		}
		for _, o := range w.threads {
			o.fresh = true
		}
		return
	case choiceCommit:
		t.commit()
		return
	case choiceTimeout:
		w.log(t, "times out")
		idle := true
		for _, o := range w.threads {
			idle = idle && !o.runnable()
		}
		if !idle || !w.opt.Timeouts {
			w.early++
		}
		t.status = ready
	default:
		if w.last != t && w.busy() {
			w.preempt++
		}
	}
	w.last = t
	if w.opt.IdleYields > 0 {
		for _, o := range w.threads {
			if o != t {
				o.idle = 0
			}
		}
	}
	w.run(t)
}

// stuck returns a description of the state of each thread.
func (w *World) stuck() string {
	var out []string
	for _, t := range w.threads {
		s := ""
		switch t.status {
		case ready:
			s = "can continue"
		case yielded:
			s = "yields"
		case waiting:
			s = "waits"
		case asleep:
			s = "sleeps on " + w.name(t.word)
		case dead:
			s = "is dead"
		case ended:
			s = "has ended"
		}
		out = append(out, t.Name+" "+s)
	}
	return strings.Join(out, ", ")
}
