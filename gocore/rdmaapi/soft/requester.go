package soft

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unsafe"

	"gormapy/gocore/rdmaapi/backend"
)

// request is a send work request that is not complete.
type request struct {
	backend.SendWR
	region *region
	data   []byte // the payload of an inline request
	sent   int    // bytes of the message that have been sent
	got    int    // bytes of a read that have arrived
	done   bool   // all data of a read or atomic has arrived
	pinned bool
	bad    string // why the local memory can't be used, "" if it can
}

func newRequest(wr *backend.SendWR) *request {
	r := &request{SendWR: *wr}
	if wr.Inline && wr.N > 0 {
		r.data = append([]byte(nil), unsafe.Slice((*byte)(wr.Local), wr.N)...)
	} else if wr.Region != nil {
		r.region, _ = wr.Region.(*region)
	}
	return r
}

func (r *request) span() span {
	if r.data != nil {
		return span{nil, unsafe.Pointer(&r.data[0]), len(r.data)}
	}
	return span{r.region, r.Local, r.N}
}

func (r *request) fetches() bool { return r.Op == backend.OpRead || r.Op.Atomic() }

// answer is an answer of the responder that is to be sent. A read is answered piece
// by piece.
type answer struct {
	frame
	text []byte
	read span
	off  int
}

// nextFrame returns the next frame to send on a link, the payload that follows it, and
// the request it belongs to, if any.
func (q *qp) nextFrame(l *link) (f frame, s span, from *request, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(l.answers) > 0 {
		f, s = l.nextAnswer()
		return f, s, nil, true
	}
	for l.requester && !l.closing && !q.stopped && q.next < len(q.sq) {
		r := q.sq[q.next]
		if r.bad != "" {
			if q.next == 0 {
				q.fail(backend.LocProtErr, r.bad)
			}
			break // the requests before it complete first
		}
		if r.Fence && r.sent == 0 && q.fetching() {
			break
		}
		f, s, ok = q.piece(l, r)
		if !ok {
			continue
		}
		if f.flags&flLast != 0 {
			q.next++
		}
		return f, s, r, true
	}
	return f, s, nil, false
}

func (l *link) nextAnswer() (f frame, s span) {
	a := &l.answers[0]
	f = a.frame
	more := false
	switch {
	case f.kind == frNak && len(a.text) > 0:
		f.n = uint64(len(a.text))
		s = span{nil, unsafe.Pointer(&a.text[0]), len(a.text)}
	case f.kind == frData && f.flags&flByAddr == 0:
		n := min(a.read.n-a.off, segment)
		f.n, f.remote = uint64(n), uint64(a.off)
		if n > 0 {
			s = a.read.at(a.off, n)
		}
		a.off += n
		if more = a.off < a.read.n; !more {
			f.flags |= flLast
		}
	}
	if !more {
		if l.answers = l.answers[1:]; len(l.answers) == 0 {
			l.answers = nil
		}
	}
	return f, s
}

// fetching reports whether a read or atomic before the next request is not complete.
func (q *qp) fetching() bool {
	for _, r := range q.sq[:q.next] {
		if r.fetches() {
			return true
		}
	}
	return false
}

