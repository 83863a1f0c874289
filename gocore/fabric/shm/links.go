package shm

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// A link is a memfd that the sender makes: a page that says whose it is, and a ring. How it is announced is written
// in package job, connected.go.

const (
	linkMagic = 0x676f726d6c696e6b // "gormlink"
	linkHead  = 4096
	linkRing  = 256 << 10
	// retryPolls is how many polls pass before a link is opened again that could not be opened, for want of descriptors.
	retryPolls = 1000
)

// linkPage is the first page of a link.
type linkPage struct {
	Magic uint64
	Job   [32]byte // of the sender
	Rank  uint32   // there
	PID   uint32
	// The process and its descriptor by which the segment of the sender's job is opened.
	OpenerPID, OpenerFD uint32
}

// Links is the transport to processes of other jobs on this host.
type Links struct {
	seg    *job.Segment
	rank   int
	copies bool
	// known returns the number of a process, connects to it if need be, or says why it can't.
	known func(id string, rank, openerPID, openerFD int) (int, error)

	again int // polls left until the announcements are looked at again; 0: there is no reason

	mu      sync.Mutex
	in      map[int]*inLink
	out     map[int]*outLink
	polled  []*inLink // in, under the poll lock
	waiting atomic.Int32
}

// inLink is a link of another process to this one.
type inLink struct {
	src  int
	mem  *sys.Segment
	ring ring
}

// NewLinks makes the transport of world rank rank. The first Poll may call known, under the poll lock.
func NewLinks(seg *job.Segment, rank int, oneCopy bool, known func(id string, rank, openerPID, openerFD int) (int, error)) *Links {
	return &Links{seg: seg, rank: rank, copies: oneCopy, known: known, in: map[int]*inLink{}, out: map[int]*outLink{}}
}

// Name implements fabric.Transport.
func (l *Links) Name() string { return "shm" }

// Caps implements fabric.Transport.
func (l *Links) Caps() fabric.Caps { return caps(linkRing, l.copies) }

// Refusal implements fabric.Explainer.
func (l *Links) Refusal(peer int) string { return refusal(l.copies, l.seg.Rank(peer)) }

// Register implements fabric.Transport, as Transport does.
func (l *Links) Register(p unsafe.Pointer, _ int) (fabric.Region, error) { return region{p}, nil }

// outLink is the endpoint of a link from this process.
type outLink struct {
	endpoint
	l   *Links
	mem *sys.Segment

	announcing sync.Mutex
	announced  *job.Announcement // nil: not yet
	taken      bool              // the receiver has opened it, or never will
	open       atomic.Bool       // the receiver has opened it
}

// Connect implements fabric.Transport.
func (l *Links) Connect(peer int) (fabric.Endpoint, error) {
	mem, err := sys.NewSegment("link", linkHead+linkRing)
	if err != nil {
		return nil, fmt.Errorf("connect to a process of another job: %w", err)
	}
	mem.KeepFromChildren()
	page := (*linkPage)(unsafe.Pointer(&mem.Mem[0]))
	pid, fd := l.seg.Opener()
	*page = linkPage{Magic: linkMagic, Job: l.seg.Head.ID, Rank: uint32(l.rank), PID: uint32(os.Getpid()), OpenerPID: uint32(pid), OpenerFD: uint32(fd)}
	o := &outLink{l: l, mem: mem, endpoint: endpoint{copies: l.copies, peer: l.seg.Rank(peer), ring: newRing(mem.Mem[linkHead:])}}
	l.mu.Lock()
	l.out[peer] = o
	l.mu.Unlock()
	return o, nil
}

// Send implements fabric.Endpoint. Nothing is sent before the peer has opened the link: with this process it would be gone.
func (o *outLink) Send(h *fabric.Header, payload []byte) error {
	if !o.open.Load() {
		if err := o.announce(); err != nil {
			return err
		}
		if o.look(); !o.open.Load() {
			o.peer.RingProgress()
			return fabric.ErrAgain
		}
	}
	return o.endpoint.Send(h, payload)
}

// announce tells the peer of the link, once.
func (o *outLink) announce() error {
	o.announcing.Lock()
	defer o.announcing.Unlock()
	switch {
	case atomic.LoadUint32(&o.peer.Ended) != 0:
		return fabric.ErrPeerGone
	case o.announced != nil:
		return nil
	}
	if o.announced = o.peer.Announce(o.mem.FD); o.announced == nil {
		return fabric.ErrAgain
	}
	o.l.waiting.Add(1)
	return nil
}

