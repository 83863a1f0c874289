package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
)

// Options of an agent.
type Options struct {
	TCP tcp.Options // where it listens
}

// Agent is the agent of this node.
type Agent struct {
	seg   *job.Segment
	dir   *directory
	net   *tcp.Transport
	local []int // ranks of this node
	links []*link
	dirs  map[int]*job.Directory // by far rank: takes the mails for it
	mails map[int]uint32         // by far rank: how many mails have been taken

	wake    int // eventfd
	leaving atomic.Bool
	work    sync.WaitGroup // listen and run
	once    sync.Once
}

// link is what this agent has told another one.
type link struct {
	node    int
	ep      fabric.Endpoint
	told    map[int]job.Status
	cards   map[int]bool
	mails   []mail
	aborted bool
	over    bool // it has ended

	asked   bool   // it has been asked for this node's claim of a traceback
	verdict uint32 // its answer
	answer  uint32 // what is to be answered to its claim

	leaving  bool // it has been told that this agent leaves
	released bool // it has answered that
	asks     bool // it leaves, and waits for the answer
}

type mail struct {
	from, to int
	data     []byte
}

// The messages, in Header.Aux. A and B have the ranks, Tag the exit status of an abort.
const (
	msgStatus uint32 = iota + 1
	msgCard
	msgMail
	msgAbort
	msgLeave
	msgLeft
	msgClaim
	msgVerdict
)

const (
	statusBytes = int(unsafe.Sizeof(job.Status{}))
	// retry is the pause after which a message that found no room is sent again.
	retry = time.Millisecond
	// leaveTime bounds how long Leave waits for the other agents.
	leaveTime = 2 * time.Second
)

// New makes rank, of this process, the agent of its node. It listens; Card returns where. The
// map of the segment's nodes need not be complete yet.
func New(seg *job.Segment, rank int, o Options) (*Agent, error) {
	a := &Agent{seg: seg, dir: newDirectory(seg, rank), dirs: map[int]*job.Directory{}, mails: map[int]uint32{}}
	var err error
	if a.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	if a.net, err = tcp.New(a.dir, o.TCP); err != nil {
		unix.Close(a.wake)
		return nil, err
	}
	return a, nil
}

// Card returns the address of the agent, for the agents of the other nodes.
func (a *Agent) Card() []byte { return a.dir.cards[a.dir.rank] }

// Start connects the agent to those of the other nodes, whose cards are given by their
// ranks, and lets it work until Leave. The map of nodes is complete.
func (a *Agent) Start(cards map[int][]byte) error {
	a.local = a.seg.RanksOf(a.seg.Node())
	for r := range a.seg.Ranks {
		if !a.seg.Local(r) {
			a.dirs[r] = a.seg.Directory(r)
		}
	}
	for peer, card := range cards {
		if a.seg.Local(peer) {
			continue
		}
		a.dir.cards[peer] = card
		l := &link{node: a.seg.NodeOf(peer), told: map[int]job.Status{}, cards: map[int]bool{}}
		var err error
		if l.ep, err = a.net.Connect(peer); err != nil {
			return fmt.Errorf("connect to the agent of node %d: %w", l.node, err)
		}
		a.links = append(a.links, l)
	}
	a.work.Add(2)
	go a.listen()
	go a.run()
	return nil
}

// listen passes the agent's doorbell on to the descriptor that run waits for.
func (a *Agent) listen() {
	defer a.work.Done()
	for seen := uint32(0); !a.leaving.Load(); {
		seen = a.seg.AwaitAgentBell(seen)
		a.rouse()
	}
}

func (a *Agent) rouse() {
	one := [8]byte{1}
	_, _ = unix.Write(a.wake, one[:])
}

