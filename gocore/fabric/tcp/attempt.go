package tcp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/handshake"
	"gormapy/gocore/seal"
)

const (
	maxPending    = 64
	pendingTime   = 5 * time.Second
	acceptBatch   = 64
	cardPause     = 5 * time.Millisecond   // until a peer's card is looked up again
	firstPause    = 5 * time.Millisecond   // after the first failed attempt
	longestPause  = 500 * time.Millisecond // the pause doubles up to here
	yieldPause    = 200 * time.Millisecond // for the peer's attempt to arrive
	acceptBackoff = 100 * time.Millisecond
	giveUp        = 30 * time.Second
	// staggerTime is the pause between the attempts at two addresses of a peer.
	staggerTime = 250 * time.Millisecond
	// answerTime is how long an attempt may take if the peer has several addresses: many round
	// trips, even if segments are lost.
	answerTime = 3 * time.Second
)

// attempt is a connection before it belongs to a pair.
type attempt struct {
	id         int32
	fd         int
	hs         *handshake.Exchange // of an own attempt, once connect(2) has completed
	peer       int                 // its rank, -1 until an accepted connection has proved it
	lane       int
	mine       bool      // this rank initiated it
	connecting bool      // connect(2) has not completed
	waiting    time.Time // since when the peer owes an answer
	where      netip.AddrPort
	until      time.Time // deadline; zero: none
}

// All methods of Transport in this file run under t.mu.

// seek schedules the next attempt to p's peer after pause.
func (t *Transport) seek(p *pair, pause time.Duration) {
	p.due = time.Now().Add(pause)
	t.seeking[p.id()] = p
}

// of returns the lane that an attempt is for.
func (t *Transport) of(a *attempt) *pair { return t.pairs[a.peer].lanes[a.lane] }

// setAlarm sets the timer to the next deadline.
func (t *Transport) setAlarm() {
	var next time.Time
	earlier := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, p := range t.seeking {
		earlier(p.due)
	}
	if len(t.pending) > 0 {
		earlier(t.pending[0].until)
	}
	if !t.acceptAfter.IsZero() {
		earlier(t.acceptAfter)
	}
	for _, a := range t.attempts {
		if a.mine && !a.until.IsZero() {
			earlier(a.until)
		}
	}
	for _, at := range t.closing {
		earlier(at)
	}
	var at unix.ItimerSpec // zero: never
	if !next.IsZero() {
		at.Value = unix.NsecToTimespec(max(1, time.Until(next).Nanoseconds()))
	}
	_ = unix.TimerfdSettime(t.timer, 0, &at, nil)
}

// runDue handles all deadlines that have passed by now.
func (t *Transport) runDue(now time.Time) int {
	moved := 0
	for _, p := range t.seeking {
		if !p.due.After(now) {
			delete(t.seeking, p.id())
			moved += t.begin(p)
		}
	}
	for len(t.pending) > 0 && !t.pending[0].until.After(now) {
		moved += t.evict(t.pending[0])
	}
	for _, a := range t.attempts {
		if a.mine && !a.until.IsZero() && !a.until.After(now) {
			moved += t.lose(a, unix.ETIMEDOUT)
		}
	}
	for p, at := range t.closing {
		if !at.After(now) {
			p.mu.Lock()
			p.endAll(p.reason)
			p.mu.Unlock()
			t.ended = append(t.ended, ending{p.peer, p.reason})
			moved++
		}
	}
	if !t.acceptAfter.IsZero() && !t.acceptAfter.After(now) {
		t.acceptAfter = time.Time{}
		t.rewatch(t.listener, unix.EPOLLIN, forListener, 0)
	}
	t.setAlarm()
	return moved
}

// evict drops a pending connection unless bytes that it has sent in the meantime
// complete a message of its handshake.
func (t *Transport) evict(a *attempt) int {
	before := a.hs.Steps()
	moved := t.advance(a)
	if t.attempts[a.id] == a && a.hs.Steps() == before {
		t.drop(a)
	} else if t.attempts[a.id] == a {
		// Its hello has arrived: for this, once, it gets more time, at the end of the
		// queue.
		t.pending = append(slices.DeleteFunc(t.pending, func(s *attempt) bool { return s == a }), a)
		a.until = time.Now().Add(t.patience)
	}
	return moved
}

