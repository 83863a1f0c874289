package tcp

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/seal"
	"gormapy/gocore/sys"
)

const (
	joinMax   = 2 << 10   // longest payload that is copied behind its header, which is cheaper than a vector
	queueMax  = 256 << 10 // bytes of short frames behind others in a queue
	closeTime = time.Second
)

// state is the state of a pair, see the package comment.
type state uint8

const (
	idle state = iota
	seeking
	trying
	open
	broken
)

// pair is a lane to one peer; lane 0 is its endpoint.
type pair struct {
	t    *Transport
	peer int
	lane int
	*route

	// Under mu.
	state     state
	fd        int
	err       error  // the reason, if broken
	queue     []byte // queue[sent:] is still to be sent
	sent      int
	held      bool // the queue is not sent yet though there may be room, see Held back in the package comment
	listed    bool // the transport's list of pairs that hold frames back has this one
	full      bool // a Send has returned ErrAgain since there was room
	deaf      bool // epoll does not report what arrives
	unwatched bool // nor anything else
	released  bool // the peer has answered this rank's goodbye
	out       [headBytes + joinMax + seal.Overhead]byte
	sealer    *seal.Way // nil: frames are sent in clear
	vector    [3]unix.Iovec
	msg       unix.Msghdr

	// Under t.mu.
	own     []*attempt
	due     time.Time
	tries   int
	failing time.Time // when the first of tries failed, plus the time in which the peer did not answer
	address int       // of the card, the next one to be tried in this round
	refused bool      // nobody listens at those that were tried in this round

	inbound
}

// set changes the state, under t.mu.
func (p *pair) set(s state) {
	p.mu.Lock()
	p.state = s
	p.mu.Unlock()
}

// begin takes a connection into use, under mu and t.mu.
func (p *pair) begin(fd int) {
	p.fd, p.state = fd, open
	p.inbound = inbound{in: make([]byte, inBytes)}
}

// endAll closes all connections to the peer, under mu and t.mu, by the poller.
func (p *pair) endAll(err error) {
	p.ending, p.over = true, true
	delete(p.t.closing, &p.t.pairs[p.peer])
	p.eachLane(func(q *pair) {
		if q.lane > 0 {
			p.t.stopSeeking(q)
		}
		if q.state != broken {
			q.end(err)
		}
		q.err = err
		p.t.cool(q)
	})
}

// end closes a lane's connection, likewise.
func (p *pair) end(err error) {
	if p.fd >= 0 {
		p.t.release(p.fd)
		p.fd = -1
	}
	if p.waiting() {
		p.t.queues.Add(-1)
	}
	p.state, p.err = broken, err
	p.queue, p.sent, p.full, p.held = nil, 0, false, false
	p.in, p.scratch, p.into = nil, nil, nil
	p.sealer, p.opener = nil, nil
	if p.early {
		p.t.leaveEarly(p)
	}
	p.using = slices.DeleteFunc(slices.Clone(p.using), func(q *pair) bool { return q == p })
	p.turn = 0
}

// waiting reports whether Poll has to look for room, under mu.
func (p *pair) waiting() bool { return p.full || p.sent < len(p.queue) && !p.held }

// Send implements fabric.Endpoint.
func (p *pair) Send(h *fabric.Header, payload []byte) error {
	if len(payload) > maxShort {
		return fmt.Errorf("send %d bytes to rank %d: a message has at most %d", len(payload), p.peer, maxShort)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != open || p.failed != nil {
		return p.notOpen()
	}
	if p.held {
		if len(payload) < laneMin {
			p.join(h, payload)
			return p.push()
		}
		if err := p.push(); err != nil {
			return err
		}
	}
	if len(payload) < laneMin {
		return p.send(h, payload)
	}
	err := p.sendLong(h, payload)
	if err == fabric.ErrAgain {
		p.blocked()
	}
	return err
}

func (p *pair) sendLong(h *fabric.Header, payload []byte) error {
	if len(p.using) > 1 {
		return p.spread(h, payload)
	}
	return p.send(h, payload)
}

// send sends a frame on this lane, which is open, under mu.
func (p *pair) send(h *fabric.Header, payload []byte) error {
	if p.waiting() {
		return p.enqueue(h, payload)
	}
	if p.sealer != nil {
		return p.sendSealed(h, payload)
	}
	total := frameBytes(len(payload))
	if len(payload) > joinMax {
		fabric.Probe(unsafe.Pointer(unsafe.SliceData(payload)), len(payload))
	}
	n, errno := p.write(h, payload, total)
	for times := 0; errno == unix.EFAULT && times < fabric.MostProbes; times++ {
		fabric.Probe(unsafe.Pointer(unsafe.SliceData(payload)), len(payload))
		n, errno = p.write(h, payload, total)
	}
	if n == total && errno == 0 {
		p.count()
		return nil
	}
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ENOMEM:
		if n = 0; len(payload) > joinMax {
			p.full = true
			p.wait()
			return fabric.ErrAgain
		}
	case unix.EFAULT: // since the probe
		return &sys.Fault{Addr: uintptr(unsafe.Pointer(unsafe.SliceData(payload)))}
	default:
		p.failed = p.lost("send", errno)
		return p.failed
	}
	if err := sys.Touch(func() { p.append(n, payload, total) }); err != nil {
		if n > 0 { // the peer has a part of the frame, and the rest can't be read
			p.failed = p.lost("send", err)
		}
		return err
	}
	p.count()
	p.wait()
	return nil
}

