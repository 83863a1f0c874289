package chrome

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gormapy/gocore/trace"
)

// call is a call of the program.
type call struct {
	rank       int
	thread     uint32
	name       string
	category   string
	begin, end int64 // nanoseconds since the recording's start
	wait       int64
	waitsFor   int // the world rank of the longest wait, negative: no particular rank
	longest    int64
	comm       int64 // identity of the communicator or window, -1: none
	win        *window
	peer       int // in the communicator or window
	tag        int // or assertion, or kind of lock
	bytes      int64
	disp, span int64
	op         int
	finished   bool
	failed     bool
}

// message is one message, as its sender and its receiver recorded it.
type message struct {
	source, dest   int // world ranks
	tag            int
	comm           uint32
	bytes          int64
	sent, received int64 // -1: not recorded
	from, to       uint32
}

// window is the view that one rank has of a window.
type window struct {
	id     int64
	flavor int
	own    int
	world  []int
}

// Recording is the joined recording of all ranks.
type Recording struct {
	Ranks    int
	Version  string
	calls    []call // by rank, then by begin
	messages []message
	windows  []*window // each window once
	threads  map[int][]uint32
	absent   []int          // ranks that recorded nothing
	dropped  map[int]uint64 // by rank
	start    int64          // CLOCK_MONOTONIC of time 0, nanoseconds: the first event, or the origin before it
	end      int64          // time of the last event, since start
}

// clock converts ticks to nanoseconds.
type clock struct {
	tick, nano uint64
	rate       float64 // nanoseconds per tick
}

func (c *clock) at(tick uint64) int64 {
	return int64(c.nano) + int64(float64(int64(tick-c.tick))*c.rate)
}

// Source is a part, and the host that it was recorded on.
type Source struct {
	Part *trace.Part
	Host string // the same text for parts whose clocks are the same
	// Shift is what to add to the host's time for that of the recording, when the part began
	// and when it ended: clocks run apart.
	Shift [2]int64
}

// clockOf returns the clock of all parts of a host that count ticks. On one host the ticks are
// the same, and the longest time between two pairs gives the most exact rate.
func clockOf(parts []Source, host string) *clock {
	var t0, n0, t1, n1 uint64
	for _, s := range parts {
		h := s.Part.Head
		if h.Clock != trace.ClockTSC || !s.Part.Used() || s.Host != host {
			continue
		}
		if t0 == 0 || h.Tick0 < t0 {
			t0, n0 = h.Tick0, h.Nano0+uint64(s.Shift[0])
		}
		if h.Tick1 > t1 {
			t1, n1 = h.Tick1, h.Nano1+uint64(s.Shift[1])
		}
		if h.Tick1 == 0 && host == "" { // the process, which was on this host, did not store when it ended
			if tick, nano := s.Part.Pair(); tick > t1 {
				t1, n1 = tick, nano
			}
		}
	}
	c := &clock{tick: t0, nano: n0, rate: 1}
	if t1 > t0 {
		c.rate = float64(n1-n0) / float64(t1-t0)
	}
	return c
}

// New joins parts that were recorded on one host.
func New(parts []*trace.Part, ranks int) *Recording {
	sources := make([]Source, len(parts))
	for i, p := range parts {
		sources[i].Part = p
	}
	return NewOf(sources, ranks, 0)
}