// begin starts an attempt at the next address of p's peer. The card's addresses make a round:
// an attempt at each of them, one pause after the other, or as soon as one has failed.
func (t *Transport) begin(p *pair) int {
	card := t.dir.Card(p.peer)
	if card == nil {
		t.seek(p, cardPause)
		return 0
	}
	list, err := t.where(p)
	if err != nil {
		return t.fail(p, "no address", err.Error(), false)
	}
	if p.address == 0 {
		p.refused = true
	}
	where := list[p.address]
	if p.address++; p.address < len(list) {
		t.seek(p, t.stagger)
	}
	fd, err := socket(where.Addr())
	if err != nil { // also if this host has no IPv6
		return t.failed(p, where, err)
	}
	if err := unix.Connect(fd, sockaddr(where)); err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return t.failed(p, where, err)
	}
	t.lastID++
	a := &attempt{id: t.lastID, fd: fd, peer: p.peer, lane: p.lane, mine: true, connecting: true, where: where}
	if len(list) > 1 {
		a.until = time.Now().Add(answerTime)
	}
	if err := t.watch(fd, unix.EPOLLOUT, forAttempt, a.id); err != nil {
		_ = unix.Close(fd)
		return t.failed(p, where, err)
	}
	t.attempts[a.id] = a
	p.own = append(p.own, a)
	p.set(trying)
	return 0
}

// failed handles the failure of an attempt at an address of p's peer. When no attempt of the
// round is left it gives up (nobody listens at any address) or has the round repeated later.
func (t *Transport) failed(p *pair, where netip.AddrPort, err error) int {
	p.refused = p.refused && errors.Is(err, unix.ECONNREFUSED)
	list, bad := t.where(p)
	switch {
	case bad == nil && p.address < len(list):
		if len(p.own) == 0 {
			p.set(seeking)
		}
		t.seek(p, 0)
		return 0
	case len(p.own) > 0:
		return 0
	case bad == nil && p.refused:
		return t.fail(p, statusOf(err), fmt.Sprintf("nobody listens at %s any more", addressList(list)), true)
	}
	return t.again(p, fmt.Errorf("%v: %w", where, err))
}

// addressList names addresses with one port.
func addressList(list []netip.AddrPort) string {
	s := list[0].String()
	for _, a := range list[1:] {
		s += " or " + a.String()
	}
	return s
}

// again schedules the repetition of a round that has failed, or gives up after giveUp.
func (t *Transport) again(p *pair, err error) int {
	now := time.Now()
	p.address = 0
	if p.tries == 0 {
		p.failing = now
	}
	if now.Sub(p.failing) > t.giveUp {
		return t.fail(p, statusOf(err), fmt.Sprintf("%d attempts in %v; does it belong to another job?", p.tries, now.Sub(p.failing).Round(time.Millisecond)), false)
	}
	p.set(seeking)
	t.seek(p, min(longestPause, firstPause<<min(p.tries, 10)))
	p.tries++
	return 0
}

// fail gives up the connection to p's peer.
func (t *Transport) fail(p *pair, status, detail string, gone bool) int {
	if p.lane > 0 {
		return t.abandon(p)
	}
	err := error(&fabric.OpError{Op: "connect", Peer: p.peer, Status: status, Detail: detail})
	if gone {
		err = fmt.Errorf("%w: %w", fabric.ErrPeerGone, err)
	}
	t.stopSeeking(p)
	p.mu.Lock()
	p.endAll(err)
	p.mu.Unlock()
	t.ended = append(t.ended, ending{p.peer, err})
	return 1
}

// stopSeeking ends the attempts at p's peer.
func (t *Transport) stopSeeking(p *pair) {
	delete(t.seeking, p.id())
	for len(p.own) > 0 {
		t.drop(p.own[0])
	}
	p.address = 0
}

