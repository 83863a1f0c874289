package agent

import (
	"bytes"
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
	local []int  // ranks of this node
	iface string // where it listens, if it was told
	links []*link
	dirs  map[int]*job.Directory // by far rank: takes the mails for it
	mails map[int]uint32         // by far rank: how many mails have been taken

	heir     bool      // it has taken the place of another one
	late     []int     // agents whose nodes have left: their connections are to be cut
	said     bool      // it has disconnected
	deadline time.Time // when it leaves in any case

	wake    int // eventfd
	leaving atomic.Bool
	work    sync.WaitGroup // listen and run
	once    sync.Once
}

// link is what this agent has told the one of another node.
type link struct {
	node  int
	peer  int // the rank that is the agent of the node
	ep    fabric.Endpoint
	over  bool      // the connection has ended
	until time.Time // if it is over: until then another rank of the node may take over
	lost  bool      // the node has left the job

	news
	mails   []mail
	verdict uint32 // the answer to this node's claim of a traceback
	answer  uint32 // what is to be answered to the other one's claim
}

// news is what an agent has been told. Another one that takes its place is told all again.
type news struct {
	agents  map[int]int // by node: the rank of its agent, plus 1
	told    map[int]job.Status
	cards   map[int]bool
	aborted bool
	asked   bool // for the verdict on this node's claim
}

func noNews() news {
	return news{agents: map[int]int{}, told: map[int]job.Status{}, cards: map[int]bool{}}
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
	msgClaim
	msgVerdict
	msgAgent
)

const (
	statusBytes = int(unsafe.Sizeof(job.Status{}))
	// retry is the pause after which a message that found no room is sent again.
	retry = time.Millisecond
	// leaveTime bounds how long Leave waits for the other agents.
	leaveTime = 2 * time.Second
	// heirTime is how long a node has, after its agent's process has ended, to have another.
	heirTime = 2 * time.Second
	// maxPanics bounds how often the agent goes on after an internal error.
	maxPanics = 10
)

// New makes rank, of this process, the agent of its node. It listens; Card returns where. The
// map of the segment's nodes need not be complete yet.
func New(seg *job.Segment, rank int, o Options) (*Agent, error) {
	a := &Agent{seg: seg, dir: newDirectory(seg, rank), iface: o.TCP.Interface, dirs: map[int]*job.Directory{}, mails: map[int]uint32{}}
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
		a.seg.SetAgent(peer, card)
		if a.seg.Local(peer) {
			continue
		}
		l := &link{node: a.seg.NodeOf(peer), news: noNews()}
		if err := a.connect(l, peer, card); err != nil {
			return fmt.Errorf("connect to the agent of node %d: %w", l.node, err)
		}
		if !a.heir {
			for r := range cards {
				l.agents[a.seg.NodeOf(r)] = r + 1 // it has the same cards
			}
		}
		a.links = append(a.links, l)
	}
	a.work.Add(2)
	go a.listen()
	go a.run()
	return nil
}

// Succeed makes rank, of this process, the agent of its node in place of one that has ended,
// and connects it to the others.
func Succeed(seg *job.Segment, rank int, o Options) (*Agent, error) {
	a, err := New(seg, rank, o)
	if err != nil {
		return nil, err
	}
	a.heir = true
	cards := map[int][]byte{rank: a.Card()}
	for node := range seg.Nodes() {
		if peer, card := seg.Agent(node); node != seg.Node() && peer >= 0 {
			cards[peer] = card
		}
	}
	if err := a.Start(cards); err != nil {
		_ = a.net.Close()
		unix.Close(a.wake)
		return nil, err
	}
	return a, nil
}