// run is the agent's loop.
func (a *Agent) run() {
	defer a.work.Done()
	defer func() {
		if p := recover(); p != nil {
			log.Errorf("agent", "internal error in the agent of node %d: %v\n%s", a.seg.Node(), p, debug.Stack())
		}
	}()
	var deadline time.Time
	for {
		if a.net.Poll(a) > 0 {
			continue
		}
		done := a.tellAll()
		if a.leaving.Load() {
			switch {
			case deadline.IsZero():
				deadline = time.Now().Add(leaveTime)
			case done && a.free() || time.Now().After(deadline):
				return
			}
		}
		_ = a.net.Arm()
		if a.net.Poll(a) > 0 {
			continue
		}
		wait := -1
		if !done || a.leaving.Load() {
			wait = int(retry / time.Millisecond)
		}
		fds := []unix.PollFd{{Fd: int32(a.net.FD()), Events: unix.POLLIN}, {Fd: int32(a.wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, wait); err != nil && err != unix.EINTR {
			time.Sleep(retry)
		}
		var count [8]byte
		_, _ = unix.Read(a.wake, count[:])
	}
}

// tellAll tells every link what it has not been told, and reports whether nothing is left.
func (a *Agent) tellAll() (done bool) {
	a.collectMails()
	done = true
	for _, l := range a.links {
		if !l.over && !a.tell(l) {
			done = false
		}
	}
	a.judge()
	return done
}

// judge tells the rank of this node that has claimed a traceback what the other nodes say.
func (a *Agent) judge() {
	if _, verdict, yes := a.seg.ClaimedError(); !yes || verdict != job.ClaimPending {
		return
	}
	verdict := job.ClaimGranted
	for _, l := range a.links {
		switch {
		case l.verdict == job.ClaimDenied:
			a.seg.JudgeError(job.ClaimDenied)
			return
		case l.verdict == job.ClaimPending && !l.over:
			verdict = job.ClaimPending
		}
	}
	if verdict != job.ClaimPending {
		a.seg.JudgeError(verdict)
	}
}

// free reports whether all other agents have answered that this one leaves.
func (a *Agent) free() bool {
	for _, l := range a.links {
		if !l.over && !l.released {
			return false
		}
	}
	return true
}

// collectMails takes the mails of local ranks for far ones.
func (a *Agent) collectMails() {
	for to, dir := range a.dirs {
		n := dir.Mails()
		if n == a.mails[to] {
			continue
		}
		a.mails[to] = n
		for _, from := range a.local {
			if data := dir.Mailed(from); data != nil {
				if l := a.link(a.seg.NodeOf(to)); l != nil {
					l.mails = append(l.mails, mail{from, to, data})
				}
			}
		}
	}
}

func (a *Agent) link(node int) *link {
	for _, l := range a.links {
		if l.node == node {
			return l
		}
	}
	return nil
}

// tell tells a link what it has not been told, and reports whether nothing is left.
func (a *Agent) tell(l *link) bool {
	for _, r := range a.local {
		if card := a.dirCard(r); card != nil && !l.cards[r] {
			if !l.send(msgCard, r, 0, 0, card) {
				return false
			}
			l.cards[r] = true
		}
	}
	for ; len(l.mails) > 0; l.mails = l.mails[1:] {
		if m := l.mails[0]; !l.send(msgMail, m.from, m.to, 0, m.data) {
			return false
		}
	}
	if hash, _, yes := a.seg.ClaimedError(); yes && !l.asked {
		if !l.send(msgClaim, a.dir.rank, 0, 0, binary.LittleEndian.AppendUint64(nil, hash)) {
			return false
		}
		l.asked = true
	}
	if l.answer != job.ClaimPending {
		if !l.send(msgVerdict, a.dir.rank, 0, int(l.answer), nil) {
			return false
		}
		l.answer = job.ClaimPending
	}
	if rank, code, yes := a.seg.Aborted(); yes && !l.aborted {
		if !l.send(msgAbort, rank, 0, code, nil) {
			return false
		}
		l.aborted = true
	}
	for _, r := range a.local {
		st := a.seg.Status(r)
		if st == l.told[r] {
			continue
		}
		if !l.send(msgStatus, r, 0, 0, unsafe.Slice((*byte)(unsafe.Pointer(&st)), statusBytes)) {
			return false
		}
		l.told[r] = st
	}
	if l.asks && l.send(msgLeft, 0, 0, 0, nil) {
		l.asks = false
	}
	if a.leaving.Load() && !l.leaving {
		l.leaving = l.send(msgLeave, 0, 0, 0, nil)
	}
	return !l.asks && l.leaving == a.leaving.Load()
}

func (a *Agent) dirCard(r int) []byte { return a.seg.Directory(r).Card(r) }

// send sends a message. It returns false if there is no room now.
func (l *link) send(what uint32, from, to, code int, data []byte) bool {
	h := fabric.Header{Kind: fabric.KindEager, Aux: what, A: uint64(from), B: uint64(to), Tag: int32(code), Len: uint64(len(data))}
	err := l.ep.Send(&h, data)
	if err != nil && !errors.Is(err, fabric.ErrAgain) {
		l.over = true // Broken is called, too
		return true
	}
	return err == nil
}

// Deliver implements fabric.Sink.
func (a *Agent) Deliver(peer int, h *fabric.Header, payload []byte) {
	node := a.seg.NodeOf(peer)
	from, l := int(h.A), a.link(node)
	if h.A >= uint64(len(a.seg.Ranks)) || l == nil {
		return
	}
	switch {
	case h.Aux == msgAbort:
		l.aborted = true
		a.seg.Abort(from, int(h.Tag))
	case h.Aux == msgLeave:
		l.asks = true
	case h.Aux == msgLeft:
		l.released = true
	case h.Aux == msgClaim && len(payload) == 8:
		l.answer = a.seg.ClaimedElsewhere(binary.LittleEndian.Uint64(payload), node)
	case h.Aux == msgVerdict:
		l.verdict = uint32(h.Tag)
	case a.seg.NodeOf(from) != node:
	case h.Aux == msgStatus && len(payload) == statusBytes:
		var st job.Status
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&st)), statusBytes), payload)
		a.seg.Shadow(from, st)
		a.seg.RingRanks()
	case h.Aux == msgCard && len(payload) > 0 && len(payload) <= fabric.CardBytes:
		_ = a.dirs[from].Publish(payload) // it has this length
		a.seg.RingRanks()
	case h.Aux == msgMail && h.B < uint64(len(a.seg.Ranks)) && a.seg.Local(int(h.B)) && len(payload) <= fabric.MailBytes:
		_ = a.dirs[from].Mail(int(h.B), payload)
	}
}

// Place implements fabric.Sink.
func (a *Agent) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }

// Completed implements fabric.Sink. There are no one-sided operations.
func (a *Agent) Completed(uint64, error) {}

// Broken implements fabric.Sink: a node has left.
func (a *Agent) Broken(peer int, err error) {
	node := a.seg.NodeOf(peer)
	a.link(node).over = true
	log.Infof("agent", "the link of node %d to node %d has ended: %v", a.seg.Node(), node, err)
	for _, r := range a.seg.RanksOf(node) {
		a.seg.Lose(r)
	}
	a.seg.RingRanks()
}

// Leave ends the agent, once the other nodes have been told everything. The caller has
// made sure that no rank of the node needs it any more.
func (a *Agent) Leave() {
	a.once.Do(func() {
		a.leaving.Store(true)
		a.rouse()
		a.seg.RingAgent() // ends listen
		a.work.Wait()
		if _, verdict, _ := a.seg.ClaimedError(); verdict == job.ClaimPending {
			a.seg.JudgeError(job.ClaimGranted) // nobody is asked any more
		}
		_ = a.net.Close()
		unix.Close(a.wake)
	})
}