// accept accepts new connections.
func (t *Transport) accept() int {
	moved := 0
	for range acceptBatch {
		fd, from, err := unix.Accept4(t.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			t.acceptAfter = time.Now().Add(acceptBackoff)
			t.rewatch(t.listener, 0, forListener, 0)
			t.setAlarm()
			return moved
		case unix.EINTR, unix.ECONNABORTED:
			continue
		default:
			return moved
		}
		moved += t.makeRoom()
		tune(fd, t.options.Patience)
		t.lastID++
		a := &attempt{id: t.lastID, fd: fd, hs: t.id.protocol().Accept(t.id.find), peer: -1, where: addrPort(from), until: time.Now().Add(t.patience)}
		if len(t.pending) >= maxPending || t.watch(fd, unix.EPOLLIN, forAttempt, a.id) != nil {
			_ = unix.Close(fd)
			continue
		}
		t.attempts[a.id] = a
		t.pending = append(t.pending, a)
		if len(t.pending) == 1 {
			t.setAlarm()
		}
		moved += t.advance(a) // its hello may be here
	}
	return moved
}

// makeRoom evicts a pending connection if there are maxPending of them: the oldest that
// has not sent a valid hello, or else the oldest. A hello can be repeated by anybody who
// has seen it, and a rank that is evicted calls again.
func (t *Transport) makeRoom() int {
	if len(t.pending) < maxPending {
		return 0
	}
	for _, a := range t.pending {
		if a.hs.Steps() == 0 {
			return t.evict(a)
		}
	}
	return t.evict(t.pending[0])
}

// forget removes a from the transport's tables, without closing its socket.
func (t *Transport) forget(a *attempt) {
	delete(t.attempts, a.id)
	if i := slices.Index(t.pending, a); i >= 0 {
		t.pending = slices.Delete(t.pending, i, i+1)
	}
	if a.mine {
		p := t.of(a)
		p.own = slices.DeleteFunc(p.own, func(o *attempt) bool { return o == a })
	}
}

func (t *Transport) drop(a *attempt) {
	t.forget(a)
	t.release(a.fd)
}

// advance continues an attempt as far as possible without waiting.
func (t *Transport) advance(a *attempt) int {
	if a.connecting {
		return t.connected(a)
	}
	for {
		if moved, whole := t.hear(a); !whole {
			return moved
		}
		switch {
		case !a.mine:
			return t.judge(a)
		case a.hs.Over():
			return t.judged(a)
		}
		a.until = time.Time{} // from now on the acceptor may use it
		if moved, ok := t.tell(a, a.hs.Say(t.id.ranks(a.peer, a.lane))); !ok {
			return moved
		}
	}
}

// hear takes what the other side of an attempt has sent. It returns true once that is
// all that this side waits for.
func (t *Transport) hear(a *attempt) (moved int, whole bool) {
	var buf [128]byte
	for a.hs.Missing() > 0 {
		n, errno := receive(a.fd, buf[:min(len(buf), a.hs.Missing())])
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return 0, false
		case errno != 0:
			return t.lose(a, errno), false
		case n == 0:
			return t.lose(a, errClosed), false
		}
		answer, err := a.hs.Take(buf[:n])
		if moved, ok := t.tell(a, answer); !ok {
			return moved, false
		}
		if err != nil {
			return t.deny(a, sentence(err)), false
		}
	}
	return 0, true
}

// tell sends a message of the handshake. It returns false if the connection is lost.
func (t *Transport) tell(a *attempt, m []byte) (moved int, ok bool) {
	if len(m) == 0 {
		return 0, true
	}
	// The socket's buffer is empty: it takes these few bytes, unless it is dead.
	if n, errno := send(a.fd, m); n != len(m) {
		return t.lose(a, errno), false
	}
	return 0, true
}

var errClosed = errors.New("closed by the peer")

// connected handles the end of connect(2): it sends the hello. The key in it is not made before, because
// most addresses of a card may lead nowhere.
func (t *Transport) connected(a *attempt) int {
	p := t.of(a)
	if err := connectError(a.fd); err != nil {
		t.drop(a)
		moved := t.failed(p, a.where, err)
		t.setAlarm()
		return moved
	}
	if _, err := unix.Getpeername(a.fd); err != nil {
		return 0 // not yet
	}
	a.connecting, a.waiting = false, time.Now()
	tune(a.fd, t.options.Patience)
	var hello []byte
	if a.hs, hello = t.id.protocol().Initiate(t.id.secret); len(hello) == 0 {
		_, err := a.hs.Take(nil)
		return t.deny(a, err)
	}
	if moved, ok := t.tell(a, hello); !ok {
		return moved
	}
	t.rewatch(a.fd, unix.EPOLLIN, forAttempt, a.id)
	return 0
}

