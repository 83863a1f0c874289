package tcp

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/seal"
	"gormapy/gocore/sys"
)

const (
	inBytes   = 32 << 10 // receive buffer of a pair
	placeMin  = 4 << 10  // Place is called for longer payloads
	behindMax = 4 << 10  // bytes read behind a long payload: more of the next one would have to be copied
	maxSpare  = 4        // buffers that are kept for payloads without memory of Place
	readMax   = 1 << 20  // bytes read from one peer in a poll, so that no peer starves
)

// inbound is the receiving half of a pair. Only the poller uses it.
type inbound struct {
	opener *seal.Way // nil: frames arrive in clear

	in     []byte // in[r:w] has been read and not processed; r is a multiple of 8
	r, w   int
	head   fabric.Header
	misses int  // polls since bytes arrived
	early  bool // the first frame in the buffer is not due

	// The long payload that is being received, and its zeros. The buffer is empty
	// in the meantime.
	size    int            // without the zeros
	rest    int            // missing bytes, with the zeros; 0: no long payload is being received
	long    bool           // the last payload was long: the next one may be, too
	into    unsafe.Pointer // the memory that Place returned
	scratch []byte         // or memory of the transport
	dropped bool           // or neither: the payload is discarded
	torn    bool           // bytes of the payload have been lost
	iov     [3]unix.Iovec
	hdr     unix.Msghdr
}

// receive reads from p's peer and delivers messages. It returns their number, at
// least 1 if any bytes arrived.
func (p *pair) receive(sink fabric.Sink) int {
	moved := 0
	for total := 0; total < readMax && p.in != nil && !p.early; {
		asked, n, errno := p.read()
		switch {
		case errno == unix.EAGAIN:
			return moved
		case errno == unix.EINTR:
			continue
		case errno == unix.EFAULT && p.rest > 0 && p.into != nil:
			p.divert()
			continue
		case errno != 0:
			return moved + p.lose(sink, errno)
		case n == 0:
			return moved + p.lose(sink, errClosed)
		}
		total += n
		delivered, err := p.digest(sink, n)
		moved += max(1, delivered)
		if err != nil {
			return moved + p.lose(sink, err)
		}
		if n < asked { // the socket was empty; epoll reports what arrives later
			return moved
		}
	}
	return moved
}

// goOn processes what is in the buffer, whose first frame has become due, and reads on.
func (p *pair) goOn(sink fabric.Sink) int {
	delivered, err := p.digest(sink, 0)
	if err != nil {
		return delivered + p.lose(sink, err)
	}
	return delivered + p.receive(sink)
}

// isDue reports whether the first frame in the buffer is the next one to be delivered. If it is
// not, the lane is early.
func (p *pair) isDue() (bool, error) {
	number := p.first()
	if number == p.inNumber {
		return true, nil
	}
	if ahead := (number - p.inNumber) & numberMask; ahead > numberMask/2 || !p.several() {
		return false, fmt.Errorf("a frame has number %d, and %d is due", number, p.inNumber)
	}
	p.t.setEarly(p)
	if p.stuck() {
		return false, fmt.Errorf("a frame has number %d, %d is due, and no connection is left on which it can come", number, p.inNumber)
	}
	return false, nil
}

// arrived counts a frame that has been delivered.
func (r *route) arrived() { r.inNumber = (r.inNumber + 1) & numberMask }

// read reads once: into the buffer, or the rest of a long payload and at most
// behindMax bytes behind it.
func (p *pair) read() (asked, n int, errno unix.Errno) {
	if p.rest == 0 {
		to := p.in[p.w:]
		if p.long && len(to) > behindMax {
			to = to[:behindMax]
		}
		n, errno = receive(p.fd, to)
		return len(to), n, errno
	}
	pad := frameBytes(p.size) - headBytes - p.size
	data := max(0, p.rest-pad) // missing bytes of the payload
	var to []byte
	switch {
	case p.dropped || p.torn:
		to = p.t.trash[:min(data, len(p.t.trash))]
	case p.into != nil:
		to = unsafe.Slice((*byte)(unsafe.Add(p.into, p.size-data)), data)
	default:
		to = p.scratch[p.size-data : p.size]
	}
	zeros, behind := p.t.zeros[:0], p.in[:0]
	if len(to) == data {
		zeros, behind = p.t.zeros[:min(pad, p.rest)], p.in[:behindMax]
	}
	set(&p.iov[0], to)
	set(&p.iov[1], zeros)
	set(&p.iov[2], behind)
	p.hdr.Iov = &p.iov[0]
	p.hdr.SetIovlen(len(p.iov))
	n, errno = receiveVector(p.fd, &p.hdr)
	p.iov[0].Base = nil
	return len(to) + len(zeros) + len(behind), n, errno
}

