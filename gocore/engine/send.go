package engine

import (
	"bytes"
	"slices"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// FlagUrgent marks, in Header.Flags, a message that the target must serve even
// if it makes no MPI call.
const FlagUrgent uint8 = 0x80

// queued is a message that waits for room in the transport: one packet, or data
// that is sent in pieces, each with the header and its offset in B.
type queued struct {
	header fabric.Header
	data   []byte
	piece  int // 0: one packet
	off    int
	owner  any
	sent   Sender
}

// Sender is notified of the end of a message that was queued.
type Sender interface {
	// Sent is called under the poll lock, once the message is sent and the payload
	// may be reused. A non-nil err is the reason why the message was not sent, or
	// only in part.
	Sent(err error)
}

// CopyMax is the longest payload that is copied if it has to be queued.
const CopyMax = 16 << 10

// Send sends a short message to rank dst. It reports whether the message is sent and the
// payload may be reused now; otherwise sent, if not nil, is called once that is so. A
// payload of at most CopyMax bytes may be reused in any case. Messages to one peer keep
// their order. Owner identifies the message for Detach and Drop.
//
// A message whose payload can't be read is not sent: the error is a *sys.Fault.
//
// A message that the transport refuses for good, because the connection has broken,
// is lost and sent is not called: a thread that waits for its effect learns that the
// peer is Gone.
func (e *Engine) Send(dst int, h *fabric.Header, payload []byte, owner any, sent Sender) (out bool, err error) {
	return e.sendBy(fabric.Endpoint.Send, dst, h, payload, owner, sent)
}

// Gather is Send, but the transport may hold the message back until the next Send or Push
// to dst, or the end of the next poll (of the one that is under way, if a handler calls
// it). The caller makes sure that one of these follows.
func (e *Engine) Gather(dst int, h *fabric.Header, payload []byte, owner any, sent Sender) (out bool, err error) {
	return e.sendBy(gather, dst, h, payload, owner, sent)
}

func gather(ep fabric.Endpoint, h *fabric.Header, payload []byte) error {
	if g, ok := ep.(fabric.Gatherer); ok {
		return g.Gather(h, payload)
	}
	return ep.Send(h, payload)
}

// Push sends what the transport holds back of the messages to dst.
func (e *Engine) Push(dst int) {
	if g, ok := e.peers[dst].ep.(fabric.Gatherer); ok {
		g.Push()
	}
}

// how passes a message to an endpoint.
type how func(ep fabric.Endpoint, h *fabric.Header, payload []byte) error

func (e *Engine) sendBy(by how, dst int, h *fabric.Header, payload []byte, owner any, sent Sender) (out bool, err error) {
	p := &e.peers[dst]
	if !e.reach(dst) {
		return false, nil
	}
	switch err = e.sendOrQueue(by, dst, p, h, payload, owner, sent); {
	case err == nil:
		e.wakeForUrgent(dst, p, h)
		return true, nil
	case sys.IsFault(err):
		return false, err
	}
	return false, nil // it is queued or lost
}

// sendOrQueue sends a message, or queues it and returns fabric.ErrAgain.
func (e *Engine) sendOrQueue(by how, dst int, p *peer, h *fabric.Header, payload []byte, owner any, sent Sender) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		if err := e.send(by, dst, p, h, payload); err != fabric.ErrAgain {
			return err
		}
	}
	if len(payload) <= CopyMax {
		if fault := sys.Touch(func() { payload = bytes.Clone(payload) }); fault != nil {
			return fault
		}
	}
	p.queue = append(p.queue, &queued{header: *h, data: payload, owner: owner, sent: sent})
	e.countQueued(p, 1)
	return fabric.ErrAgain
}

// HandOver wakes this process's progress engine if messages are queued and no
// thread polls, which would send them. Each call of the program ends with it, since the
// program may compute next; so does Wait. A thread that sleeps in a wait does not send
// them: it may have looked at the queues before.
func (e *Engine) HandOver() {
	if e.backlog.Load() > 0 && !e.othersPoll() {
		e.me.RingProgress()
	}
}

