package tcp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/seal"
)

const (
	maxShort = 256 << 10 // longest payload
	// maxEager: an announcement and its answer take longer than a second copy of so many bytes.
	maxEager = 128 << 10
	// ahead takes longer to receive than the receiver's answer to the announcement takes to arrive.
	ahead = 128 << 10
	// piece is short, so that little is copied if the socket takes only a part, and lanes take turns. Within a host a socket takes as much as
	// the copies allow, and each system call counts: pieces are as long as they can be.
	piece = 64 << 10
	// sealedPiece is opened in the receive buffer, while the sender seals the next one.
	sealedPiece = 28 << 10

	maxHot     = 2   // pairs that Poll reads without asking epoll first
	coolAfter  = 256 // polls without a message after which a pair is not hot any more
	epollEvery = 8   // polls of hot pairs until epoll is asked again
)

// Transport is the transport to the ranks of a job by TCP.
type Transport struct {
	dir      fabric.Directory
	options  Options
	id       *identity
	at       netip.AddrPort
	epoll    int
	timer    int // timerfd: expires at the next deadline
	listener int
	patience time.Duration // the time of a pending connection
	stagger  time.Duration // the pause between attempts at two addresses
	giveUp   time.Duration // the time in which attempts that fail are repeated
	linger   time.Duration // the time that Close takes at most
	pairs    []pair        // by rank

	// Used by the poller only.
	events  [64]unix.EpollEvent
	hot     []*pair // recently active; the last one the most recently
	skipped int     // polls since epoll was asked
	armed   bool    // a thread may sleep on FD: epoll is asked at every poll
	trash   []byte  // takes bytes that are dropped
	faulty  []byte  // faults: the payload of a message of which bytes are lost
	zeros   [8]byte // takes the zeros behind a payload
	spare   [][]byte
	earlies []*pair // lanes whose first frame is not due
	ended   []ending

	attention atomic.Bool  // an attempt is due at once
	queues    atomic.Int32 // pairs for which Poll looks for room, see pair.waiting
	holding   holding

	mu            sync.Mutex
	disconnecting bool
	attempts      map[int32]*attempt
	pending       []*attempt // accepted and not proved, in the order of their deadlines
	lastID        int32
	seeking       map[int32]*pair     // by id
	closing       map[*pair]time.Time // pairs of which a lane has ended, and when they break
	acceptAfter   time.Time           // accept back-off: no descriptors were left, nothing is accepted until then
}

// ending is a pair that has broken and for which Broken has not been called yet.
type ending struct {
	peer int
	err  error
}

var (
	_ fabric.Transport    = (*Transport)(nil)
	_ fabric.Sleeper      = (*Transport)(nil)
	_ fabric.Redirector   = (*Transport)(nil)
	_ fabric.Explainer    = (*Transport)(nil)
	_ fabric.Describer    = (*Transport)(nil)
	_ fabric.Disconnecter = (*Transport)(nil)
	_ fabric.Endpoint     = (*pair)(nil)
)

// The kinds of epoll events, in Pad. Fd has the pair's rank or the attempt's id.
const (
	forPair = iota
	forAttempt
	forListener
	forTimer
)

// New makes the transport of the rank that owns dir. It listens, and publishes the
// address.
func New(dir fabric.Directory, o Options) (*Transport, error) {
	list, err := addresses(o)
	if err != nil {
		return nil, err
	}
	if len(dir.Secret()) == 0 {
		return nil, errors.New("TCP needs a secret of the job to know its peers by")
	}
	if o.Guard >= guards {
		return nil, fmt.Errorf("there is no guard %d", o.Guard)
	}
	if o.Guard != Clear {
		if err := seal.Usable(); err != nil {
			return nil, fmt.Errorf("what this rank sends can't be %v: %w", o.Guard, err)
		}
	}
	t := &Transport{dir: dir, options: o, id: newIdentity(dir.Secret(), dir.Rank(), dir.Size()), epoll: -1, timer: -1, listener: -1, patience: pendingTime, stagger: staggerTime, giveUp: giveUp, linger: closeTime}
	t.id.guard = o.Guard
	t.pairs = make([]pair, dir.Size())
	for i := range t.pairs {
		r := &route{}
		t.pairs[i] = *t.newPair(r, i, 0)
		r.lanes[0] = &t.pairs[i]
	}
	t.attempts, t.seeking, t.closing = map[int32]*attempt{}, map[int32]*pair{}, map[*pair]time.Time{}
	t.trash = make([]byte, 64<<10)
	if err := t.open(list); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Transport) open(list []netip.Addr) (err error) {
	if t.faulty, err = unix.Mmap(-1, 0, maxShort, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return fmt.Errorf("reserve %d bytes of the address space: %w", maxShort, err)
	}
	if t.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		t.epoll = -1
		return fmt.Errorf("make an epoll descriptor: %w", err)
	}
	if t.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		t.timer = -1
		return fmt.Errorf("make a timer: %w", err)
	}
	if t.listener, t.at, err = listen(list); err != nil {
		return err
	}
	if err = t.watch(t.timer, unix.EPOLLIN, forTimer, 0); err != nil {
		return err
	}
	if err = t.watch(t.listener, unix.EPOLLIN, forListener, 0); err != nil {
		return err
	}
	where, err := published(t.at.Addr())
	if err != nil {
		return err
	}
	return t.dir.Publish(encodeCard(where, t.at.Port()))
}

