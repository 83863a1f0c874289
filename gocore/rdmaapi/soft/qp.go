package soft

import (
	"bytes"
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
	why    string // the cause of the error state
	// reporting: in the error state, while the peer may still write to this process.
	// What is posted meanwhile completes after what was posted before.
	reporting bool
	secret    []byte
	life      int // number of resets: whatever an earlier life has begun is stale
	peer      info
	conn      backend.Connection
	parked    *acceptedConn // waits for Connect
	dialed    net.Conn      // waits for the peer's Connect
	link      *link
	mirror    *link // the other end, of a queue pair connected to itself
	timer     *time.Timer

	// Requester: requests that are not complete. The first has number base; those
	// before next have been sent.
	sq       []*request
	base     uint32
	next     int
	stopped  bool // after an rnr: nothing is sent until it is time to repeat
	rnr      int  // number of rnrs since a request completed
	rnrTimer *time.Timer

	// Responder.
	rq      []backend.RecvWR
	current *backend.RecvWR // taken for the message that is being received
}

// Num implements backend.QP.
func (q *qp) Num() uint32 { return q.num }

// State implements backend.QP.
func (q *qp) State() backend.State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Explain returns the cause of the error state.
func (q *qp) Explain() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.why
}

// Info implements backend.QP.
func (q *qp) Info() ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return info{num: q.num, secret: q.secret, addresses: []string{q.ctx.listen.Addr().String()}}.bytes(), nil
}

// Connect implements backend.QP.
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
	case 0: // to itself: one end is the requester's, the other one the responder's
		go q.dial(life, nil)
	default:
		if ac := q.parked; ac != nil {
			q.parked = nil
			go q.dial(life, ac)
		}
	}
	return nil
}

// dial makes the link: it dials, or, if ac is not nil, uses this connection.
func (q *qp) dial(life int, ac *acceptedConn) {
	q.mu.Lock()
	secret, remote := q.secret, q.peer
	q.mu.Unlock()
	var l *link
	var err error
	if ac != nil {
		if l, err = ac.finish(q, secret, remote); err != nil {
			ac.conn.Close()
		}
	} else {
		l, err = dial(q, secret, remote, func(c net.Conn) bool { return q.setDialed(life, c) })
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
	mirror := ac != nil && bytes.Equal(secret, remote.secret)
	if ac != nil && (errors.Is(err, errUnauthenticated) || q.link != nil && !mirror) { // the peer's own connection may still arrive, or is in use
		q.mu.Unlock()
		ac.conn.Close()
		if l != nil {
			l.process.close()
		}
		return
	}
	q.dialed = nil
	switch {
	case hungUp(err):
		q.fail(backend.RetryExcErr, "no connection: "+hasEnded)
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

// setDialed stores the socket that waits for the peer, so that it can be closed. It
// returns false if the queue pair was reset or closed.
func (q *qp) setDialed(life int, c net.Conn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life != life || q.state != backend.StateRTS {
		return false
	}
	q.dialed = c
	return true
}

// mySecret returns the secret that peers prove to know.
func (q *qp) mySecret() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.secret
}

// park keeps a connection until Connect is called, or uses it if Connect was called.
func (q *qp) park(ac *acceptedConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || q.state == backend.StateErr:
		ac.conn.Close()
	case q.state != backend.StateRTS:
		if q.parked != nil {
			q.parked.conn.Close()
		}
		q.parked = ac
	case q.peer.num == ac.from() && (q.link == nil || bytes.Equal(q.secret, q.peer.secret) && q.mirror == nil):
		go q.dial(q.life, ac)
	default:
		ac.conn.Close()
	}
}

// PostSend implements backend.QP.
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

// expire fails the queue pair if the peer has not connected in time.
func (q *qp) expire(life int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life == life && q.link == nil && len(q.sq) > 0 {
		q.fail(backend.RetryExcErr, fmt.Sprintf("the peer has not connected within %v", q.conn.Timeout))
	}
}

// PostRecv implements backend.QP.
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
	var waiting []*link
	for _, l := range []*link{q.link, q.mirror} {
		if l != nil && l.rnrSent {
			l.rnrSent = false
			l.answers = append(l.answers, answer{frame: frame{kind: frReceive}})
			waiting = append(waiting, l)
		}
	}
	q.mu.Unlock()
	for _, l := range waiting {
		l.pump()
	}
	return len(wrs), nil
}

