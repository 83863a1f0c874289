package soft

import (
	"errors"
	"fmt"
	"sync/atomic"

	"gormapy/gocore/rdmaapi/backend"
)

// maxAnswers bounds the memory that a peer can make this side use for answers.
const maxAnswers = 1 << 17

// inbound is the message that is being received.
type inbound struct {
	active bool
	kind   uint8
	flags  uint8
	total  uint64
	off    uint64
	remote uint64  // the address of a write
	memory *region // the region of a write
	recv   *backend.RecvWR
}

// request handles a frame of the peer's requester.
func (l *link) request(f frame) error {
	if l.skipping {
		if f.psn != l.expect || f.flags&flFirst == 0 {
			return l.discard(f.payload())
		}
		l.skipping = false
	}
	if f.psn != l.expect {
		return fmt.Errorf("the peer sent request %d where %d was next", f.psn, l.expect)
	}
	switch f.kind {
	case frRead:
		return l.serveRead(f)
	case frCompareSwap, frFetchAdd:
		return l.serveAtomic(f)
	}
	return l.serveMessage(f)
}

// target checks the access of a request to n bytes and returns their region, or nil
// and the reason.
func (l *link) target(f *frame, n uint64, want backend.Access) (r *region, text string) {
	r = l.qp.ctx.region(f.rkey)
	switch {
	case r == nil || r.pd != l.qp.pd:
		return nil, fmt.Sprintf("there is no region with rkey %#x in the peer's protection domain", f.rkey)
	case !r.contains(f.remote, n):
		return nil, fmt.Sprintf("%d bytes at %#x are outside of the region of %d bytes at %#x", n, f.remote, r.n, r.addr)
	case r.access&want == 0:
		return nil, fmt.Sprintf("the region does not allow it: its access is %v, %v is needed", r.access, want)
	}
	return r, ""
}

func (l *link) serveMessage(f frame) error {
	q, in := l.qp, &l.in
	if f.flags&flFirst != 0 {
		if in.active {
			return errors.New("the peer began a message within another one")
		}
		ok, err := l.begin(f)
		if err != nil || !ok {
			return err
		}
	} else if !in.active || in.kind != f.kind || in.total != f.total || in.flags&flImm != f.flags&flImm {
		return errors.New("the peer sent a piece of a message that it had not begun")
	}
	if f.kind == frSend && f.remote != in.off || f.kind == frWrite && f.remote != in.remote+in.off || f.n > in.total-in.off {
		return fmt.Errorf("the peer sent a piece of %d bytes that does not follow", f.n)
	}
	if f.n > 0 {
		to := span{}
		if f.kind == frWrite {
			to = in.memory.span(f.remote, f.n)
		} else {
			local, _ := in.recv.Region.(*region)
			to = span{local, in.recv.Local, in.recv.N}.at(int(in.off), int(f.n))
		}
		gone, err := l.take(f, to)
		if unreachable := f.flags&flByAddr != 0 && err != nil && err != errDead; unreachable { //nolint:errorlint // errDead is never wrapped
			return l.deny(f.psn, backend.LocProtErr, fmt.Sprintf("the peer could not read the memory that was to be sent: %v", err))
		}
		if err != nil {
			return err
		}
		if gone && f.kind == frWrite {
			return l.deny(f.psn, backend.RemAccessErr, "the region was deregistered while it was written to")
		}
		if gone {
			q.received(l, backend.Completion{Status: backend.LocProtErr, Detail: "the region of the receive is not registered any more"})
			return l.deny(f.psn, backend.RemOpErr, "the memory of the receive is not registered any more")
		}
	}
	if in.off += f.n; f.flags&flLast == 0 {
		return nil
	}
	if in.off != in.total {
		return fmt.Errorf("the peer sent %d of the %d bytes of a message", in.off, in.total)
	}
	l.ackDue = true
	if in.recv != nil && q.received(l, backend.Completion{N: int(in.total), HasImm: f.flags&flImm != 0, Imm: f.imm, Write: f.kind == frWrite}) {
		l.ackDue, l.ackQueued = false, true
	}
	*in = inbound{}
	l.expect++
	return nil
}

// begin checks a message and takes a receive for it if it needs one. ok is false if
// the message was refused or discarded.
func (l *link) begin(f frame) (ok bool, err error) {
	in := inbound{active: true, kind: f.kind, flags: f.flags, total: f.total, remote: f.remote}
	if f.kind == frWrite && f.total > 0 {
		r, text := l.target(&f, f.total, backend.RemoteWrite)
		if r == nil {
			return false, l.deny(f.psn, backend.RemAccessErr, text)
		}
		in.memory = r
	}
	if f.kind == frSend || f.flags&flImm != 0 {
		if in.recv = l.qp.takeReceive(l, f.psn); in.recv == nil {
			l.skipping = true
			l.ackDue = false
			l.pump()
			return false, l.discard(f.payload())
		}
	}
	if f.kind == frSend && f.total > uint64(in.recv.N) {
		text := fmt.Sprintf("a message of %d bytes, a receive of %d", f.total, in.recv.N)
		l.qp.received(l, backend.Completion{Status: backend.LocLenErr, Detail: text})
		return false, l.deny(f.psn, backend.RemInvReqErr, text)
	}
	l.in = in
	return true, nil
}