// watch adds a descriptor to epoll; rewatch changes the events that are reported.
func (t *Transport) watch(fd int, events uint32, kind, id int32) error {
	if err := unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: id, Pad: kind}); err != nil {
		return fmt.Errorf("watch a socket: %w", err)
	}
	return nil
}

func (t *Transport) rewatch(fd int, events uint32, kind, id int32) {
	_ = unix.EpollCtl(t.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: id, Pad: kind}) // it is there
}

// release closes a socket that epoll watches. A forked child that has not called
// exec may still hold a copy, so the socket is first removed and shut down.
func (t *Transport) release(fd int) {
	_ = unix.EpollCtl(t.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	_ = unix.Close(fd)
}

// Name implements fabric.Transport.
func (t *Transport) Name() string { return "tcp" }

// Caps implements fabric.Transport.
func (t *Transport) Caps() fabric.Caps {
	caps := fabric.Caps{MaxShort: maxShort, MaxEager: maxEager, Ahead: ahead, Piece: piece, Announces: true, Ordered: true}
	switch {
	case t.id.guard != Clear:
		caps.Ahead, caps.Piece = sealedPiece, sealedPiece
	case t.dir.Hosts() == 1:
		caps.Piece = maxShort
	}
	return caps
}

// Refusal implements fabric.Explainer.
func (t *Transport) Refusal(int) string {
	return "TCP has no one-sided operations: the peer's progress engine serves them"
}

// Describe implements fabric.Describer.
func (t *Transport) Describe(peer int) string {
	if peer < 0 || peer >= len(t.pairs) {
		return ""
	}
	p := &t.pairs[peer]
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case open:
		return ends(p.fd) + lanesNote(len(p.openLanes())) + t.id.guard.note()
	case broken:
		return p.err.Error()
	}
	return fmt.Sprintf("listens at %v, not connected", t.at)
}

// Connect implements fabric.Transport.
func (t *Transport) Connect(peer int) (fabric.Endpoint, error) {
	if peer < 0 || peer >= len(t.pairs) || peer == t.id.rank {
		return nil, fmt.Errorf("connect to rank %d: there are ranks 0 to %d, and this is rank %d", peer, len(t.pairs)-1, t.id.rank)
	}
	p := &t.pairs[peer]
	t.mu.Lock()
	defer t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == idle {
		p.state = seeking
		t.seek(p, 0)
		t.attention.Store(true)
		t.setAlarm()
	}
	return p, nil
}

// Register implements fabric.Transport. There is nothing to do: only this process
// accesses its memory.
func (t *Transport) Register(p unsafe.Pointer, _ int) (fabric.Region, error) { return region{p}, nil }

type region struct{ p unsafe.Pointer }

func (r region) Key() fabric.RemoteKey { return fabric.RemoteKey{Addr: uint64(uintptr(r.p))} }
func (r region) Close() error          { return nil }

// FD implements fabric.Sleeper.
func (t *Transport) FD() int { return t.epoll }

// Arm implements fabric.Sleeper. Epoll is level-triggered, so the descriptor stays
// readable while there is work. Arm only makes each Poll ask epoll.
func (t *Transport) Arm() error {
	t.armed = true
	return nil
}

