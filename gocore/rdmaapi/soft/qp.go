package soft

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"gormapy/gocore/rdmaapi/backend"
)

// qp is a queue pair.
type qp struct {
	ctx    *context
	pd     *pd
	init   backend.QPInit
	sendCQ *cq
	recvCQ *cq
	num    uint32

	mu     sync.Mutex
	state  backend.State
	closed bool
	why    string // what brought it to the error state
	// In the error state, while the peer may still write here: what is posted
	// completes after what was posted before.
	reporting bool
	secret    []byte
	life      int // how often it was reset: what an earlier life began is stale
	peer      info
	conn      backend.Connection
	parked    *acceptedConn // let in, and waiting for Connect
	dialed    net.Conn      // waiting for the peer's Connect
	link      *link
	mirror    *link // the other end, of a queue pair connected to itself
	timer     *time.Timer

	// Requester: requests that are not complete, of which the first has number
	// base; those before next have been sent.
	sq       []*request
	base     uint32
	next     int
	stopped  bool // until a receive is posted for the first
	rnr      int  // how often that was so for this one
	rnrTimer *time.Timer

	// Responder.
	rq      []backend.RecvWR
	current *backend.RecvWR // taken for the message that is coming
}

// Num is described with backend.QP.
func (q *qp) Num() uint32 { return q.num }

// State is described with backend.QP.
func (q *qp) State() backend.State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Explain says what brought the queue pair to the error state.
func (q *qp) Explain() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.why
}

// Info is described with backend.QP.
func (q *qp) Info() ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return info{num: q.num, secret: q.secret, addresses: []string{q.ctx.listen.Addr().String()}}.bytes(), nil
}

// Connect is described with backend.QP.
func (q *qp) Connect(b []byte, c backend.Connection) error {
	remote, err := parseInfo(b)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != backend.StateInit {
		return &backend.Errno{Name: "EINVAL", Text: fmt.Sprintf("queue pair %d is in state %s; it can be connected in INIT, once", q.num, q.state)}
	}
	q.peer, q.conn, q.state = remote, c, backend.StateRTS
	life := q.life
	switch bytes.Compare(q.secret, remote.secret) {
	case -1:
		go q.dial(life, nil)
	case 0: // itself: one end is the requester's, the other one the responder's
		go q.dial(life, nil)
	default:
		if g := q.parked; g != nil {
			q.parked = nil
			go q.dial(life, g)
		}
	}
	return nil
}

// dial makes the link, by dialing or with a peer that has dialed.
func (q *qp) dial(life int, g *acceptedConn) {
	q.mu.Lock()
	secret, remote := q.secret, q.peer
	q.mu.Unlock()
	var l *link
	var err error
	if g != nil {
		if l, err = g.finish(q, secret, remote); err != nil {
			g.conn.Close()
		}
	} else {
		l, err = dial(q, secret, remote, func(c net.Conn) bool { return q.set(life, c) })
	}
	q.mu.Lock()
	if q.life != life || q.state != backend.StateRTS {
		q.mu.Unlock()
		if l != nil {
			l.conn.Close()
			l.process.close()
		}
		return
	}
	mirror := g != nil && bytes.Equal(secret, remote.secret)
	if g != nil && (errors.Is(err, errUnauthenticated) || q.link != nil && !mirror) { // the peer itself may still come, or has
		q.mu.Unlock()
		g.conn.Close()
		if l != nil {
			l.process.close()
		}
		return
	}
	q.dialed = nil
	switch {
	case err != nil:
		q.fail(backend.RetryExcErr, fmt.Sprintf("no connection: %v", err))
	default:
		if mirror {
			q.mirror = l
		} else {
			q.link, l.requester = l, true
		}
		if err := l.start(); err != nil {
			q.fail(backend.RetryExcErr, err.Error())
		}
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	q.mu.Unlock()
	if l != nil {
		l.pump()
	}
}

// set notes the socket that waits for the peer, so that it can be closed.
func (q *qp) set(life int, c net.Conn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life != life || q.state != backend.StateRTS {
		return false
	}
	q.dialed = c
	return true
}

// invited reports whether a guest has this queue pair's info.
func (q *qp) invited(g *acceptedConn) bool {
	q.mu.Lock()
	secret := q.secret
	q.mu.Unlock()
	want := proof(secret, "hello to", g.challenge, g.hello[:helloBody])
	return hmac.Equal(want, g.hello[helloBody:helloBody+sha256.Size])
}

// park keeps a guest until Connect is called.
func (q *qp) park(g *acceptedConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || q.state == backend.StateErr:
		g.conn.Close()
	case q.state != backend.StateRTS:
		if q.parked != nil {
			q.parked.conn.Close()
		}
		q.parked = g
	case q.peer.num == g.from() && (q.link == nil || bytes.Equal(q.secret, q.peer.secret) && q.mirror == nil):
		go q.dial(q.life, g)
	default:
		g.conn.Close()
	}
}

// PostSend is described with backend.QP.
func (q *qp) PostSend(wrs []backend.SendWR) (int, error) {
	q.mu.Lock()
	if q.closed || q.state != backend.StateRTS && q.state != backend.StateErr {
		q.mu.Unlock()
		return 0, &backend.Errno{Name: "EINVAL", Text: "the queue pair is not connected"}
	}
	for i := range wrs {
		q.sq = append(q.sq, newRequest(&wrs[i]))
	}
	if q.state == backend.StateErr && !q.reporting {
		q.flush(q.sq, nil)
		q.sq = nil
	}
	l := q.link
	if l == nil && q.state == backend.StateRTS && q.timer == nil {
		life := q.life
		q.timer = time.AfterFunc(q.conn.Timeout, func() { q.expire(life) })
	}
	q.mu.Unlock()
	if l != nil {
		l.pump()
	}
	return len(wrs), nil
}