// connect makes a link's connection to rank peer.
func (a *Agent) connect(l *link, peer int, card []byte) (err error) {
	a.dir.cards[peer] = card
	l.peer, l.over = peer, false
	l.ep, err = a.net.Connect(peer)
	return err
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

// run is the agent's loop. It goes on after an internal error.
func (a *Agent) run() {
	defer a.work.Done()
	for n := 0; n < maxPanics && !a.loop(); n++ {
	}
}

// loop works until the agent has left. It returns false after an internal error.
func (a *Agent) loop() (left bool) {
	defer func() {
		if p := recover(); p != nil {
			log.Errorf("agent", "internal error in the agent of node %d: %v\n%s", a.seg.Node(), p, debug.Stack())
		}
	}()
	for {
		if a.poll() > 0 {
			continue
		}
		a.findAddress()
		done, waiting := a.tellAll(), a.waiting()
		if a.leaving.Load() && a.leave(done) {
			return true
		}
		_ = a.net.Arm()
		if a.poll() > 0 {
			continue
		}
		wait := -1
		switch {
		case !done || a.leaving.Load():
			wait = int(retry / time.Millisecond)
		case waiting:
			wait = 50
		}
		fds := []unix.PollFd{{Fd: int32(a.net.FD()), Events: unix.POLLIN}, {Fd: int32(a.wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, wait); err != nil && err != unix.EINTR {
			time.Sleep(retry)
		}
		var count [8]byte
		_, _ = unix.Read(a.wake, count[:])
	}
}

// poll takes what has arrived, and cuts the connections of agents that came too late.
func (a *Agent) poll() int {
	n := a.net.Poll(a)
	for _, peer := range a.late {
		a.net.Cut(peer)
	}
	a.late = a.late[:0]
	return n
}

// leave disconnects, once everything has been told (done). It reports whether the other
// agents have got it, or it has taken too long.
func (a *Agent) leave(done bool) bool {
	if a.deadline.IsZero() {
		a.deadline = time.Now().Add(leaveTime)
	}
	if done && !a.said {
		a.net.Disconnect()
		a.said = true
	}
	left := done && a.said
	for _, l := range a.links {
		switch {
		case l.lost:
		case l.over: // a node between two agents: this node's next agent, if there will be one, tells it
			left = left && a.hasHeir(a.seg.Node(), a.dir.rank)
		default:
			left = left && a.net.Disconnected(l.peer)
		}
	}
	return left || time.Now().After(a.deadline)
}

// waiting gives up the nodes that have had no agent for too long. It reports whether there
// are others that have none.
func (a *Agent) waiting() bool {
	some := false
	for _, l := range a.links {
		switch {
		case !l.over || l.lost || a.adoptKnown(l):
		case time.Now().After(l.until):
			a.lose(l)
		default:
			some = true
		}
	}
	return some
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
		case l.verdict == job.ClaimPending && !l.lost:
			verdict = job.ClaimPending
		}
	}
	if verdict != job.ClaimPending {
		a.seg.JudgeError(verdict)
	}
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
	for node := range a.seg.Nodes() {
		rank, card := a.seg.Agent(node)
		if node == l.node || rank < 0 || l.agents[node] == rank+1 {
			continue
		}
		if len(card) == 0 { // it has only just taken over
			return false
		}
		if !l.send(msgAgent, rank, 0, 0, card) {
			return false
		}
		l.agents[node] = rank + 1
	}
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
	return true
}

func (a *Agent) dirCard(r int) []byte { return a.seg.Directory(r).Card(r) }

// send sends a message. It returns false if there is no room now.
func (l *link) send(what uint32, from, to, code int, data []byte) bool {
	h := fabric.Header{Kind: fabric.KindEager, Aux: what, A: uint64(from), B: uint64(to), Tag: int32(code), Len: uint64(len(data))}
	err := l.ep.Send(&h, data)
	if err != nil && !errors.Is(err, fabric.ErrAgain) {
		return false // Broken is called, too
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
	if h.Aux == msgAgent && len(payload) > 0 && len(payload) <= fabric.CardBytes {
		a.heard(l, peer, from, payload)
	}
	if l.peer != peer {
		return // it was the agent before
	}
	switch {
	case h.Aux == msgAbort:
		l.aborted = true
		a.seg.Abort(from, int(h.Tag))
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

// heard handles the message of peer, on the node of l, that rank is the agent of its node.
func (a *Agent) heard(l *link, peer, rank int, card []byte) {
	switch of := a.link(a.seg.NodeOf(rank)); {
	case of == nil: // this node
	case rank == peer && of.lost:
		a.late = append(a.late, peer)
	case rank == peer && of.peer != peer:
		a.adopt(of, rank, card)
	case of == l && l.peer == peer && rank != peer: // its successor: see Broken
		a.seg.SetAgent(rank, card)
	case of != l && l.peer == peer && of.over && !of.lost && of.peer != rank && atomic.LoadUint32(&a.seg.Ranks[rank].Ended) == 0:
		a.adopt(of, rank, card) // it can't know this agent, if both nodes lost theirs
	}
}

// adopt makes rank the other end of a link, and tells it everything.
func (a *Agent) adopt(l *link, rank int, card []byte) {
	log.Infof("agent", "rank %d is now the agent of node %d, in place of rank %d", rank, l.node, l.peer)
	card = bytes.Clone(card)
	a.seg.SetAgent(rank, card)
	l.news = noNews()
	for _, r := range a.seg.RanksOf(l.node) { // the mails may be lost: the last ones are sent again
		a.dirs[r], a.mails[r] = a.seg.Directory(r), 0
	}
	if err := a.connect(l, rank, card); err != nil {
		log.Errorf("agent", "connect to rank %d, the agent of node %d: %v", rank, l.node, err)
		a.lose(l)
	}
}

// Broken implements fabric.Sink. If the agent's process has ended another rank of the node may
// take over; else the node has left.
func (a *Agent) Broken(peer int, err error) {
	l := a.link(a.seg.NodeOf(peer))
	if l.peer != peer || l.over {
		return
	}
	log.Infof("agent", "the link of node %d to node %d has ended: %v", a.seg.Node(), l.node, err)
	l.over, l.until = true, time.Now().Add(heirTime)
	if a.adoptKnown(l) {
		return
	}
	alive := errors.Is(err, fabric.ErrPeerGone) || errors.Is(err, fabric.ErrDisconnected) // the host
	if !alive || !a.hasHeir(l.node, l.peer) {
		a.lose(l)
	}
}

// adoptKnown connects a link that is over to the node's new agent, if it is known already.
func (a *Agent) adoptKnown(l *link) bool {
	rank, card := a.seg.Agent(l.node)
	if rank < 0 || rank == l.peer || len(card) == 0 || atomic.LoadUint32(&a.seg.Ranks[rank].Ended) != 0 {
		return false
	}
	a.adopt(l, rank, card)
	return true
}

// hasHeir reports whether a rank of a node may take over from the agent there.
func (a *Agent) hasHeir(node, agent int) bool {
	for _, r := range a.seg.RanksOf(node) {
		if st := a.seg.Status(r); r != agent && st.State == job.StateReady && st.Ended|st.Exit == 0 {
			return true
		}
	}
	return false
}

// lose records that the node of a link has left the job.
func (a *Agent) lose(l *link) {
	l.over, l.lost = true, true
	for _, r := range a.seg.RanksOf(l.node) {
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
