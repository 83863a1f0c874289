package tcp

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
)

const (
	// MaxConnections is the largest number of connections between two ranks.
	MaxConnections = 8
	// triedConnections are used between two ranks if that was measured to help.
	triedConnections = 4
	// laneMin is the length of payloads from which frames use all lanes: a shorter one costs more by what it
	// waits for than it gains.
	laneMin = 16 << 10
	// maxUnsent is how much a lane beside others takes that is not sent yet.
	maxUnsent = 16 * piece
	// A sample of the meter is as long and as large as this, so that buffers count little.
	sampleTime  = 100 * time.Millisecond
	sampleBytes = 4 << 20
	// gainMin is how much faster several connections have to be to stay in use.
	gainMin = 1.25
	// openTime is how long the meter waits for connections that are being made.
	openTime = 5 * time.Second
	// pauseTime is how long there may be no room without the suspicion that the peer, and not the network, took nothing.
	pauseTime = 500 * time.Millisecond
)

// route is what the lanes to one peer share.
type route struct {
	mu        sync.Mutex
	failed    error                 // a send failed; messages of the peer may still be read
	leaving   bool                  // this rank has said goodbye
	left      bool                  // the peer has said goodbye; changed by the poller under mu
	outNumber uint32                // of the next frame that is sent
	lanes     [MaxConnections]*pair // by number; nil: there was no attempt
	using     []*pair               // those that long frames use in turn; nil: only lane 0
	turn      int                   // in using
	meter     meter
	ending    bool  // a lane has ended without a goodbye, or lane 0 has; what is on the others is still delivered
	over      bool  // the pair is broken
	reason    error // why the lane ended

	// Used by the poller only.
	inNumber uint32 // of the next frame that is delivered
}

// meter measures whether several connections carry more than one. It is under mu.
type meter struct {
	phase  phase
	since  time.Time     // since when no lane in use has room; zero: there is room
	acked  uint64        // bytes that the peer had acknowledged then
	bytes  uint64        // that it has acknowledged while there was no room, in this sample
	took   time.Duration // likewise
	single float64       // bytes a second of one connection
	asked  time.Time     // when more connections were asked for
}

// phase is what a meter does, see the package comment.
type phase uint8

const (
	unmeasured phase = iota // the number of connections is given
	starting                // one connection, whose window still grows
	measuring               // one connection
	opening                 // more connections are being made
	warming                 // several connections, whose windows still grow
	comparing               // several connections
	settled
)

// newPair makes a lane to a peer.
func (t *Transport) newPair(r *route, peer, lane int) *pair {
	return &pair{t: t, peer: peer, lane: lane, fd: -1, route: r}
}

// laneTo returns a lane to a peer, which it makes if there is none, under t.mu and the route's mu.
func (t *Transport) laneTo(peer, lane int) *pair {
	r := t.pairs[peer].route
	if r.lanes[lane] == nil {
		r.lanes[lane] = t.newPair(r, peer, lane)
	}
	return r.lanes[lane]
}

// id identifies a lane in the events of epoll; byID finds it.
func (p *pair) id() int32 { return int32(p.lane*len(p.t.pairs) + p.peer) }

func (t *Transport) byID(id int32) *pair {
	return t.pairs[int(id)%len(t.pairs)].lanes[int(id)/len(t.pairs)]
}

// eachLane calls do for each lane of the route that there is, lane 0 first.
func (r *route) eachLane(do func(p *pair)) {
	for _, p := range r.lanes {
		if p != nil {
			do(p)
		}
	}
}

// spread sends a long frame on the next lane that has room, under mu.
func (p *pair) spread(h *fabric.Header, payload []byte) error {
	for range p.using {
		lane := p.using[p.turn]
		p.turn = (p.turn + 1) % len(p.using)
		if lane.waiting() {
			lane.full = true
			continue
		}
		if err := lane.send(h, payload); err != fabric.ErrAgain {
			return err
		}
	}
	return fabric.ErrAgain
}