// expire gives a peer up that has not connected.
func (q *qp) expire(life int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life == life && q.link == nil && len(q.sq) > 0 {
		q.fail(backend.RetryExcErr, fmt.Sprintf("the peer has not connected within %v", q.conn.Timeout))
	}
}

// PostRecv is described with backend.QP.
func (q *qp) PostRecv(wrs []backend.RecvWR) (int, error) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return 0, &backend.Errno{Name: "EINVAL", Text: "the queue pair is closed"}
	}
	if q.state == backend.StateErr && !q.reporting {
		q.flush(nil, wrs)
		q.mu.Unlock()
		return len(wrs), nil
	}
	q.rq = append(q.rq, wrs...)
	var tell []*link
	for _, l := range []*link{q.link, q.mirror} {
		if l != nil && l.asked {
			l.asked = false
			l.answers = append(l.answers, answer{frame: frame{kind: frReceive}})
			tell = append(tell, l)
		}
	}
	q.mu.Unlock()
	for _, l := range tell {
		l.pump()
	}
	return len(wrs), nil
}

// lost ends a link that broke, or that the peer has closed.
func (q *qp) lost(l *link, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l != q.link && l != q.mirror {
		l.kill() // of an earlier life
		return
	}
	status, text := backend.RetryExcErr, fmt.Sprintf("the connection broke: %v", err)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		text = "the peer has ended or has closed its queue pair"
	case errors.Is(err, errUsers):
		status, text = backend.LocProtErr, err.Error()
	}
	q.fail(status, text)
	l.kill()
}

// fail brings the queue pair to the error state: the first request completes with
// the status, all else is flushed. The caller holds mu.
func (q *qp) fail(status backend.Status, why string) {
	if q.state == backend.StateErr || q.closed {
		return
	}
	q.state = backend.StateErr
	q.why = why
	if q.current != nil {
		q.rq = append([]backend.RecvWR{*q.current}, q.rq...)
		q.current = nil
	}
	sends, recvs := q.sq, q.rq
	l, pinned := q.hangUp()
	report := func() {
		unpin(sends)
		for i, r := range sends {
			c := backend.Completion{Cookie: r.Cookie, Status: backend.WRFlushErr, Detail: why}
			if i == 0 {
				c.Status = status
			}
			q.sendCQ.push(c)
		}
		q.flush(nil, recvs)
	}
	if !pinned {
		report()
		return
	}
	life := q.life
	q.reporting = true
	go func() { // the peer may still be copying
		<-l.drained
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.life != life { // reset or closed: nothing of it completes
			unpin(sends)
			return
		}
		report()
		q.reporting = false
		q.flush(q.sq, q.rq)
		q.sq, q.rq = nil, nil
	}()
}

// flush completes what was not carried out. The caller holds mu.
func (q *qp) flush(sends []*request, recvs []backend.RecvWR) {
	for _, r := range sends {
		q.sendCQ.push(backend.Completion{Cookie: r.Cookie, Status: backend.WRFlushErr, Detail: q.why})
	}
	for i := range recvs {
		q.recvCQ.push(backend.Completion{Cookie: recvs[i].Cookie, Status: backend.WRFlushErr, Recv: true, Detail: q.why})
	}
}

// hangUp ends the link and all that waits, and empties the queues. pinned tells
// whether the peer may write here until link.drained. The caller holds mu.
func (q *qp) hangUp() (l *link, pinned bool) {
	l = q.link
	for _, r := range q.sq {
		if r.pinned {
			l.lent, pinned = true, true
		}
	}
	for _, end := range []*link{q.link, q.mirror} {
		if end != nil {
			end.kill()
		}
	}
	if q.parked != nil {
		q.parked.conn.Close()
	}
	if q.dialed != nil {
		q.dialed.Close()
	}
	for _, t := range []*time.Timer{q.timer, q.rnrTimer} {
		if t != nil {
			t.Stop()
		}
	}
	q.parked, q.dialed, q.timer, q.rnrTimer = nil, nil, nil, nil
	q.sq, q.rq, q.current, q.next, q.stopped, q.rnr, q.reporting = nil, nil, nil, 0, false, 0, false
	return l, pinned
}

// Reset is described with backend.QP.
func (q *qp) Reset() error {
	q.mu.Lock()
	requests := q.sq
	l, pinned := q.hangUp()
	q.link, q.mirror, q.base, q.why = nil, nil, 0, ""
	q.life++
	q.secret = random(secretBytes)
	if !q.closed {
		q.state = backend.StateInit
	}
	q.mu.Unlock()
	if pinned {
		release(l, requests)
	}
	return nil
}

// Close is described with backend.QP.
func (q *qp) Close() error {
	q.ctx.mu.Lock()
	if q.ctx.qps[q.num] == q {
		delete(q.ctx.qps, q.num)
	}
	q.ctx.mu.Unlock()
	q.mu.Lock()
	requests := q.sq
	l, pinned := q.hangUp()
	q.closed, q.state = true, backend.StateErr
	q.why = "the queue pair is closed"
	q.life++
	q.mu.Unlock()
	if pinned {
		release(l, requests)
	}
	return nil
}

// release waits, for a time, until no peer writes here any more.
func release(l *link, requests []*request) {
	select {
	case <-l.drained:
		unpin(requests)
	case <-time.After(drainTime): // the regions stay pinned until then
		go func() { <-l.drained; unpin(requests) }()
	}
}