// Poll implements fabric.Transport. It reads sockets that were active lately
// without asking epoll first: a read costs as much as the question, and would
// follow it anyway.
func (t *Transport) Poll(sink fabric.Sink) int {
	defer t.pushHeld()
	n := 0
	for i := len(t.hot) - 1; i >= 0 && i < len(t.hot); i-- { // receiving may shorten it
		p := t.hot[i]
		if got := p.receive(sink); got > 0 {
			n, p.misses = n+got, 0
		} else if p.misses++; p.misses > coolAfter {
			t.cool(p)
		}
	}
	if t.skipped++; t.skipped >= epollEvery || len(t.hot) == 0 || t.armed || t.queues.Load() > 0 || t.attention.Load() {
		t.skipped = 0
		n += t.handleEvents(sink)
	}
	if len(t.earlies) > 0 {
		n += t.resume(sink)
	}
	if n > 0 {
		t.armed = false
	}
	if len(t.ended) > 0 {
		n += t.reportBroken(sink)
	}
	return n
}

// handleEvents handles what epoll reports, and attempts that are due at once.
func (t *Transport) handleEvents(sink fabric.Sink) int {
	moved := 0
	if t.attention.Swap(false) {
		t.mu.Lock()
		moved += t.runDue(time.Now())
		t.mu.Unlock()
	}
	for _, e := range t.events[:ready(t.epoll, t.events[:])] {
		if e.Pad != forPair {
			t.mu.Lock()
			moved += t.control(e)
			t.mu.Unlock()
			continue
		}
		p := t.byID(e.Fd)
		if e.Events&unix.EPOLLOUT != 0 {
			sent, widen := p.sendQueue()
			moved += sent
			if widen {
				t.mu.Lock()
				t.widen(p)
				t.mu.Unlock()
			}
		}
		switch {
		case e.Events&^unix.EPOLLOUT == 0:
			continue
		case p.early:
			p.listen(false)
			continue
		}
		if got := p.receive(sink); got > 0 {
			moved += got
			if t.warm(p) {
				t.skipped = epollEvery // other pairs may have become active, too
			}
		}
	}
	return moved
}

// control handles an event of the listener, the timer or an attempt, under t.mu.
func (t *Transport) control(e unix.EpollEvent) int {
	switch e.Pad {
	case forListener:
		return t.accept()
	case forTimer:
		var count [8]byte
		_, _ = unix.Read(t.timer, count[:])
		return t.runDue(time.Now())
	}
	if a := t.attempts[e.Fd]; a != nil {
		return t.advance(a)
	}
	return 0
}

// reportBroken calls Broken for the pairs that have broken.
func (t *Transport) reportBroken(sink fabric.Sink) int {
	n := len(t.ended)
	for len(t.ended) > 0 {
		e := t.ended[0]
		t.ended = t.ended[1:]
		sink.Broken(e.peer, e.err)
	}
	t.ended = nil
	return n
}

// warm adds p to the pairs that Poll reads first. It returns false if p is among
// them already or not open.
func (t *Transport) warm(p *pair) bool {
	if p.state != open || slices.Contains(t.hot, p) {
		return false
	}
	p.misses = 0
	if len(t.hot) == maxHot {
		t.hot = slices.Delete(t.hot, 0, 1)
	}
	t.hot = append(t.hot, p)
	return true
}

func (t *Transport) cool(p *pair) {
	if i := slices.Index(t.hot, p); i >= 0 {
		t.hot = slices.Delete(t.hot, i, i+1)
	}
}

// Divert implements fabric.Redirector.
func (t *Transport) Divert(mem unsafe.Pointer) (done bool) {
	for i := range t.pairs {
		t.pairs[i].eachLane(func(p *pair) {
			if mem != nil && p.into == mem && !done {
				done = p.takeBack()
			}
		})
	}
	return done
}

// Redirect implements fabric.Redirector.
func (t *Transport) Redirect(mem unsafe.Pointer) {
	for i := range t.pairs {
		t.pairs[i].eachLane(func(p *pair) {
			if mem != nil && p.into == mem {
				p.into, p.dropped = nil, true
			}
		})
	}
}

// Close implements fabric.Transport.
func (t *Transport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.attempts {
		t.drop(a)
	}
	t.seeking = map[int32]*pair{}
	until := time.Now().Add(t.linger)
	for i := range t.pairs {
		p := &t.pairs[i]
		p.mu.Lock()
		if p.state == open && !p.released {
			lanes := p.openLanes()
			for _, step := range []func(*pair){func(q *pair) { q.flush(until) }, (*pair).shut, func(q *pair) { q.discard(until) }} {
				for _, q := range lanes {
					step(q)
				}
			}
		}
		if !p.over {
			p.endAll(errors.New("the transport is closed"))
		}
		p.mu.Unlock()
	}
	t.hot, t.ended = nil, nil
	if t.faulty != nil {
		_ = unix.Munmap(t.faulty)
		t.faulty = nil
	}
	for _, fd := range []*int{&t.listener, &t.timer, &t.epoll} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
	return nil
}