// TrySend is Send if there is room for the message now; else it does nothing and
// returns false. It is not for urgent messages.
func (e *Engine) TrySend(dst int, h *fabric.Header, payload []byte) bool {
	p := &e.peers[dst]
	if e.connect(dst, p) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0 && e.send(fabric.Endpoint.Send, dst, p, h, payload) == nil
}

// Stream sends data to rank dst, from an offset to the end, in as many messages as it takes, each with a
// copy of h that has the piece's offset in B. sent is called when all are sent, or
// with the fault of a piece that can't be read: those before it have been sent then.
func (e *Engine) Stream(dst int, h *fabric.Header, data []byte, from int, owner any, sent Sender) {
	p := &e.peers[dst]
	if !e.reach(dst) {
		return
	}
	e.queue(p, &queued{header: *h, data: data, off: from, piece: p.piece, owner: owner, sent: sent})
	e.sendQueued()
}

func (e *Engine) queue(p *peer, q *queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, q)
	e.countQueued(p, 1)
}

// Detach makes the queued messages of owner independent of the owner's memory: the
// payloads are copied, and no Sender is called for them any more. A message whose
// payload can't be read is dropped, and the fault is returned.
func (e *Engine) Detach(dst int, owner any) (err error) {
	e.dequeue(&e.peers[dst], func(q *queued) bool {
		if q.owner != owner {
			return true
		}
		q.sent = nil
		if fault := sys.Touch(func() { q.data = append([]byte(nil), q.data...) }); fault != nil {
			err = fault
			return false
		}
		return true
	})
	return err
}

// Drop removes the queued messages of owner to all ranks, before the owner's memory
// is reused. It calls the Senders of the messages with err.
func (e *Engine) Drop(owner any, err error) {
	e.dropQueued(func(q *queued) bool { return q.owner == owner }, err)
}

// DropOlder removes the queued messages of generations before gen, and all queued
// one-sided operations. The collective reset calls it, since the memory that they
// refer to belongs to the program again. It calls Senders and Completers with err.
// The caller excludes pollers.
func (e *Engine) DropOlder(gen uint32, err error) {
	e.dropQueued(func(q *queued) bool { return int32(q.header.Gen-gen) < 0 }, err)
	for i := range e.peers[:e.connected.known.Load()] {
		e.dropOps(&e.peers[i], err)
	}
	e.dropOps(&e.loop, err)
}

func (e *Engine) dropQueued(match func(q *queued) bool, err error) {
	var senders []Sender
	for i := range e.peers[:e.connected.known.Load()] {
		e.dequeue(&e.peers[i], func(q *queued) bool {
			if !match(q) {
				return true
			}
			if q.sent != nil {
				senders = append(senders, q.sent)
			}
			return false
		})
	}
	for _, s := range senders {
		s.Sent(err)
	}
}

// dequeue removes from a peer's queue the messages for which keep returns false.
func (e *Engine) dequeue(p *peer, keep func(q *queued) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(q *queued) bool { return !keep(q) })
	e.countQueued(p, len(p.queue)-before)
}

// send passes a message to the transport. It counts an urgent one first, so that the
// count is never less than the number delivered, even if this process dies in
// between. fabric.ErrAgain means that there is no room now, a *sys.Fault that the
// payload can't be read; with any other error the message is lost.
func (e *Engine) send(by how, dst int, p *peer, h *fabric.Header, payload []byte) (err error) {
	if h.Flags&FlagUrgent != 0 {
		e.count(dst, p, h, 1)
		defer func() {
			if err != nil {
				e.count(dst, p, h, ^uint32(0))
			}
		}()
		err = fabric.ErrAgain // should the transport panic
	}
	if err = sendGuarded(by, p.ep, h, payload); err == fabric.ErrAgain && dst != e.Rank && e.Gone(dst) {
		err = fabric.ErrPeerGone // a transport may keep trying to reach a process that has ended
	}
	return err
}