// take moves the payload of a frame to memory.
func (l *link) take(f frame, to span) (gone bool, err error) {
	if f.flags&flByAddr != 0 {
		return l.pull(to, f.local)
	}
	return l.receive(to)
}

func (l *link) serveRead(f frame) error {
	if f.flags&(flFirst|flLast) != flFirst|flLast || l.in.active {
		return errors.New("the peer sent a read in pieces")
	}
	a := answer{frame: frame{kind: frData, psn: f.psn}}
	if f.total > 0 {
		r, text := l.target(&f, f.total, backend.RemoteRead)
		if r == nil {
			return l.deny(f.psn, backend.RemAccessErr, text)
		}
		a.read = r.span(f.remote, f.total)
	}
	if f.flags&flByAddr != 0 {
		gone, err := l.push(a.read, f.local)
		switch {
		case err == errDead: //nolint:errorlint // errDead is never wrapped
			return err
		case err != nil:
			return l.deny(f.psn, backend.LocProtErr, fmt.Sprintf("the peer could not write the memory that was to be read to: %v", err))
		case gone:
			return l.deny(f.psn, backend.RemAccessErr, "the region was deregistered while it was read")
		}
		a.flags, a.read = flByAddr|flLast, span{}
	}
	return l.reply(a)
}

func (l *link) serveAtomic(f frame) error {
	if f.flags&(flFirst|flLast) != flFirst|flLast || l.in.active {
		return errors.New("the peer sent an atomic in pieces")
	}
	r, text := l.target(&f, 8, backend.RemoteAtomic)
	if r == nil {
		return l.deny(f.psn, backend.RemAccessErr, text)
	}
	if f.remote%8 != 0 {
		return l.deny(f.psn, backend.RemInvReqErr, fmt.Sprintf("an atomic needs an address aligned to 8 bytes, not %#x", f.remote))
	}
	a := answer{frame: frame{kind: frFetched, psn: f.psn}}
	p := word(r.span(f.remote, 8))
	ok, alive := l.move(r, func() {
		if f.kind == frFetchAdd {
			a.operand = atomic.AddUint64(p, f.operand) - f.operand
			return
		}
		for {
			a.operand = atomic.LoadUint64(p)
			if a.operand != f.local || atomic.CompareAndSwapUint64(p, f.local, f.operand) {
				return
			}
		}
	})
	if !alive {
		return errDead
	}
	if !ok {
		return l.deny(f.psn, backend.RemAccessErr, "the region is not registered any more")
	}
	return l.reply(a)
}

// reply answers the expected request. The answer is also the ack of all before it.
func (l *link) reply(a answer) error {
	l.expect++
	l.ackDue = false
	if !l.qp.answer(l, a) {
		return fmt.Errorf("the peer takes no answers, and asks on: %d are waiting", maxAnswers)
	}
	return nil
}

// deny refuses a request with a nak. Both queue pairs are in the error state then.
func (l *link) deny(psn uint32, status backend.Status, text string) error {
	l.qp.mu.Lock()
	defer l.qp.mu.Unlock()
	l.qp.refuse(l, psn, status, text)
	return errDead
}

// refuse is deny with qp.mu held.
func (q *qp) refuse(l *link, psn uint32, status backend.Status, text string) {
	text = text[:min(len(text), maxText)]
	l.answers = append(l.answers, answer{frame: frame{kind: frNak, psn: psn, status: uint8(status)}, text: []byte(text)})
	if l == q.link || l == q.mirror {
		q.fail(backend.WRFlushErr, fmt.Sprintf("refused a request of the peer with %v: %s", status, text))
	}
	l.kill()
}

// answer queues an answer and sends it.
func (q *qp) answer(l *link, a answer) bool {
	q.mu.Lock()
	if l.closing {
		q.mu.Unlock()
		return true
	}
	full := len(l.answers) >= maxAnswers
	if !full {
		l.answers = append(l.answers, a)
	}
	q.mu.Unlock()
	l.pump()
	return !full
}

// takeReceive takes the next receive for a request. If there is none it queues an
// rnr under the same lock, so that the frame that announces a later receive follows
// the rnr.
func (q *qp) takeReceive(l *link, psn uint32) *backend.RecvWR {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rq) == 0 {
		if !l.closing {
			l.rnrSent = true
			l.answers = append(l.answers, answer{frame: frame{kind: frRNR, psn: psn}})
		}
		return nil
	}
	r := q.rq[0]
	q.rq = q.rq[1:]
	q.current = &r
	return q.current
}

// received completes the receive that was taken, and reports whether it was not flushed.
// If it has succeeded the ack is queued under the same lock, in place of one that was not
// sent yet: a program that closes the queue pair as soon as it sees the completion owes
// the ack, and so it is sent.
func (q *qp) received(l *link, c backend.Completion) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == nil || l != q.link && l != q.mirror {
		return false
	}
	if c.Status == backend.Success {
		ack := answer{frame: frame{kind: frAck, psn: l.expect}}
		if last := len(l.answers) - 1; last >= 0 && l.answers[last].kind == frAck {
			l.answers[last] = ack
		} else {
			l.answers = append(l.answers, ack)
		}
	}
	c.Cookie, c.Recv = q.current.Cookie, true
	q.current = nil
	q.recvCQ.push(c)
	return true
}