// NewOf joins parts of several hosts. Times begin at the origin, by CLOCK_MONOTONIC in nanoseconds; 0, or an
// origin after the first event, means the first event.
func NewOf(sources []Source, ranks int, origin int64) *Recording {
	r := &Recording{Ranks: ranks, threads: map[int][]uint32{}, dropped: map[int]uint64{}}
	clocks := map[string]*clock{}
	hosts := map[int]string{} // by rank
	windows := map[int64]bool{}
	sent := map[[2]int64]int{} // by rank and number
	var received []message
	var numbers []int64
	for _, source := range sources {
		p := source.Part
		if !p.Used() {
			continue
		}
		rank := int(p.Head.Rank)
		r.Ranks = max(r.Ranks, rank+1)
		hosts[rank] = source.Host
		c := clocks[source.Host]
		if c == nil {
			c = clockOf(sources, source.Host)
			clocks[source.Host] = c
		}
		if p.Head.Clock != trace.ClockTSC {
			c = &clock{nano: uint64(source.Shift[0]), rate: 1}
		}
		if n := p.Dropped(); n > 0 {
			r.dropped[rank] += n
		}
		l := &reader{Recording: r, rank: rank, clock: c, names: p.Names(), comms: map[int64]int64{}, wins: map[int64]*window{}}
		l.read(p.Records())
		for _, w := range l.wins {
			if !windows[w.id] {
				windows[w.id] = true
				r.windows = append(r.windows, w)
			}
		}
		for i, m := range l.sent {
			sent[[2]int64{int64(rank), l.sentNumbers[i]}] = len(r.messages)
			r.messages = append(r.messages, m)
		}
		received = append(received, l.received...)
		numbers = append(numbers, l.receivedNumbers...)
	}
	for i, m := range received {
		if at, ok := sent[[2]int64{int64(m.source), numbers[i]}]; ok && numbers[i] != 0 {
			r.messages[at].received, r.messages[at].to = m.received, m.to
			continue
		}
		r.messages = append(r.messages, m)
	}
	for rank := range r.Ranks {
		if _, ok := hosts[rank]; !ok {
			r.absent = append(r.absent, rank)
		}
	}
	slices.SortFunc(r.windows, func(a, b *window) int { return cmp.Compare(a.id, b.id) })
	if len(clocks) > 1 {
		r.orderMessages(hosts)
	}
	r.relateTimes(origin)
	return r
}

// reader reads one part.
type reader struct {
	*Recording
	rank  int
	clock *clock
	names []string
	comms map[int64]int64
	wins  map[int64]*window

	sent, received               []message
	sentNumbers, receivedNumbers []int64
	waits                        []wait
}

type wait struct {
	thread     uint32
	begin, end int64
	peer       int
}

func (l *reader) read(records []trace.Record) {
	l.define(records)
	first := len(l.calls)
	for i := range records {
		rec := &records[i]
		if rec.State == 0 {
			continue
		}
		switch rec.Kind {
		case trace.KindCall, trace.KindCallComm, trace.KindCallWin:
			l.calls = append(l.calls, l.call(rec))
		case trace.KindWait:
			l.waits = append(l.waits, wait{rec.Thread, l.clock.at(rec.Begin), l.clock.at(rec.End), int(rec.Peer)})
		case trace.KindSent:
			m := l.message(rec)
			m.source, m.dest, m.sent, m.from = l.rank, int(rec.Peer), l.clock.at(rec.Begin), rec.Thread
			l.sent, l.sentNumbers = append(l.sent, m), append(l.sentNumbers, rec.Disp)
		case trace.KindReceived:
			m := l.message(rec)
			m.source, m.dest, m.received, m.to = int(rec.Peer), l.rank, l.clock.at(rec.Begin), rec.Thread
			l.received, l.receivedNumbers = append(l.received, m), append(l.receivedNumbers, rec.Disp)
		}
	}
	mine := l.calls[first:]
	slices.SortStableFunc(mine, func(a, b call) int { return cmp.Compare(a.begin, b.begin) })
	byThread := map[uint32][]int{}
	for i := range mine {
		t := mine[i].thread
		if _, ok := byThread[t]; !ok {
			l.threads[l.rank] = append(l.threads[l.rank], t)
		}
		byThread[t] = append(byThread[t], i)
	}
	for _, w := range l.waits {
		of := byThread[w.thread]
		at, _ := slices.BinarySearchFunc(of, w.begin, func(i int, begin int64) int {
			if mine[i].begin <= begin {
				return -1
			}
			return 1
		})
		if at == 0 {
			continue // a wait of a call whose record was dropped
		}
		c := &mine[of[at-1]]
		if c.finished && w.begin > c.end {
			continue
		}
		c.wait += w.end - w.begin
		if w.end-w.begin > c.longest {
			c.longest, c.waitsFor = w.end-w.begin, w.peer
		}
	}
}