// look closes the descriptor of a link that has been announced, once the peer has opened it or has ended.
func (o *outLink) look() {
	o.announcing.Lock()
	defer o.announcing.Unlock()
	if o.announced == nil || o.taken {
		return
	}
	opened := o.announced.Taken(os.Getpid())
	if !opened && atomic.LoadUint32(&o.peer.Ended) == 0 {
		return
	}
	o.open.Store(opened)
	o.taken = true
	o.mem.CloseFD()
	o.l.waiting.Add(-1)
}

// Waiting returns the number of links that have been announced and not opened: a process that ends takes what it has sent there
// with it.
func (l *Links) Waiting() int {
	if l.waiting.Load() > 0 {
		l.lookAtOut()
	}
	return int(l.waiting.Load())
}

func (l *Links) lookAtOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.out {
		o.look()
	}
}

// Poll implements fabric.Transport.
func (l *Links) Poll(sink fabric.Sink) (n int) {
	me := &l.seg.Ranks[l.rank]
	switch {
	case atom.Load32(&me.Announced) != 0:
		atom.Store32(&me.Announced, 0)
		l.take(me)
	case l.again > 0:
		if l.again--; l.again == 0 {
			l.take(me)
		}
	}
	for _, in := range l.polled {
		r := &in.ring
		if *(*uint32)(r.at(r.pos)) == 0 {
			continue
		}
		// Generations are those of a job: what comes from another one has this one's.
		gen := atomic.LoadUint32(&me.Gen) &^ 1
		n += r.deliver(func(h *fabric.Header, payload []byte) {
			own := *h
			own.Gen = gen
			sink.Deliver(in.src, &own, payload)
		})
	}
	if l.waiting.Load() > 0 {
		l.lookAtOut()
	}
	return n
}

// take opens the links that have been announced, under the poll lock.
func (l *Links) take(me *job.Rank) {
	for i := range me.Announcements {
		a := &me.Announcements[i]
		pid, fd, ok := a.Sender()
		if !ok {
			continue
		}
		in, err := l.open(pid, fd)
		switch {
		case err == nil:
			l.mu.Lock()
			l.in[in.src] = in
			l.polled = append(l.polled, in)
			l.mu.Unlock()
		case sys.Alive(pid):
			log.Warnf("shm", "a link of process %d can't be opened now: %v", pid, err)
			l.again = retryPolls
			continue
		}
		a.Done()
	}
}

// open opens the link that process pid has as descriptor fd.
func (l *Links) open(pid, fd int) (*inLink, error) {
	mem, err := sys.OpenSegment(pid, fd)
	if err != nil {
		return nil, err
	}
	mem.CloseFD()
	mem.KeepFromChildren()
	in, err := l.identify(mem, pid)
	if err != nil {
		_ = mem.Close()
	}
	return in, err
}

func (l *Links) identify(mem *sys.Segment, pid int) (*inLink, error) {
	if len(mem.Mem) != linkHead+linkRing {
		return nil, fmt.Errorf("it has %d bytes", len(mem.Mem))
	}
	page := (*linkPage)(unsafe.Pointer(&mem.Mem[0]))
	if page.Magic != linkMagic || int(page.PID) != pid {
		return nil, fmt.Errorf("it is no link of process %d", pid)
	}
	src, err := l.known(string(page.Job[:]), int(page.Rank), int(page.OpenerPID), int(page.OpenerFD))
	if err != nil {
		return nil, err
	}
	return &inLink{src: src, mem: mem, ring: newRing(mem.Mem[linkHead:])}, nil
}

// Drained implements fabric.Drainer: the link is empty. What a process that has ended has announced and
// nobody had opened is lost.
func (l *Links) Drained(peer int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.in[peer]
	return in == nil || in.ring.empty()
}

// Forget unmaps the links of a process, which has ended. No thread may poll, or use the endpoint.
func (l *Links) Forget(peer int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.out[peer]; o != nil {
		o.look()
		delete(l.out, peer)
		_ = o.mem.Close()
	}
	if in := l.in[peer]; in != nil {
		delete(l.in, peer)
		l.polled = nil
		for _, other := range l.in {
			l.polled = append(l.polled, other)
		}
		_ = in.mem.Close()
	}
}

// Close implements fabric.Transport. What has been sent stays readable for those that have opened the links.
func (l *Links) Close() error { return nil }