// sendGuarded calls the transport and returns a fault of the payload as an error. Only here
// are payloads read. Transports leave no trace of a message whose payload faults.
func sendGuarded(by how, ep fabric.Endpoint, h *fabric.Header, payload []byte) (err error) {
	defer sys.CatchFault(&err)
	return by(ep, h, payload)
}

func (e *Engine) count(dst int, p *peer, h *fabric.Header, d uint32) {
	if h.Flags&FlagUrgent != 0 && dst != e.Rank && !p.remote {
		atom.Add32(&e.Job.Rank(dst).Urgent, d)
	}
}

// wakeForUrgent wakes the receiver's progress engine after send, if the message is urgent
// and no thread of the receiver polls.
func (e *Engine) wakeForUrgent(dst int, p *peer, h *fabric.Header) {
	if h.Flags&FlagUrgent == 0 || dst == e.Rank || p.remote {
		return
	}
	r := e.Job.Rank(dst)
	if atom.Load32(&r.Pollers) == 0 {
		r.RingProgress()
	}
}

// sendQueued sends queued messages and operations as far as there is room, and returns how
// many it sent.
func (e *Engine) sendQueued() int {
	moved := 0
	for dst := range e.peers[:e.connected.known.Load()] {
		p := &e.peers[dst]
		for e.sendNext(dst, p) {
			moved++
		}
		moved += e.issueQueued(dst, p)
	}
	return moved + e.issueQueued(e.Rank, &e.loop)
}

// sendNext sends the first message queued for dst, or the next piece of it. It
// returns false if there is none, or no room.
func (e *Engine) sendNext(dst int, p *peer) bool {
	q, h, err := e.sendFirst(dst, p)
	switch {
	case q == nil || err == fabric.ErrAgain:
		return false
	case err == nil:
		e.wakeForUrgent(dst, p, &h)
		if q.piece > 0 && q.off < len(q.data) {
			return true
		}
	case !sys.IsFault(err):
		return true // lost: see Send
	}
	if q.sent != nil {
		q.sent.Sent(err)
	}
	return true
}

// sendFirst sends the first queued message, or its next piece, and removes it from
// the queue when all of it is sent or it has failed. q is nil if the queue is empty.
func (e *Engine) sendFirst(dst int, p *peer) (q *queued, h fabric.Header, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, h, nil
	}
	q = p.queue[0]
	h = q.header
	part := q.data
	if q.piece > 0 {
		part = part[q.off:min(q.off+q.piece, len(q.data))]
		h.B = uint64(q.off)
	}
	if err = e.send(fabric.Endpoint.Send, dst, p, &h, part); err == fabric.ErrAgain {
		return q, h, err
	}
	if q.off += len(part); err != nil || q.piece == 0 || q.off >= len(q.data) {
		p.queue = p.queue[1:]
		e.countQueued(p, -1)
	}
	return q, h, err
}

// countQueued counts what is added to the queues of a peer, or taken from them.
func (e *Engine) countQueued(p *peer, n int) {
	e.backlog.Add(int32(n))
	if !p.announces {
		e.pressing.Add(int32(n))
	}
}

// Queued returns the number of messages to dst that wait for room in the transport.
func (e *Engine) Queued(dst int) int {
	p := &e.peers[dst]
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// Backlog returns the number of queued messages and one-sided operations, and of links to processes of other jobs that
// these have not opened yet.
func (e *Engine) Backlog() int { return int(e.backlog.Load()) + e.connected.links.Waiting() }

// BacklogHopeless reports whether everything that is queued is for ranks that will
// never receive it.
func (e *Engine) BacklogHopeless() bool {
	for dst := range e.peers[:e.connected.known.Load()] {
		p := &e.peers[dst]
		p.mu.Lock()
		n := len(p.queue) + len(p.ops)
		p.mu.Unlock()
		if n > 0 && !e.Gone(dst) && !e.Finalized(dst) {
			return false
		}
	}
	return true
}
