//go:build cgo

package verbs

import (
	"fmt"
	"math/rand/v2"

	"gormapy/gocore/fabric"
	"gormapy/gocore/ibverbs"
)

// stage is the state of one side of a connection, see the package comment.
type stage uint8

const (
	unmade stage = iota // of the peer: no mail has come
	made                // init
	joined              // ready
)

// Connect implements fabric.Transport.
func (t *Transport) Connect(peer int) (fabric.Endpoint, error) {
	if peer < 0 || peer >= len(t.eps) {
		return nil, fmt.Errorf("connect to rank %d: there are ranks 0 to %d", peer, len(t.eps)-1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	e, err := t.endpoint(peer)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// endpoint returns the endpoint to peer, and makes it on first use.
func (t *Transport) endpoint(peer int) (*endpoint, error) {
	if e := t.eps[peer]; e != nil {
		return e, nil
	}
	e := &endpoint{t: t, peer: peer, ring: make([]record, t.depth), wrs: make([]ibverbs.SendWR, t.depth)}
	e.psn = rand.Uint32() & 0xffffff
	e.every = min(32, t.depth/4)
	var err error
	if e.qp, err = t.queuePair(); err != nil {
		return nil, fmt.Errorf("connect to rank %d: %w", peer, err)
	}
	e.inline = min(e.qp.MaxInline(), bufferBytes)
	if peer == t.rank {
		if err = e.joinSelf(); err != nil {
			_ = e.qp.Close()
			if e.twin != nil {
				_ = e.twin.Close()
			}
			return nil, fmt.Errorf("connect to the own rank: %w", err)
		}
	}
	t.eps[peer] = e
	t.pairs[e.qp.Num()] = e
	if peer != t.rank {
		e.ownStage = made
		e.mail(mailInit, "")
	}
	return e, nil
}

// queuePair makes a queue pair in state INIT, with inline data if the device has it.
func (t *Transport) queuePair() (*ibverbs.QP, error) {
	var qp *ibverbs.QP
	var err error
	for _, inline := range []int{wantInline, 64, 0} {
		qp, err = t.pd.CreateQP(ibverbs.QPOptions{SendCQ: t.cq, RecvCQ: t.cq, SRQ: t.srq, MaxSend: int(t.depth), MaxInline: inline})
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err = qp.ToInit(t.port.Num, t.port.QPAccess()); err != nil {
		_ = qp.Close()
		return nil, err
	}
	return qp, nil
}

// join connects a queue pair to a remote one: RTR, then RTS.
func (t *Transport) join(qp *ibverbs.QP, r *ibverbs.Remote, psn uint32) error {
	if err := qp.ToRTR(t.port.Num, r, &t.timers); err != nil {
		return err
	}
	return qp.ToRTS(psn, &t.timers)
}

func (e *endpoint) joinSelf() error {
	t := e.t
	var err error
	if e.twin, err = t.queuePair(); err != nil {
		return err
	}
	remote := t.port.Peer(t.port.Attr.LID, t.port.GID.Addr, t.port.Attr.ActiveMTU)
	remote.QPNum, remote.PSN = e.twin.Num(), e.psn
	if err = t.join(e.qp, &remote, e.psn); err != nil {
		return err
	}
	remote.QPNum = e.qp.Num()
	if err = t.join(e.twin, &remote, e.psn); err != nil {
		return err
	}
	t.pairs[e.twin.Num()] = e
	e.peerQP, e.peerGID = e.twin.Num(), t.port.GID.Addr
	e.ownStage, e.peerStage = joined, joined
	return nil
}

func (e *endpoint) mail(state uint8, reason string) {
	t := e.t
	m := mail{
		state: state, link: uint8(t.port.Attr.LinkLayer), mtu: uint8(t.port.Attr.ActiveMTU), lid: t.port.Attr.LID, qp: e.qp.Num(), psn: e.psn,
		yours: e.peerQP, gid: t.port.GID.Addr, reason: reason,
	}
	// Mail fails only for a mail that is too long, and encode cuts it off.
	_ = t.dir.Mail(e.peer, m.encode())
}

// collect reads the peers' mails, and returns how many there were.
func (t *Transport) collect() int {
	mails := t.dir.Mails()
	if mails == t.mails {
		return 0
	}
	t.mails = mails
	n := 0
	t.mu.Lock()
	defer t.mu.Unlock()
	for peer := range t.eps {
		if peer == t.rank {
			continue
		}
		b := t.dir.Mailed(peer)
		if b == nil {
			continue
		}
		m, err := decodeMail(b)
		if err != nil {
			continue // it is not of this transport
		}
		n++
		if !t.closed {
			t.take(peer, &m)
		}
	}
	return n
}

// take acts on a mail.
func (t *Transport) take(peer int, m *mail) {
	if m.state == mailClosed {
		if e := t.eps[peer]; e != nil && e.err == nil && (m.yours == 0 || m.yours == e.qp.Num()) {
			e.reason = m.reason
			t.left = append(t.left, e)
		}
		return
	}
	e, err := t.endpoint(peer)
	if err != nil {
		// The peer's attempt must end, too.
		refusal := mail{state: mailClosed, reason: err.Error()}
		_ = t.dir.Mail(peer, refusal.encode())
		return
	}
	if e.err != nil || (e.peerStage != unmade && e.peerQP != m.qp) {
		return
	}
	if e.peerStage == unmade {
		e.peerQP, e.peerGID, e.peerStage = m.qp, m.gid, made
		if int(m.link) != t.port.Attr.LinkLayer {
			e.fail(&fabric.OpError{Op: "connect", Peer: peer, Status: "different networks", Detail: fmt.Sprintf(
				"the link layer here is %d (%v), the peer's is %d", t.port.Attr.LinkLayer, t.port, m.link)})
			return
		}
		remote := t.port.Peer(m.lid, m.gid, int(m.mtu))
		remote.QPNum, remote.PSN = m.qp, m.psn
		if err := t.join(e.qp, &remote, e.psn); err != nil {
			e.fail(&fabric.OpError{Op: "connect", Peer: peer, Status: "the queue pair can't be connected", Detail: err.Error()})
			return
		}
		e.ownStage = joined
		e.mail(mailReady, "")
	}
	if m.state == mailReady && m.yours == e.qp.Num() {
		e.peerStage = joined
	}
}