// piece makes the next frame of a request.
func (q *qp) piece(l *link, r *request) (f frame, s span, ok bool) {
	f = frame{psn: q.base + uint32(q.next), rkey: uint32(r.RKey), imm: r.Imm, total: uint64(r.N), flags: flFirst | flLast, remote: r.Raddr}
	if r.Op.Imm() {
		f.flags |= flImm
	}
	if r.RKey > math.MaxUint32 {
		f.rkey = 0 // no region has this key
	}
	switch r.Op {
	case backend.OpRead:
		f.kind, f.n = frRead, f.total
		if l.reached && r.N > byAddrBytes {
			if !r.pinned && !r.region.pin() { // it may have been sent before
				r.bad = errDeregistered.Error()
				return f, s, false
			}
			r.pinned = true
			f.flags |= flByAddr
			f.local = uint64(uintptr(r.Local))
		}
	case backend.OpCompareSwap:
		f.kind, f.local, f.operand = frCompareSwap, r.Compare, r.Operand
		f.total = 0
	case backend.OpFetchAdd:
		f.kind, f.operand = frFetchAdd, r.Operand
		f.total = 0
	default:
		f.kind = frWrite
		if r.Op == backend.OpSend || r.Op == backend.OpSendImm {
			f.kind, f.remote = frSend, 0
		}
		if l.reached && r.N > byAddrBytes && r.data == nil {
			f.flags |= flByAddr
			f.n, f.local = f.total, uint64(uintptr(r.Local))
			break
		}
		n := min(r.N-r.sent, segment)
		f.n = uint64(n)
		f.remote += uint64(r.sent)
		if n > 0 {
			s = r.span().at(r.sent, n)
		}
		if r.sent > 0 {
			f.flags &^= flFirst
		}
		if r.sent += n; r.sent < r.N {
			f.flags &^= flLast
		}
	}
	return f, s, true
}

// unregistered handles a frame of nextFrame whose memory was deregistered since.
func (q *qp) unregistered(l *link, f frame, from *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if from == nil { // the frame answers a read of the peer
		if len(l.answers) > 0 && l.answers[0].kind == frData && l.answers[0].psn == f.psn {
			l.answers = l.answers[1:]
		}
		q.refuse(l, f.psn, backend.RemAccessErr, "the region was deregistered while it was read")
		return
	}
	from.bad = errDeregistered.Error()
	for i, r := range q.sq {
		if r == from {
			q.next = i
		}
	}
}

