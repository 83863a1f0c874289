package monitor

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/home"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
)

// Options of a monitor.
type Options struct {
	Segment *job.Segment
	Rank    int
	Abort   func(code int) // ends the job by its launcher; nil if that can't
	Home    *home.Where    // nil: there is none
	Timeout time.Duration  // of the job, since now; 0: none
	// Unmanaged: there is no process manager that ends the ranks. They end themselves when one
	// has ended.
	Unmanaged bool
}

// Monitor is that of this process. All methods of a nil Monitor do nothing.
type Monitor struct {
	o    Options
	seg  *job.Segment
	host string

	reached chan struct{} // closed when link is final
	settled chan struct{} // closed later, when clocks are compared
	link    *home.Link    // nil: there is no home
	begun   int64         // what to add to this host's clock for that of the home, at the begin
	clock   chan int64
	heard   chan struct{}
	once    sync.Once // closes heard
	record  sync.Once
	ending  atomic.Bool
	unheard atomic.Bool // the home can't be reached, or its link has ended: this rank tells by itself
}

const (
	// heardTime bounds how long a rank that fails waits for its home to take note.
	heardTime = 5 * time.Second
	// byeTime bounds the same at the end, when recordings are sent.
	byeTime = 60 * time.Second
	// endTime is how long the launcher may take to end this process after an abort.
	endTime = 2 * time.Second
)

// Start starts the monitor of a rank that has joined its job.
func Start(o Options) *Monitor {
	host, _ := os.Hostname()
	m := &Monitor{o: o, seg: o.Segment, host: host, reached: make(chan struct{}), settled: make(chan struct{}), clock: make(chan int64, 1), heard: make(chan struct{})}
	if o.Home == nil {
		m.alone()
		close(m.reached)
		close(m.settled)
		return m
	}
	go m.connect()
	return m
}

// connect connects to the home, and listens to it.
func (m *Monitor) connect() {
	l, err := m.o.Home.Call(home.Hello{Rank: m.o.Rank, Size: len(m.seg.Ranks), PID: os.Getpid(), Node: m.seg.Node(), Host: m.host})
	if err != nil {
		log.Infof("monitor", "mpiexec can't be reached, so this rank tells by itself what happens: %v", err)
		m.unheard.Store(true)
		m.alone()
		close(m.reached)
		close(m.settled)
		return
	}
	m.link = l
	close(m.reached)
	go m.listen()
	m.begun = m.offset()
	close(m.settled)
}

// reachTime bounds how long a rank waits for its home at the start, where a firewall may drop
// what it sends.
const reachTime = 300 * time.Millisecond

// AwaitHome waits until the rank has connected to its home, so that the home notices its end from
// now on, however it comes.
func (m *Monitor) AwaitHome() {
	if m == nil {
		return
	}
	select {
	case <-m.reached:
	case <-time.After(reachTime):
	}
}

// home returns the link to the home, nil if there is none.
func (m *Monitor) home() *home.Link {
	select {
	case <-m.settled:
	case <-time.After(heardTime):
		return nil
	}
	return m.link
}

// Records reports whether this rank is to record what it does for its home.
func (m *Monitor) Records() bool { return m != nil && m.o.Home != nil && m.o.Home.Record }

// listen does what the home asks for.
func (m *Monitor) listen() {
	for {
		msg, err := m.link.Receive()
		if err != nil {
			m.unheard.Store(true)
			m.once.Do(func() { close(m.heard) }) // mpiexec has ended: its launcher ends the job
			return
		}
		switch msg.Kind {
		case home.Clock:
			select {
			case m.clock <- roundTrip(msg.Times[0], msg.Times[1], job.Now()):
			default:
			}
		case home.Describe:
			_ = m.link.Send(&home.Message{Kind: home.State, Lines: m.describe()})
		case home.Stacks:
			m.printStacks()
		case home.Collect:
			go m.send()
		case home.Heard:
			m.once.Do(func() { close(m.heard) })
		case home.End:
			go m.end(msg.Code)
		}
	}
}

// describe returns what the ranks of this node do.
func (m *Monitor) describe() map[int][]string {
	lines := map[int][]string{}
	for _, r := range m.seg.RanksOf(m.seg.Node()) {
		lines[r] = m.seg.Describe(r)
	}
	return lines
}

// end ends the job with an exit status, and this process if the launcher does not.
func (m *Monitor) end(code int) {
	if m.ending.Swap(true) {
		return
	}
	m.seg.Abort(m.o.Rank, code)
	if m.o.Abort != nil {
		m.o.Abort(code)
		time.Sleep(endTime)
	}
	_ = os.Stdout.Sync()
	os.Exit(code)
}

// CutOff ends this process, because its node does not reach the larger part of the job, or what comes from there is
// forged. That part goes on. One rank of the node says so.
func (m *Monitor) CutOff() {
	if m != nil && !m.ending.Swap(true) && m.speaksForNode() {
		why := "does not reach the larger part of the job any more"
		if m.seg.CutByForgery() {
			why = "has to leave the job, because something on the way forges what hosts send each other"
		}
		m.say(fmt.Sprintf("gormapy: %s, with %d of the job's %d ranks, %s: its ranks end\n",
			m.host, len(m.seg.RanksOf(m.seg.Node())), len(m.seg.Ranks), why))
	}
	_ = os.Stdout.Sync()
	os.Exit(1)
}