// define reads the records of communicators and windows.
func (l *reader) define(records []trace.Record) {
	for i := 0; i < len(records); i++ {
		rec := &records[i]
		if rec.State != trace.StateDone || rec.Kind != trace.KindComm && rec.Kind != trace.KindWin {
			continue
		}
		if rec.Kind == trace.KindComm {
			l.comms[rec.Object] = rec.Disp
			continue
		}
		w := &window{id: rec.Disp, flavor: int(rec.Tag), own: int(rec.Peer)}
		for k := int64(0); k < rec.Bytes; k++ {
			at := i + 1 + int(k/trace.RanksInRecord)
			if at >= len(records) || records[at].Kind != trace.KindRanks {
				break
			}
			w.world = append(w.world, int(records[at].Ranks()[k%trace.RanksInRecord]))
		}
		l.wins[rec.Object] = w
	}
}

func (l *reader) message(rec *trace.Record) message {
	return message{tag: int(rec.Tag), comm: uint32(rec.Object), bytes: rec.Bytes, sent: -1, received: -1}
}

func (l *reader) call(rec *trace.Record) call {
	c := call{rank: l.rank, thread: rec.Thread, begin: l.clock.at(rec.Begin), end: l.clock.at(rec.End), waitsFor: -2, comm: -1,
		peer: int(rec.Peer), tag: int(rec.Tag), bytes: rec.Bytes, finished: rec.State == trace.StateDone, failed: rec.Op == -1}
	c.name = fmt.Sprintf("call %d", rec.Name)
	if int(rec.Name) < len(l.names) {
		c.name, c.category, _ = strings.Cut(l.names[rec.Name], "\t")
	}
	switch rec.Kind {
	case trace.KindCallComm:
		c.comm = -1
		if ctx, ok := l.comms[rec.Object]; ok {
			c.comm = ctx
		}
	case trace.KindCallWin:
		if w := l.wins[rec.Object]; w != nil {
			c.win, c.comm = w, w.id
		}
		if c.category == "one-sided" {
			c.disp, c.span, c.op, c.tag = rec.Disp, int64(rec.Tag), int(rec.Op), -1
		}
	}
	return c
}

// relateTimes sets the end of calls that did not end to the time of the last event, and makes
// all times relative to the origin, or to the first event.
func (r *Recording) relateTimes(origin int64) {
	first, last := int64(1<<62), int64(-1<<62)
	for i := range r.calls {
		c := &r.calls[i]
		first = min(first, c.begin)
		last = max(last, c.begin)
		if c.finished {
			last = max(last, c.end)
		}
	}
	for i := range r.messages {
		for _, t := range []int64{r.messages[i].sent, r.messages[i].received} {
			if t >= 0 {
				first, last = min(first, t), max(last, t)
			}
		}
	}
	if first > last {
		return
	}
	if origin > 0 {
		first = min(first, origin)
	}
	r.start, r.end = first, last-first
	for i := range r.calls {
		c := &r.calls[i]
		if !c.finished {
			c.end = last
		}
		c.begin, c.end = c.begin-first, c.end-first
	}
	for i := range r.messages {
		m := &r.messages[i]
		if m.sent >= 0 {
			m.sent -= first
		}
		if m.received >= 0 {
			m.received -= first
		}
	}
}

// Join joins the parts in files, and writes the result to path, with times from the origin on (see NewOf).
// files is a list with a name on each line, which for parts of several hosts is followed by the fields
// of a Source: a tab and the host, a tab and the first shift, a tab and the second.
func Join(files, path string, origin int64) error {
	var parts []Source
	ranks := 0
	for _, line := range strings.Split(files, "\n") {
		fields := strings.Split(line, "\t")
		mem, err := os.ReadFile(fields[0])
		if err != nil {
			return err
		}
		p, err := trace.ReadPart(mem)
		if err != nil {
			return fmt.Errorf("%s: %w", fields[0], err)
		}
		s := Source{Part: p}
		if len(fields) == 4 {
			s.Host = fields[1]
			for i := range s.Shift {
				if s.Shift[i], err = strconv.ParseInt(fields[2+i], 10, 64); err != nil {
					return fmt.Errorf("%s: %w", fields[0], err)
				}
			}
		}
		parts = append(parts, s)
		ranks = max(ranks, int(p.Head.Size))
	}
	return NewOf(parts, ranks, origin).WriteFile(path)
}