// widen has more lanes made, under t.mu. It does nothing for those that there are.
func (t *Transport) widen(p *pair) {
	if t.disconnecting {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := 1; k < t.options.Connections; k++ {
		if lane := t.laneTo(p.peer, k); lane.state == idle && p.state == open {
			lane.state = seeking
			t.seek(lane, 0)
		}
	}
	t.attention.Store(true)
	t.setAlarm()
}

// where returns the addresses at which attempts for a lane are made: those of the peer's card, and for other lanes
// than lane 0 that of lane 0 first.
func (t *Transport) where(p *pair) ([]netip.AddrPort, error) {
	list, err := decodeCard(t.dir.Card(p.peer))
	if err != nil || p.lane == 0 {
		return list, err
	}
	first := p.lanes[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	if first.state != open {
		return nil, fmt.Errorf("lane %d is made while lane 0 is not open", p.lane)
	}
	sa, err := unix.Getpeername(first.fd)
	if err != nil {
		return nil, fmt.Errorf("find the address of lane 0: %w", err)
	}
	found := netip.AddrPortFrom(addrPort(sa).Addr(), list[0].Port())
	return append([]netip.AddrPort{found}, slices.DeleteFunc(list, func(a netip.AddrPort) bool { return a == found })...), nil
}

// abandon ends the attempts for a lane that can't be made, under t.mu. The pair goes on without it.
func (t *Transport) abandon(p *pair) int {
	t.stopSeeking(p)
	p.set(idle)
	return 0
}

// opened takes a lane that has just been made into use if the number of connections is given, under mu.
func (p *pair) opened() {
	if p.meter.phase == unmeasured && p.t.options.Connections > 1 {
		list := p.openLanes()
		p.use(list[:min(len(list), p.t.options.Connections)])
	}
}

// several reports whether there has been an attempt for another lane than the first; for the poller.
func (r *route) several() bool {
	return slices.ContainsFunc(r.lanes[1:], func(p *pair) bool { return p != nil })
}

func (r *route) openLanes() (list []*pair) {
	r.eachLane(func(p *pair) {
		if p.state == open {
			list = append(list, p)
		}
	})
	return list
}

// lanesNote returns what is said of n connections beside the addresses of the first.
func lanesNote(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n-1)
}

// blocked notes that a long frame found no room in the lanes in use, under mu.
func (p *pair) blocked() {
	if m := &p.meter; m.phase != unmeasured && m.phase != settled && m.since.IsZero() {
		m.since, m.acked = time.Now(), p.acked()
	}
}

// acked returns how many bytes the peer has acknowledged on all lanes, under mu.
func (r *route) acked() (total uint64) {
	r.eachLane(func(p *pair) {
		if p.state == open {
			if info, err := unix.GetsockoptTCPInfo(p.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				total += info.Bytes_acked
			}
		}
	})
	return total
}

// relieved notes that there is room again, under mu. It reports whether more lanes are to be made.
func (p *pair) relieved() (widen bool) {
	m := &p.meter
	if m.since.IsZero() {
		return false
	}
	now := time.Now()
	if acked := p.acked(); acked >= m.acked && now.Sub(m.since) < pauseTime { // else a lane has ended, or the peer was not polling
		m.bytes, m.took = m.bytes+acked-m.acked, m.took+now.Sub(m.since)
	}
	m.since = time.Time{}
	if m.phase == opening {
		return p.await(now)
	}
	if m.took < sampleTime || m.bytes < sampleBytes {
		return false
	}
	rate := float64(m.bytes) / m.took.Seconds()
	m.bytes, m.took = 0, 0
	switch m.phase {
	case starting:
		m.phase = measuring
	case measuring:
		m.phase, m.single, m.asked = opening, rate, now
		return true
	case warming:
		m.phase = comparing
	case comparing:
		m.phase = settled
		if rate < gainMin*m.single {
			p.use(nil)
		}
	}
	return false
}

// use makes long frames use a list of lanes, under mu. The kernel takes no more of a lane than it can send soon,
// so that each lane gets as many frames as it carries, also if another is slower.
func (p *pair) use(list []*pair) {
	p.using, p.turn = list, 0
	unsent := 0 // as much as there is room for
	if len(list) > 1 {
		unsent = maxUnsent
	}
	p.eachLane(func(q *pair) {
		if q.state == open {
			_ = unix.SetsockoptInt(q.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		}
	})
}

// await goes on from the phase opening when the lanes are there, or those that have been made in openTime.
func (p *pair) await(now time.Time) (widen bool) {
	m := &p.meter
	list := p.openLanes()
	if late := now.Sub(m.asked) > openTime; len(list) < p.t.options.Connections && !late {
		return false
	}
	m.bytes, m.took = 0, 0
	if m.phase = warming; len(list) < 2 {
		m.phase = settled
		return false
	}
	p.use(list)
	return false
}

// setEarly notes that the first frame in the buffer of p is not due, which it stays until resume.
func (t *Transport) setEarly(p *pair) {
	p.early = true
	t.earlies = append(t.earlies, p)
}

// resume reads lanes whose first frame has become due.
func (t *Transport) resume(sink fabric.Sink) int {
	moved := 0
	for range resumeMax {
		i := slices.IndexFunc(t.earlies, func(p *pair) bool { return p.first() == p.inNumber })
		if i < 0 {
			break
		}
		p := t.earlies[i]
		t.earlies = slices.Delete(t.earlies, i, i+1)
		p.early = false
		p.listen(true)
		moved += p.goOn(sink)
	}
	return moved
}

const (
	resumeMax = 64 // lanes that a poll resumes, so that other peers don't starve
	drainTime = 100 * time.Millisecond
	endTime   = 10 * time.Second
)

// first returns the number of the first frame in the buffer of an early lane.
func (p *pair) first() uint32 { return numberOf(p.in[p.r:]) }

// listen makes epoll report what arrives at a lane, or not: an early lane would be reported at every poll.
func (p *pair) listen(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf == on && p.state == open {
		p.deaf = !on
		p.rewatch()
	}
}

// leaveEarly takes a lane that ends off the list of early ones.
func (t *Transport) leaveEarly(p *pair) {
	t.earlies = slices.DeleteFunc(t.earlies, func(q *pair) bool { return q == p })
	p.early = false
}

// stuck reports whether lanes are early, and no lane is left on which the frame that is due can come.
func (p *pair) stuck() bool {
	some := false
	for _, q := range p.lanes {
		switch {
		case q == nil:
		case q.early && q.first() != p.inNumber:
			some = true
		case q.state == open || q.state == trying || q.state == seeking:
			return false
		}
	}
	return some
}

// endLater breaks p's pair, of which one lane has ended, when the others have ended, too, and within endTime:
// what the peer has sent may still be on its way. A peer that is alive ends them when it learns that this rank sends no more.
func (t *Transport) endLater(p *pair) {
	t.mu.Lock()
	p.mu.Lock()
	list := p.openLanes()
	if first := &t.pairs[p.peer]; len(list) > 0 && t.closing[first].IsZero() {
		for _, q := range list {
			q.shut()
		}
		t.closing[first] = time.Now().Add(endTime)
		t.setAlarm()
	}
	p.mu.Unlock()
	t.mu.Unlock()
	if len(list) == 0 {
		p.finishPair()
	}
}

// drain reads the other lanes of p's peer as far as their frames are due, for at most drainTime: the peer
// may be alive and send on.
func (p *pair) drain(sink fabric.Sink) int {
	total := 0
	for end := time.Now().Add(drainTime); time.Now().Before(end); {
		moved := p.t.resume(sink)
		p.eachLane(func(q *pair) { moved += q.receive(sink) })
		if moved == 0 {
			break
		}
		total += moved
	}
	return total
}