// speaksForNode reports whether this is the first rank of its node that takes part in the job.
func (m *Monitor) speaksForNode() bool {
	for _, r := range m.seg.RanksOf(m.seg.Node()) {
		rk := &m.seg.Ranks[r]
		if atomic.LoadUint32(&rk.Ended) == 0 && atomic.LoadUint32(&rk.State) == job.StateReady {
			return r == m.o.Rank
		}
	}
	return false
}

// Fails tells that this rank is about to end the job, with an exit status; how is a clause. If
// silent, another rank fails in the same place and tells. It must be called after the
// segment's Abort, whose result is first.
func (m *Monitor) Fails(how string, code int, first, silent bool) {
	if m == nil || m.ending.Swap(true) {
		return
	}
	l := m.home()
	if l == nil {
		if first && !silent {
			m.say(m.verdict(m.o.Rank, how))
		}
		return
	}
	if !m.unheard.Load() && l.Send(&home.Message{Kind: home.Failed, How: how, Code: code}) == nil {
		m.awaitHeard(heardTime)
	} else if first && !silent {
		m.say(m.verdict(m.o.Rank, how))
	}
}

func (m *Monitor) awaitHeard(d time.Duration) {
	select {
	case <-m.heard:
	case <-time.After(d):
	}
}

// Finalized tells that this rank has finalized: if it ends without a further word (os._exit), it
// has not failed.
func (m *Monitor) Finalized() {
	if m == nil || m.ending.Load() {
		return
	}
	if l := m.home(); l != nil {
		_ = l.Send(&home.Message{Kind: home.Finalized})
	}
}

// Ends tells that this rank ends well, and hands over what it has recorded.
func (m *Monitor) Ends() {
	if m == nil || m.ending.Swap(true) {
		return
	}
	l := m.home()
	if l == nil {
		return
	}
	if m.Records() {
		m.send()
	}
	if l.Send(&home.Message{Kind: home.Bye}) == nil {
		m.awaitHeard(byeTime)
	}
}

// PeerEnded tells that the process of a rank has ended. It is called at all ranks that notice,
// before their calls fail for that reason.
func (m *Monitor) PeerEnded(rank int) {
	if m == nil {
		return
	}
	rk := &m.seg.Ranks[rank]
	_, _, aborted := m.seg.Aborted()
	exited, ws := atomic.LoadUint32(&rk.Exit) != 0, unix.WaitStatus(atomic.LoadInt32(&rk.ExitStatus))
	if exited && ws == 0 || !exited && atomic.LoadUint32(&rk.State) == job.StateFinalized {
		return
	}
	code, how := 1, "has ended without calling MPI_Finalize"
	switch {
	case rk.LostToForgery():
		how = strings.TrimSpace(job.LostToForgeryText)
	case atomic.LoadUint32(&rk.Flags)&job.Unreachable != 0:
		how = "can't be reached any more: its host has left the job, or it was the first rank there and has ended"
	case exited && ws.Signaled():
		code, how = 128+int(ws.Signal()), job.EndText(ws)
	case exited:
		code, how = max(ws.ExitStatus(), 1), job.EndText(ws)
	}
	hears := m.o.Home != nil && !m.unheard.Load()
	if hears && exited && m.seg.Local(rank) {
		m.seg.Abort(rank, code) // the home ends the job
		go m.tellPeer(rank, ws)
	}
	if hears || aborted || m.ending.Load() || m.speaker(rank) != m.o.Rank {
		return
	}
	m.seg.Abort(rank, code)
	m.say(m.verdict(rank, how))
	time.AfterFunc(failTime, func() { m.end(code) })
}

// tellPeer tells the home that a rank of this node has ended, with a wait status.
func (m *Monitor) tellPeer(rank int, ws unix.WaitStatus) {
	if l := m.home(); l != nil {
		_ = l.Send(&home.Message{Kind: home.Peer, Rank: rank, Code: int(ws)})
	}
}

// failTime is how long the launcher may take to end the job because of the same failure, as it
// ends jobs: with its own status.
const failTime = 300 * time.Millisecond

// speaker returns the rank that speaks for one that has ended: the first one that lives on its
// node, else the first of the job.
func (m *Monitor) speaker(rank int) int {
	for _, ranks := range [][]int{m.seg.RanksOf(m.seg.NodeOf(rank)), nil} {
		if ranks == nil {
			for r := range m.seg.Ranks {
				ranks = append(ranks, r)
			}
		}
		for _, r := range ranks {
			rk := &m.seg.Ranks[r]
			if r != rank && atomic.LoadUint32(&rk.Ended) == 0 && atomic.LoadUint32(&rk.State) == job.StateReady {
				return r
			}
		}
	}
	return -1
}

// verdict returns the line about the end of a rank.
func (m *Monitor) verdict(rank int, how string) string {
	where := m.host
	if !m.seg.Local(rank) {
		where = fmt.Sprintf("node %d", m.seg.NodeOf(rank))
	}
	text := fmt.Sprintf("gormapy: rank %d (%s, pid %d) %s", rank, where, m.seg.Ranks[rank].PID(), how)
	if n := len(m.seg.Ranks) - 1; n > 0 {
		text += "; the job ends"
	}
	return text + "\n"
}

// say writes to standard error, in one piece.
func (m *Monitor) say(text string) { _, _ = os.Stderr.WriteString(text) }
