package check

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gormapy/gocore/check/events"
)

// Checker reads the streams of a job's ranks and finds what is wrong.
type Checker struct {
	streams    []*source
	ranks      []*rank
	threads    []*thread
	comms      map[string]*comm
	windows    map[string][]*window
	messages   map[[2]int64]clock
	freedParts []freedPart
	resets     int // collective resets that ranks have left

	findings map[string]*Finding
	order    []*Finding
	tell     func(*Finding)
	answer   func(mark int64)
	Events   [64]int  // how many were processed, by kind
	Failure  string   // an internal error, after which nothing is looked at
	Limited  []int    // ranks that have stopped to tell of their loads and stores
	Blind    bool     // they tell of none
	Unseen   []string // lines that use memory of which ranks tell no loads and stores, as "program.py:9 (Create)"

	idle    quiet       // no rank tells of anything
	several atomic.Bool // a rank has several threads

	stop atomic.Bool
	done chan struct{}
}

// source is a stream, and the event of it that is to be processed next.
type source struct {
	*events.Stream
	next  *events.Event
	after int64 // without one: later events have later times
	ended atomic.Bool
	over  bool // it has ended, and all has been read
}

// New returns a checker for the ranks that write to the streams. It calls tell for each new finding, and answer for each mark.
func New(streams []*events.Stream, tell func(*Finding), answer func(mark int64)) *Checker {
	c := &Checker{comms: map[string]*comm{}, windows: map[string][]*window{}, messages: map[[2]int64]clock{},
		findings: map[string]*Finding{}, tell: tell, answer: answer, done: make(chan struct{})}
	for i, s := range streams {
		c.streams = append(c.streams, &source{Stream: s})
		c.ranks = append(c.ranks, newRank(i))
	}
	return c
}

func newRank(number int) *rank {
	return &rank{number: number, threads: map[uint32]*thread{}, sites: map[uint32]*site{}, comms: map[int64]*comm{}, windows: map[int64]*window{},
		types: map[int64]*shape{}, ops: map[int64]*operation{}, colls: map[int64]*collective{}, syncSends: map[int64]*rank{}, defined: map[string]int{}, keys: map[int64]clock{}}
}

const (
	busyPause = 200 * time.Microsecond
	idlePause = 5 * time.Millisecond
)

// Run processes events until Finish is called and all has been read. An error in the checker itself does not end the job: what
// follows is read and not looked at.
func (c *Checker) Run() {
	defer close(c.done)
	pause := busyPause
	for {
		n := c.guarded()
		if n > 0 {
			pause = busyPause
			continue
		}
		if c.stop.Load() && c.allOver() {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, idlePause)
	}
}

// guarded processes events, and returns how many; an error ends the search.
func (c *Checker) guarded() (n int) {
	defer c.contain(&n)
	return c.advance()
}

// contain is deferred. It makes a panic the Failure, and n 1: the next call goes on.
func (c *Checker) contain(n *int) {
	if reason := recover(); reason != nil {
		c.Failure = fmt.Sprintf("%v\n%s", reason, debug.Stack())
		*n = 1
	}
}

// Idle returns for how long no rank has told of anything, 0 if a rank has several threads: one of them may be about to do what the
// others wait for. It returns 0, too, if the checker has not looked since a time of events.Now: what a rank has told of before is
// not known then.
func (c *Checker) Idle(since int64) time.Duration {
	if c.several.Load() {
		return 0
	}
	return c.idle.length(since)
}

// Ended says that a rank has ended: nothing more is written to its stream.
func (c *Checker) Ended(rank int) { c.streams[rank].ended.Store(true) }

// Finish waits until all has been read of ranks that have all ended. If they were stuck, it looks for what they have waited for.
func (c *Checker) Finish(stuck bool) []*Finding {
	for i := range c.streams {
		c.Ended(i)
	}
	c.stop.Store(true)
	<-c.done
	if c.Failure == "" {
		c.last(stuck)
	}
	return c.order
}

// last looks at what can be told only when all has been read.
func (c *Checker) last(stuck bool) {
	var failed int
	defer c.contain(&failed)
	for _, r := range c.ranks {
		c.settle(r, false)
		for _, t := range r.threads {
			if t.inside != nil { // it has ended there
				c.stands(t, t.inside, true)
			}
			for _, x := range t.colls {
				c.stands(t, x, true)
			}
		}
	}
	if stuck {
		c.leftovers()
	}
}