// answered handles an answer of the peer's responder.
func (l *link) answered(f frame) error {
	q := l.qp
	switch f.kind {
	case frAck:
		return q.finished(l, f.psn+1)
	case frData:
		return q.data(l, f)
	case frFetched:
		return q.fetched(l, f)
	case frNak:
		if err := l.need(int(f.n)); err != nil {
			return err
		}
		text := string(l.rbuf[l.r : l.r+int(f.n)])
		l.r += int(f.n)
		if err := q.finished(l, f.psn); err != nil {
			return err
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if l == q.link {
			q.fail(backend.Status(f.status), text)
		}
		return nil
	case frRNR:
		return q.repeatFrom(l, f.psn)
	}
	q.mu.Lock()
	again := l == q.link && q.stopped
	if again {
		q.stopped = false
		q.stopRNRTimer()
	}
	q.mu.Unlock()
	if again {
		l.pump()
	}
	return nil
}

// stopRNRTimer ends the pause before a request is repeated. The caller holds mu.
func (q *qp) stopRNRTimer() {
	if q.rnrTimer != nil {
		q.rnrTimer.Stop()
		q.rnrTimer = nil
	}
}

// finished completes all requests before number end.
func (q *qp) finished(l *link, end uint32) error {
	q.mu.Lock()
	if l != q.link || q.state != backend.StateRTS {
		q.mu.Unlock()
		return nil
	}
	n := int(int32(end - q.base))
	if n < 0 || n > q.next {
		q.mu.Unlock()
		return fmt.Errorf("the peer answered request %d, which was not asked", end-1)
	}
	for _, r := range q.sq[:n] {
		if r.fetches() && !r.done {
			q.mu.Unlock()
			return fmt.Errorf("the peer did not answer a %v", r.Op)
		}
		if r.Signaled {
			q.sendCQ.push(backend.Completion{Cookie: r.Cookie})
		}
	}
	unpin(q.sq[:n])
	clear(q.sq[:n])
	q.sq = q.sq[n:]
	q.base, q.next = end, q.next-n
	if n > 0 {
		q.rnr = 0
	}
	waiting := q.next < len(q.sq)
	q.mu.Unlock()
	if waiting { // for a fence, or to report a request whose memory is gone
		l.pump()
	}
	return nil
}

func unpin(requests []*request) {
	for _, r := range requests {
		if r.pinned {
			r.pinned = false
			r.region.unpin()
		}
	}
}

// find returns the request with number psn, which must be sent and be an atomic or a
// read, as given. It completes all requests before it.
func (q *qp) find(l *link, psn uint32, atomic bool) (*request, error) {
	if err := q.finished(l, psn); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l != q.link || q.state != backend.StateRTS {
		return nil, errDead
	}
	if q.next == 0 || q.base != psn || !q.sq[0].fetches() || q.sq[0].Op.Atomic() != atomic {
		return nil, fmt.Errorf("the peer sent data for request %d, which asks for none", psn)
	}
	return q.sq[0], nil
}

// data handles a piece of the data of a read.
func (q *qp) data(l *link, f frame) error {
	r, err := q.find(l, f.psn, false)
	if err != nil {
		return err
	}
	if f.flags&flByAddr != 0 {
		if !r.pinned || f.n != 0 {
			return fmt.Errorf("the peer says that it wrote where it was not asked to")
		}
		r.got = r.N
	} else {
		if f.remote != uint64(r.got) || f.n > uint64(r.N-r.got) {
			return fmt.Errorf("the peer sent %d bytes at %d of a read of %d", f.n, f.remote, r.N)
		}
		gone, err := l.receive(r.span().at(r.got, int(f.n)))
		if err != nil {
			return err
		}
		if gone {
			q.failFirst(l)
			return nil
		}
		r.got += int(f.n)
	}
	if f.flags&flLast == 0 {
		return nil
	}
	if r.got != r.N {
		return fmt.Errorf("the peer sent %d of the %d bytes of a read", r.got, r.N)
	}
	r.done = true
	return q.finished(l, f.psn+1)
}

// fetched handles the value that an atomic fetched.
func (q *qp) fetched(l *link, f frame) error {
	r, err := q.find(l, f.psn, true)
	if err != nil {
		return err
	}
	ok, alive := l.move(r.region, func() { binary.LittleEndian.PutUint64(r.span().bytes(), f.operand) })
	if !alive {
		return errDead
	}
	if !ok {
		q.failFirst(l)
		return nil
	}
	r.done = true
	return q.finished(l, f.psn+1)
}

// failFirst fails the queue pair because the memory of the first request is gone.
func (q *qp) failFirst(l *link) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l == q.link {
		q.fail(backend.LocProtErr, errDeregistered.Error())
	}
}

// repeatFrom handles an rnr: all requests from psn on are sent again, once a receive
// is posted or after RNRTimer.
func (q *qp) repeatFrom(l *link, psn uint32) error {
	if err := q.finished(l, psn); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l != q.link || q.state != backend.StateRTS {
		return nil
	}
	if len(q.sq) == 0 || q.next == 0 && q.sq[0].sent == 0 {
		return fmt.Errorf("the peer is not ready for request %d, which was not asked", psn)
	}
	if q.rnr++; q.conn.RNRRetry < 7 && q.rnr > q.conn.RNRRetry {
		q.fail(backend.RNRRetryExc, fmt.Sprintf("tried %d times, with %v between", q.rnr, q.conn.RNRTimer))
		return nil
	}
	for _, r := range q.sq[:min(q.next+1, len(q.sq))] {
		r.sent = 0
	}
	q.next, q.stopped = 0, true
	if q.conn.RNRRetry >= 7 {
		return nil // the peer sends a receive frame
	}
	q.stopRNRTimer()
	var timer *time.Timer
	timer = time.AfterFunc(q.conn.RNRTimer, func() {
		q.mu.Lock()
		again := q.rnrTimer == timer // otherwise it was stopped too late
		if again {
			q.stopped, q.rnrTimer = false, nil
		}
		q.mu.Unlock()
		if again {
			l.pump()
		}
	})
	q.rnrTimer = timer
	return nil
}
