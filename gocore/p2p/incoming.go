package p2p

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// # Data that goes straight into the buffer
//
// A transport that copies from a socket asks for the memory of a long payload (engine.Placer) when the message has begun
// to arrive. If the first receive that accepts the message has a dense buffer with room for the payload, the two are matched
// then. The receive leaves the queue and gets a token; incoming has the token until the payload is there and the
// handler is called. Other messages are matched when all of their payload is there. Until then
//
//	Abandon         takes the message back (unmatch): the transport goes on in memory of its own, with what has arrived, and the
//	                message is matched again when its payload is there. None from this peer has come in between.
//	the reset       fails the receive, and the transport discards the rest
//	the peer's end  fails the receive, as it does while the pieces of a long message arrive
//
// A message of which more has been asked for (see below) can't be taken back: Abandon has the rest discarded. A RecvWhole is not
// matched early, because it may be withdrawn.
//
// # Data ahead
//
// Where the receiver has to ask for the data of a long message (CTS), the sender does not wait for that with the
// beginning of the data, which is the payload of the announcement (FlagAhead). The receiver asks for the rest as soon as
// it has matched the announcement, perhaps before all of this payload has arrived. So the sender has
// the answer before it runs out of data. If the receiver wants no more than it has, it answers with Fin.
// What is sent ahead needs credit, like a message that is sent whole.

// incoming is a message from a peer of which the payload is being received straight into the buffer of a receive.
type incoming struct {
	token uint64 // of the receive; 0: there is no such message
	n     int    // length of the payload
	asked bool   // for the rest of the data
}

// placeMessage is the Placer of Eager and RTS.
func (p *P2P) placeMessage(src int, h *fabric.Header, n int) unsafe.Pointer {
	p.incoming[src] = incoming{}
	if h.Gen != p.gen.Load() || h.Kind == fabric.KindRTS && h.Flags&FlagAhead == 0 || uint64(n) > h.Len {
		return nil
	}
	r := p.takeRoomy(h, n)
	if r == nil {
		return nil
	}
	r.match(src, h, nil)
	token := p.remember(r)
	r.placing = r.buf.Addr
	asked := h.Kind == fabric.KindRTS && r.total > n
	p.incoming[src] = incoming{token, n, asked}
	if asked {
		p.clear(src, h, token, r.total, n)
	}
	return r.placing
}

// takeRoomy takes the first posted receive that accepts h, if n bytes can be stored in its buffer as they come, and it is not a
// RecvWhole, which has either been matched and completed, or can be withdrawn.
func (p *P2P) takeRoomy(h *fabric.Header, n int) *Request {
	p.mu.RLock()
	q := p.queues[h.Ctx]
	p.mu.RUnlock()
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.posted.find(h)
	if r == nil || r.whole || !r.buf.dense() || n > r.buf.Bytes() {
		return nil
	}
	q.posted.remove(r)
	return r
}

// placed handles a message that placeMessage has matched. The payload is where placeMessage said, or elsewhere if that can't be
// written to, or nil if the receive was given up.
func (p *P2P) placed(in incoming, src int, h *fabric.Header, payload []byte) {
	p.received(src, h, in.n)
	p.tokens.Lock()
	r := p.byID[in.token]
	p.tokens.Unlock()
	switch {
	case r == nil:
		if h.Flags&FlagSync != 0 || h.Kind == fabric.KindRTS && !in.asked {
			p.eng.Send(src, &fabric.Header{Kind: fabric.KindFin, Gen: h.Gen, Ctx: h.Ctx, A: h.A}, nil, nil, nil)
		}
		return
	case h.Kind == fabric.KindEager:
		p.recall(in.token)
		r.placing = nil
		p.finish(r, src, h, r.put(payload))
		return
	}
	r.placing = nil
	r.failed = r.piece(0, payload)
	if r.got = len(payload); r.got >= r.total {
		p.recall(in.token)
		p.fin(r, src, h)
		r.end(r.failed)
	}
}

// unmatch takes the message whose payload is arriving back from its receive, which is cancelled then, and reports whether it did. The
// caller excludes pollers.
func (p *P2P) unmatch(r *Request) bool {
	if r.placing == nil {
		return false
	}
	in := &p.incoming[r.Peer()]
	if in.token != r.token || in.asked || !p.eng.Divert(r.placing) {
		return false
	}
	p.recall(in.token)
	*in = incoming{}
	r.placing = nil
	r.status = Status{Source: r.src, Tag: r.tag, Cancelled: true}
	r.complete()
	return true
}

// goOn continues the receive of a message of which n bytes came ahead, and have been stored as far as there is room.
func (p *P2P) goOn(r *Request, src int, h *fabric.Header, n int) {
	if r.got = min(n, r.total); r.got < r.total {
		p.clear(src, h, p.remember(r), r.total, n)
		return
	}
	if r.failed == nil {
		r.failed = r.unpack()
	}
	p.fin(r, src, h)
	r.end(r.failed)
}

// ahead returns how many bytes of data are sent with its announcement to a rank, and charges them.
func (p *P2P) ahead(to int, data []byte) int {
	n := min(p.eng.Ahead(to), len(data))
	if n == 0 || sys.Touch(func() { fabric.Probe(unsafe.Pointer(&data[0]), n) }) != nil || !p.spend(to, n) {
		return 0
	}
	return n
}

// announcement is an announcement with data that may have to wait for room.
type announcement struct {
	p    *P2P
	to   int
	head fabric.Header
	n    int
}

// sendAhead announces a message with the beginning of its data.
func (p *P2P) sendAhead(r *Request, to int, h fabric.Header, data []byte) {
	a := &announcement{p, to, h, len(data)}
	h.Flags |= FlagAhead
	if _, err := p.eng.Send(to, &h, data, r, a); err != nil {
		a.Sent(err)
	}
}

// Sent implements engine.Sender. Data that can't be read is not sent ahead: the receiver is told when it has asked for
// the data.
func (a *announcement) Sent(err error) {
	if sys.IsFault(err) {
		a.p.unspend(a.to, a.n)
		a.p.eng.Send(a.to, &a.head, nil, nil, nil)
	}
}

var _ engine.Sender = (*announcement)(nil)