// lose handles the loss of an attempt's connection. An own attempt is repeated. The time
// in which a peer that computes did not answer is not time in which attempts failed.
func (t *Transport) lose(a *attempt, err error) int {
	t.drop(a)
	if !a.mine {
		return 0
	}
	p := t.of(a)
	switch {
	case a.waiting.IsZero():
	case err == unix.ETIMEDOUT: // the others of its round count neither: the peer may be stopped
		p.tries = 0
	default:
		p.failing = p.failing.Add(time.Since(a.waiting))
	}
	moved := t.failed(p, a.where, err)
	t.setAlarm()
	return moved
}

// deny ends an attempt whose other side failed the handshake: no rank of this job answers
// at the address. If the attempt is an own one and the peer has no other address, the pair is
// broken.
func (t *Transport) deny(a *attempt, err error) int {
	t.drop(a)
	if !a.mine {
		return 0
	}
	if list, bad := t.where(t.of(a)); bad == nil && len(list) > 1 {
		moved := t.failed(t.of(a), a.where, err)
		t.setAlarm()
		return moved
	}
	return t.fail(t.of(a), "handshake failed", fmt.Sprintf("what answers at %v is not this rank: %v", a.where, err), false)
}

// judge decides whether an accepted connection whose initiator has proved its
// identity is used, and sends the verdict.
func (t *Transport) judge(a *attempt) int {
	peer, lane, guard, err := t.id.caller(a.hs.Body())
	if err != nil {
		return t.deny(a, err)
	}
	a.peer, a.lane = peer, lane
	first := &t.pairs[peer]
	if lane > 0 && (first.state != open || first.ending) {
		t.drop(a)
		return 0
	}
	first.mu.Lock()
	p := t.laneTo(peer, lane)
	first.mu.Unlock()
	if p.state == open || p.state == broken {
		t.drop(a)
		return 0
	}
	if guard != t.id.guard {
		if _, ok := t.tell(a, a.hs.Say([]byte{verdictGuard, byte(t.id.guard)})); ok {
			t.drop(a)
		}
		return t.unlike(p, guard)
	}
	use := p.state != trying || t.id.rank > peer
	if moved, ok := t.tell(a, a.hs.Say(t.id.verdict(use))); !ok {
		return moved
	}
	if !use {
		t.drop(a)
		return 0
	}
	return t.adopt(p, a)
}

// judged handles the verdict on an own attempt.
func (t *Transport) judged(a *attempt) int {
	p := t.of(a)
	what, guard, err := decided(a.hs.Body())
	switch {
	case err != nil:
		return t.deny(a, err)
	case what == verdictGuard, guard != t.id.guard: // the acceptor compares, too; this end does not rely on it
		return t.unlike(p, guard)
	case what == verdictUse:
		return t.adopt(p, a)
	}
	t.stopSeeking(p)
	p.set(seeking)
	t.seek(p, yieldPause)
	t.setAlarm()
	return 0
}

// unlike gives up the connection to a peer that has another guard than this rank.
func (t *Transport) unlike(p *pair, theirs Guard) int {
	return t.fail(p, "handshake failed", fmt.Sprintf("what rank %d sends is %v, what this rank sends is %v: all ranks of a job need the same %s and %s",
		p.peer, theirs, t.id.guard, TLS.Name, MAC.Name), false)
}

// adopt makes an attempt's connection the one of p.
func (t *Transport) adopt(p *pair, a *attempt) int {
	var out, in *seal.Way
	if t.id.guard != Clear {
		var err error
		if out, in, err = seal.Ways(a.hs); err != nil {
			return t.deny(a, err)
		}
	}
	t.forget(a)
	t.stopSeeking(p)
	// Under p.mu, since a thread that sends once p is open may request EPOLLOUT,
	// which this rewatch must not undo.
	p.mu.Lock()
	p.begin(a.fd)
	p.sealer, p.opener = out, in
	p.rewatch()
	if p.lane == 0 && t.options.Measure && t.options.Connections > 1 {
		p.meter.phase = starting
	}
	p.opened()
	if t.disconnecting && p.lane == 0 {
		p.goodbye()
	}
	p.mu.Unlock()
	if p.lane == 0 && a.mine && !t.options.Measure {
		t.widen(p)
	}
	return 1
}