const hasEnded = "the peer has ended or has closed its queue pair"

// hungUp reports whether err says no more than that the peer closed the socket.
func hungUp(err error) bool {
	return (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && !errors.As(err, new(goneError))
}

// lost ends a link whose socket broke or was closed by the peer.
func (q *qp) lost(l *link, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l != q.link && l != q.mirror {
		l.kill() // a link of an earlier life
		return
	}
	status, text := backend.RetryExcErr, fmt.Sprintf("the connection broke: %v", err)
	switch {
	case hungUp(err):
		text = hasEnded
	case errors.Is(err, errDeregistered):
		status, text = backend.LocProtErr, err.Error()
	}
	q.fail(status, text)
	l.kill()
}

// fail brings the queue pair to the error state: the first request completes with
// the status, all other requests and receives are flushed. The caller holds mu.
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
	l, pinned := q.disconnect()
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
		if q.life != life { // reset or closed: no completions
			unpin(sends)
			return
		}
		report()
		q.reporting = false
		q.flush(q.sq, q.rq)
		q.sq, q.rq = nil, nil
	}()
}

// flush completes requests and receives that were not carried out. The caller holds
// mu.
func (q *qp) flush(sends []*request, recvs []backend.RecvWR) {
	for _, r := range sends {
		q.sendCQ.push(backend.Completion{Cookie: r.Cookie, Status: backend.WRFlushErr, Detail: q.why})
	}
	for i := range recvs {
		q.recvCQ.push(backend.Completion{Cookie: recvs[i].Cookie, Status: backend.WRFlushErr, Recv: true, Detail: q.why})
	}
}

// disconnect ends the links, waiting connections and timers, and empties the queues.
// pinned reports whether the peer may write to this process until link.drained. The
// caller holds mu.
func (q *qp) disconnect() (l *link, pinned bool) {
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

// Reset implements backend.QP.
func (q *qp) Reset() error {
	q.mu.Lock()
	requests := q.sq
	l, pinned := q.disconnect()
	q.link, q.mirror, q.base, q.why = nil, nil, 0, ""
	q.life++
	if !q.closed {
		q.state = backend.StateInit
		q.renew()
	}
	q.mu.Unlock()
	if pinned {
		release(l, requests)
	}
	return nil
}

// renew gives the queue pair another secret. The caller holds mu.
func (q *qp) renew() {
	former := q.secret
	q.secret = random(secretBytes)
	q.ctx.mu.Lock()
	delete(q.ctx.tagged, protocol.Tag(former))
	q.ctx.tagged[protocol.Tag(q.secret)] = q
	q.ctx.mu.Unlock()
}

// Close implements backend.QP.
func (q *qp) Close() error {
	q.mu.Lock()
	q.ctx.mu.Lock()
	if q.ctx.qps[q.num] == q {
		delete(q.ctx.qps, q.num)
	}
	delete(q.ctx.tagged, protocol.Tag(q.secret))
	q.ctx.mu.Unlock()
	requests := q.sq
	l, pinned := q.disconnect()
	q.closed, q.state = true, backend.StateErr
	q.why = "the queue pair is closed"
	q.life++
	q.mu.Unlock()
	if pinned {
		release(l, requests)
	}
	return nil
}

// release waits, at most drainTime, until no peer writes to this process any more,
// and unpins the regions then.
func release(l *link, requests []*request) {
	select {
	case <-l.drained:
		unpin(requests)
	case <-time.After(drainTime): // the regions stay pinned until link.drained
		go func() { <-l.drained; unpin(requests) }()
	}
}