func (c *Checker) allOver() bool {
	return !slices.ContainsFunc(c.streams, func(s *source) bool { return !s.over })
}

// advance processes the events that are known to be the next ones, and returns how many.
func (c *Checker) advance() (n int) {
	for {
		var first *source
		bound := int64(highest)
		for _, s := range c.streams {
			if s.next == nil && !s.over {
				ended := s.ended.Load() // before it is read
				s.next, s.after = s.Next()
				if s.next == nil && ended {
					s.over = true
				}
			}
			switch {
			case s.next != nil:
				if first == nil || s.next.Time < first.next.Time {
					first = s
				}
			case !s.over:
				bound = min(bound, s.after)
			}
		}
		if first == nil {
			c.idle.look(bound)
			return n
		}
		c.idle.end()
		if first.next.Time > bound {
			return n
		}
		e := first.next
		first.next = nil
		c.process(c.ranks[slices.Index(c.streams, first)], e)
		n++
	}
}

// thread returns the thread of an event. A new one knows what the rank's other threads know: who started it is not known.
func (c *Checker) thread(r *rank, e *events.Event) *thread {
	t := r.threads[e.Thread]
	if t == nil {
		t = &thread{rank: r, index: len(c.threads)}
		if e.Kind != events.Acquire {
			t.clock.join(r.past)
			for _, other := range r.threads {
				t.clock.join(other.clock)
			}
		} else if before := r.successor(r.keys[e.Words[0]]); before != nil {
			t.index, t.clock = before.index, before.clock
		}
		if len(r.threads) > 0 {
			c.several.Store(true)
		}
		r.threads[e.Thread] = t
		if t.index == len(c.threads) {
			c.threads = append(c.threads, t)
		} else {
			c.threads[t.index] = t
		}
	}
	if n := t.index + 1; n > len(t.clock) {
		t.clock = append(t.clock, make(clock, n-len(t.clock))...)
	}
	if e.Kind != events.ThreadEnd {
		t.clock[t.index]++
	} else { // no step: who knows the last one knows all
		t.over = true
		r.past.join(t.clock)
		r.over = append(r.over, t)
		delete(r.threads, e.Thread)
	}
	return t
}

// successor returns a thread that has ended, which is known to who starts a thread with what is known. The new one goes on with its
// index and steps, so that clocks do not grow with each thread.
func (r *rank) successor(known clock) *thread {
	for i, t := range r.over {
		if known.has(at{t.index, t.clock[t.index]}) {
			r.over = slices.Delete(r.over, i, i+1)
			return t
		}
	}
	return nil
}

func (c *Checker) process(r *rank, e *events.Event) {
	if c.Failure != "" {
		if e.Kind == events.Mark {
			c.answer(e.Words[0])
		}
		return
	}
	c.Events[e.Kind]++
	c.settle(r, e.Kind == events.OpFailed)
	if e.Kind < events.Op {
		c.define(r, e)
		return
	}
	t := c.thread(r, e)
	w := e.Words
	switch e.Kind {
	case events.Op:
		c.operation(t, e)
	case events.OpValue:
		c.fetched(t, w[0], w[1], w[2])
	case events.OpFailed:
		if o := r.pendingOperation(w[0]); o != nil {
			c.withdraw(o)
		}
	case events.Sync:
		c.synchronize(t, e)
	case events.Sent:
		c.messages[[2]int64{int64(r.number), w[0]}] = t.clock.clone()
	case events.Received:
		key := [2]int64{w[1], w[0]}
		t.clock.join(c.messages[key])
		if len(w) < 3 {
			delete(c.messages, key)
		}
	case events.Coll:
		c.collective(t, e)
	case events.ReqDone:
		c.completed(t, w[0])
	case events.Release:
		known := r.keys[w[0]]
		known.join(t.clock)
		r.keys[w[0]] = known
	case events.Acquire:
		t.clock.join(r.keys[w[0]])
	case events.Access:
		c.localAccess(t, e)
	case events.Misuse:
		c.misuse(t, e)
	case events.End:
		r.ended = true
		c.atEnd(t, e)
	case events.Mark:
		c.answer(w[0])
	case events.Exempt:
		t.exempt = w[0] != 0
	case events.Receiving:
		r.receiving.join(t.clock)
	case events.SyncSent:
		if w[1] != 0 {
			r.syncSends[w[1]] = c.ranks[w[0]]
		} else {
			t.clock.join(c.ranks[w[0]].receiving)
		}
	case events.Limit:
		c.Limited = append(c.Limited, r.number)
	case events.Unseen:
		c.unseen(t, e)
	case events.Reset:
		c.reset(t)
	case events.Done:
		c.finishOne(t, w[0])
	case events.Notify:
		if win := t.windows[w[0]]; win != nil {
			known := win.notes[[2]int64{w[1], w[2]}]
			known.join(t.clock)
			win.notes[[2]int64{w[1], w[2]}] = known
		}
	case events.Notified:
		if win := t.windows[w[0]]; win != nil {
			t.clock.join(win.notes[[2]int64{int64(r.number), w[1]}])
			win.parts[r.number].sync(t)
		}
	case events.Gone:
		c.freed(t, e)
	case events.Attach:
		c.attach(t, e)
	}
}