// count counts a frame that is sent or queued, under mu.
func (r *route) count() { r.outNumber = (r.outNumber + 1) & numberMask }

// write sends as much of a frame as the socket takes.
func (p *pair) write(h *fabric.Header, payload []byte, total int) (int, unix.Errno) {
	encodeHead(p.out[:], h, len(payload), p.outNumber)
	if len(payload) <= joinMax {
		clear(p.out[headBytes+copy(p.out[headBytes:], payload) : total])
		return send(p.fd, p.out[:total])
	}
	set(&p.vector[0], p.out[:headBytes])
	set(&p.vector[1], payload)
	set(&p.vector[2], zeros[:total-headBytes-len(payload)])
	p.msg.Iov = &p.vector[0]
	p.msg.SetIovlen(len(p.vector))
	n, errno := sendVector(p.fd, &p.msg)
	p.vector[1].Base = nil
	return n, errno
}

var zeros [8]byte

func set(v *unix.Iovec, b []byte) {
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
}

// append queues the rest of a frame of which skip bytes are sent and whose head is
// in p.out.
func (p *pair) append(skip int, payload []byte, total int) {
	whole, before := false, len(p.queue)
	defer func() {
		if !whole { // the payload faulted
			p.queue = p.queue[:before]
		}
	}()
	if skip < headBytes {
		p.queue = append(p.queue, p.out[skip:headBytes]...)
		skip = headBytes
	}
	if at := skip - headBytes; at < len(payload) {
		p.queue = append(p.queue, payload[at:]...)
		skip = headBytes + len(payload)
	}
	p.queue = append(p.queue, zeros[:total-skip]...)
	whole = true
}

// enqueue adds a frame to the queue, if it is short and there is room.
func (p *pair) enqueue(h *fabric.Header, payload []byte) error {
	if !p.joins(len(payload), frameBytes(len(payload))) {
		return fabric.ErrAgain
	}
	p.join(h, payload)
	return nil
}

// join adds a frame to the queue.
func (p *pair) join(h *fabric.Header, payload []byte) {
	if p.sealer != nil {
		n := len(p.queue)
		p.queue = slices.Grow(p.queue, sealedBytes(len(payload)))
		frame := p.pack(p.queue[n:cap(p.queue)], h, payload)
		p.queue = p.queue[:n+len(frame)]
		return
	}
	encodeHead(p.out[:], h, len(payload), p.outNumber)
	p.append(0, payload, frameBytes(len(payload)))
	p.count()
}

// joins reports whether a frame may join the queue, and makes room there.
func (p *pair) joins(payload, total int) bool {
	if p.full || payload > joinMax || len(p.queue)-p.sent+total > queueMax {
		p.full = true
		return false
	}
	if p.sent > queueMax {
		p.queue, p.sent = p.queue[:copy(p.queue, p.queue[p.sent:])], 0
	}
	return true
}

// wait makes Poll look for room.
func (p *pair) wait() {
	p.t.queues.Add(1)
	p.rewatch()
}

