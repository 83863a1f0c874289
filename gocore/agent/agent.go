package agent

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
)

// Options of an agent.
type Options struct {
	// TCP says where it listens, and by Patience after how long a host that does not answer has
	// left the job.
	TCP tcp.Options
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

	settle time.Duration // see settleTime
	divided

	heir     bool      // it has taken the place of another one
	late     []int     // agents whose nodes have left: their connections are to be cut
	said     bool      // it has disconnected
	deadline time.Time // when it leaves in any case

	wake    int // eventfd
	leaving atomic.Bool
	work    sync.WaitGroup // listen and run
	once    sync.Once
}

const (
	statusBytes = int(unsafe.Sizeof(job.Status{}))
	// retry is the pause after which a message that found no room is sent again.
	retry = time.Millisecond
	// leaveTime bounds how long Leave waits for the other agents.
	leaveTime = 5 * time.Second
	// heirTime is how long a node has, after its agent's process has ended, to have another.
	heirTime = 4 * time.Second
	// maxPanics bounds how often the agent goes on after an internal error.
	maxPanics = 10
)

// New makes rank, of this process, the agent of its node. It listens; Card returns where. The
// map of the segment's nodes need not be complete yet.
func New(seg *job.Segment, rank int, o Options) (*Agent, error) {
	a := &Agent{seg: seg, dir: newDirectory(seg, rank), iface: o.TCP.Interface, dirs: map[int]*job.Directory{}, mails: map[int]uint32{}}
	a.settle = settleTime(o.TCP.Patience)
	if o.TCP.Patience > 0 {
		o.TCP.Patience = max(o.TCP.Patience-a.settle, time.Millisecond)
	}
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
	l.there.Store(unasked)
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