func (c *Checker) define(r *rank, e *events.Event) {
	w := e.Words
	switch e.Kind {
	case events.DefSite:
		f := append(strings.Split(e.Text, "\x00"), make([]string, 8)...)
		r.sites[uint32(w[0])] = &site{line: int(w[1]), file: f[0], call: f[1], text: f[2], function: f[3], winName: f[4], origin: f[5], result: f[6], compare: f[7]}
	case events.DefComm:
		key := fmt.Sprint(w[1:])
		if c.comms[key] == nil {
			m := &comm{key: key, calls: map[int]int{}, open: map[int]*collective{}}
			for _, rank := range w[2:] {
				if int(rank) < len(c.ranks) { // others were spawned, and are not checked
					m.ranks = append(m.ranks, int(rank))
				}
			}
			c.comms[key] = m
		}
		r.comms[w[0]] = c.comms[key]
	case events.DefWin:
		c.defineWindow(r, w, e.Text, r.sites[e.Site])
	case events.DefType:
		s := &shape{extent: w[1], basic: w[2], element: w[3]}
		for rest := w[4:]; len(rest) >= 2; rest = rest[2:] {
			s.parts = append(s.parts, [2]int64{rest[0], rest[1]})
			s.size += rest[1]
		}
		r.types[w[0]] = s
	case events.DefShared:
		// The part of another rank at an address of this one: accesses there are to the owner's memory.
		if win := r.windows[w[0]]; win != nil {
			r.mapped = append(r.mapped, mapping{win: win, owner: int(w[1]), address: w[2], bytes: w[3]})
		}
	}
}

func (c *Checker) defineWindow(r *rank, w []int64, name string, made *site) {
	m := r.comms[w[6]]
	if m == nil {
		return
	}
	key := fmt.Sprint(w[1], m.key)
	n := r.defined[key]
	r.defined[key]++
	if n == len(c.windows[key]) {
		c.windows[key] = append(c.windows[key], &window{key: fmt.Sprint(key, "#", n), name: name, flavor: w[2], comm: m, parts: map[int]*part{},
			locks: map[int]*lock{}, fences: map[int]int{}, barrier: map[int]*collective{}, atomics: map[place]*element{}, notes: map[[2]int64]clock{}})
	}
	win := c.windows[key][n]
	win.parts[r.number] = &part{base: w[3], bytes: w[4], unit: w[5], epochs: map[int]epoch{}, exposed: map[int][]*exposure{}, attached: map[int64]int64{}, made: made}
	r.windows[w[0]] = win
}

// mapping is a part of a shared window where a rank that does not own it sees it.
type mapping struct {
	win            *window
	owner          int
	address, bytes int64
}

// WriteJSON writes a finding as a line.
func WriteJSON(to io.Writer, f any) error {
	text, err := json.Marshal(f)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	return err
}

// unseen remembers memory whose loads and stores are not told of, or that none are.
func (c *Checker) unseen(t *thread, e *events.Event) {
	at := t.sites[e.Site]
	if at == nil {
		c.Blind = true
		return
	}
	if line := fmt.Sprintf("%s:%d (%s)", at.file, at.line, at.call); !slices.Contains(c.Unseen, line) {
		c.Unseen = append(c.Unseen, line)
	}
}