// rewatch has epoll report what p needs, under mu.
func (p *pair) rewatch() {
	events := uint32(0)
	if !p.deaf {
		events |= unix.EPOLLIN
	}
	if p.waiting() {
		events |= unix.EPOLLOUT
	}
	switch {
	case events == 0: // errors and ends would be reported nevertheless
		_ = unix.EpollCtl(p.t.epoll, unix.EPOLL_CTL_DEL, p.fd, nil)
		p.unwatched = true
	case p.unwatched:
		p.unwatched = p.t.watch(p.fd, events, forPair, p.id()) != nil
	default:
		p.t.rewatch(p.fd, events, forPair, p.id())
	}
}

// sendQueue sends as much of the queue as the socket takes. It returns 1 if it sent
// anything or if Poll need not look for room any more, else 0. Widen says that more lanes are to be made.
func (p *pair) sendQueue() (moved int, widen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != open || !p.waiting() {
		return 0, false
	}
	before := p.sent
	if !p.emptyQueue() {
		if p.sent > before {
			moved = 1
		}
		return moved, false
	}
	p.full = false
	p.t.queues.Add(-1)
	p.rewatch()
	return 1, p.relieved()
}

// emptyQueue sends the queue as far as there is room, under mu. It reports whether the queue is empty, as it is when
// the connection has failed.
func (p *pair) emptyQueue() bool {
	for p.sent < len(p.queue) && p.failed == nil {
		n, errno := send(p.fd, p.queue[p.sent:min(len(p.queue), p.sent+maxShort)])
		switch errno {
		case 0:
			p.sent += n
			continue
		case unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ENOMEM:
			return false
		}
		p.failed = p.lost("send", errno)
	}
	p.queue, p.sent = p.queue[:0], 0
	return true
}

// notOpen returns ErrAgain before the connection is made, else why it has ended.
func (p *pair) notOpen() error {
	switch {
	case p.failed != nil:
		return p.failed
	case p.state == broken:
		return p.err
	}
	return fabric.ErrAgain
}

// lost returns the error of a connection that has ended.
func (p *pair) lost(op string, err error) error {
	failure := &fabric.OpError{Op: op, Peer: p.peer, Status: statusOf(err), Detail: "TCP, " + ends(p.fd)}
	if errors.Is(err, seal.ErrForged) {
		failure.Cause = err
	}
	if errors.Is(err, errClosed) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("%w: %w", fabric.ErrPeerGone, failure)
	}
	return failure
}

// statusOf returns the name of an errno, such as ECONNRESET, or the text of
// another error.
func statusOf(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// A lane ends in three steps, under mu, each for all lanes before the next. flush sends the queue, as long as the peer
// takes it and until has not passed. shut shuts down the sending side. discard reads what has arrived: on
// unread data the kernel would reset the connection, and bytes in flight would be
// lost.
func (p *pair) flush(until time.Time) {
	for p.sent < len(p.queue) && p.failed == nil {
		n, errno := send(p.fd, p.queue[p.sent:])
		if errno == 0 {
			p.sent += n
			continue
		}
		left := time.Until(until)
		if errno != unix.EAGAIN && errno != unix.EINTR || left <= 0 {
			break
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLOUT}}, int(left.Milliseconds())+1)
	}
}

func (p *pair) shut() { _ = unix.Shutdown(p.fd, unix.SHUT_WR) }

func (p *pair) discard(until time.Time) {
	for {
		if n, errno := receive(p.fd, p.t.trash); n <= 0 || errno != 0 || time.Now().After(until) {
			break
		}
	}
}

// Put and the methods below implement fabric.Endpoint. They are not supported: the
// layers above emulate them.
func (p *pair) Put(unsafe.Pointer, fabric.RemoteKey, int, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

// Get implements fabric.Endpoint, see Put.
func (p *pair) Get(unsafe.Pointer, fabric.RemoteKey, int, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

// PutRuns implements fabric.Endpoint, see Put.
func (p *pair) PutRuns(unsafe.Pointer, uint64, []fabric.Run, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

// GetRuns implements fabric.Endpoint, see Put.
func (p *pair) GetRuns(unsafe.Pointer, uint64, []fabric.Run, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

// FetchAdd implements fabric.Endpoint, see Put.
func (p *pair) FetchAdd(unsafe.Pointer, fabric.RemoteKey, uint64, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

// CompareSwap implements fabric.Endpoint, see Put.
func (p *pair) CompareSwap(unsafe.Pointer, fabric.RemoteKey, uint64, uint64, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}