// digest processes n bytes that were read, and delivers complete messages.
func (p *pair) digest(sink fabric.Sink, n int) (delivered int, err error) {
	if p.rest > n {
		p.rest -= n
		return 0, nil
	}
	if p.rest > 0 {
		p.r, p.w, p.rest = 0, n-p.rest, 0
		if p.opener != nil {
			err = p.openLong(sink)
		} else {
			p.deliverLong(sink)
		}
		if err != nil {
			return delivered, err
		}
		p.arrived()
		delivered++
	} else {
		p.w += n
	}
	if p.opener != nil {
		return p.digestSealed(sink, delivered)
	}
	for p.w-p.r >= headBytes {
		size, err := decodeHead(p.in[p.r:], &p.head)
		if err != nil {
			return delivered, err
		}
		if due, err := p.isDue(); !due {
			return delivered, err
		}
		total := frameBytes(size)
		switch {
		case p.head.Kind == fabric.KindNone:
			if err := p.control(size); err != nil {
				return delivered, err
			}
			p.r += total
		case size > placeMin:
			p.place(sink, size)
			if p.rest > 0 {
				p.r, p.w = 0, 0
				return delivered, nil
			}
			p.deliverLong(sink)
		case p.w-p.r < total:
			p.compact(total)
			return delivered, nil
		default:
			payload := p.in[p.r+headBytes:][:size:size]
			p.r, p.long = p.r+total, false
			sink.Deliver(p.peer, &p.head, payload)
		}
		p.arrived()
		delivered++
	}
	p.compact(sealedBytes(placeMin))
	return delivered, nil
}

// compact makes room in the buffer for the rest of an incomplete frame, which has up to need bytes.
func (p *pair) compact(need int) {
	switch {
	case p.r == p.w:
		p.r, p.w = 0, 0
	case len(p.in)-p.r < need:
		p.w = copy(p.in, p.in[p.r:p.w])
		p.r = 0
	}
}

// place calls Place for a long payload, and copies there the part of it that is in
// the buffer.
func (p *pair) place(sink fabric.Sink, size int) {
	body := p.in[p.r+headBytes : min(p.w, p.r+frameBytes(size))]
	p.r, p.long = p.r+headBytes+len(body), true
	p.size, p.rest, p.dropped, p.torn = size, frameBytes(size)-headBytes-len(body), false, false
	if p.into = sink.Place(p.peer, &p.head, size); p.into != nil {
		if sys.Touch(func() { copy(unsafe.Slice((*byte)(p.into), size), body) }) == nil {
			return
		}
	}
	p.into, p.scratch = nil, p.t.takeScratch()
	copy(p.scratch[:size], body)
}

// divert makes a long payload go to memory of the transport, because the memory that Place returned
// can't be written to. The sink meets the same fault when the payload is delivered, unless the memory
// is there again by then: so the payload is kept whole. If what has arrived can't be read, it is lost, and the sink
// gets a payload that faults.
func (p *pair) divert() {
	if !p.takeBack() {
		p.into, p.torn = nil, true
	}
}

// takeBack is divert with what has arrived. It reports whether that could be read.
func (p *pair) takeBack() bool {
	pad := frameBytes(p.size) - headBytes - p.size
	there, scratch := p.size-max(0, p.rest-pad), p.t.takeScratch()
	if sys.Touch(func() { copy(scratch, unsafe.Slice((*byte)(p.into), there)) }) != nil {
		p.t.giveScratch(scratch)
		return false
	}
	p.into, p.scratch = nil, scratch
	return true
}

// deliverLong delivers a complete long payload.
func (p *pair) deliverLong(sink fabric.Sink) {
	payload, scratch := []byte(nil), p.scratch
	switch {
	case p.dropped:
	case p.torn:
		payload = p.t.faulty[:p.size]
	case p.into != nil:
		payload = unsafe.Slice((*byte)(p.into), p.size)
	default:
		payload = scratch[:p.size]
	}
	p.into, p.scratch = nil, nil
	sink.Deliver(p.peer, &p.head, payload)
	if scratch != nil {
		p.t.giveScratch(scratch)
	}
}

// takeScratch returns memory for the longest payload. Each pair in the middle of a
// payload without memory of Place has one.
func (t *Transport) takeScratch() []byte {
	if n := len(t.spare); n > 0 {
		b := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return b
	}
	return make([]byte, sealedBytes(maxShort))
}

// giveScratch takes back what takeScratch gave. It keeps as much as a few pairs need in turn.
func (t *Transport) giveScratch(b []byte) {
	if len(t.spare) < maxSpare {
		t.spare = append(t.spare, b)
	}
}

// lose handles a connection that has ended, or an invalid frame: see Ends in the package comment.
func (p *pair) lose(sink fabric.Sink, err error) int {
	moved, whole := 1, p.endLane(err)
	if p.over {
		return moved
	}
	moved += p.drain(sink)
	switch {
	case p.over:
	case p.left && p.lane > 0 && !p.stuck() && !errors.Is(err, seal.ErrForged): // nothing is missing
	case whole && err == errClosed && !p.left && !p.stuck():
		p.t.endLater(p)
	default:
		p.finishPair()
	}
	return moved
}

// endLane ends the lane. It reports whether the end is between two messages.
func (p *pair) endLane(err error) (whole bool) {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	failure := p.lost("connection", err)
	whole = p.w == p.r && p.rest == 0
	switch {
	case errors.Is(err, seal.ErrForged):
	case !whole:
		failure = fmt.Errorf("%w, in the middle of a message", failure)
	case p.left && errors.Is(failure, fabric.ErrPeerGone):
		failure = fmt.Errorf("%w: rank %d has finalized", fabric.ErrDisconnected, p.peer)
	}
	if p.failed == nil && !p.left {
		p.failed = failure
	}
	if !p.ending || errors.Is(failure, seal.ErrForged) {
		p.reason = failure
	}
	p.ending = p.ending || !p.left || p.lane == 0
	p.end(failure)
	t.cool(p)
	return whole
}

// finishPair breaks the pair, of which a lane has ended.
func (p *pair) finishPair() {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endAll(p.reason)
	p.t.ended = append(p.t.ended, ending{p.peer, p.reason})
}
