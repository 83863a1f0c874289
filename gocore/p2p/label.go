package p2p

import (
	"encoding/binary"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
)

// Label is what the sender of an internal message says of it to its receiver: package
// coll says which collective it belongs to. It takes no room on the wire: Word is
// Header.Aux and Size Header.B. The announcement of a message that the kernel is to copy
// has an address in B, and Size in its payload.
type Label struct {
	Word uint32
	Size uint64
}

// SendLabelled is Send, in Standard mode, of a message with a label.
func (c *Channel) SendLabelled(r *Request, b Buf, dest, tag int, l Label) {
	c.send(r, Standard, b, dest, tag, l)
}

// labelBytes is the length of the payload that announces a labelled message to be pulled.
const labelBytes = 8

// payload returns the label's part of an announcement in whose header is no room for it.
func (l Label) payload() []byte {
	if l.Size == 0 {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, l.Size)
}

// labelOf returns the label of a message.
func labelOf(h *fabric.Header, payload []byte) Label {
	l := Label{h.Aux, h.B}
	if h.Kind == fabric.KindRTS && h.Flags&flagsInPlace != 0 {
		if l.Size = 0; len(payload) == labelBytes {
			l.Size = binary.LittleEndian.Uint64(payload)
		}
	}
	return l
}

// Label returns the label of a received message; the zero value if it has none.
func (r *Request) Label() Label { return r.label }

// Other returns the rank of the channel that the request was started with: the receiver of
// a send, the source of a receive.
func (r *Request) Other() int { return r.src }

// HowGone returns a description of the end of a rank, false if it has not ended.
func (c *Channel) HowGone(rank int) (how string, gone bool) {
	if w := c.World[rank]; c.p.eng.Gone(w) {
		return c.p.eng.HowGone(w), true
	}
	return "", false
}

// HowEnded is HowGone of a rank from which messages may still arrive.
func (c *Channel) HowEnded(rank int) (how string, ended bool) { return c.p.eng.HowEnded(c.World[rank]) }

// Failed reports whether a rank has ended without finalizing.
func (c *Channel) Failed(rank int) bool { return c.p.eng.Failed(c.World[rank]) }

// leftLimit is how many unexpected messages Left looks at.
const leftLimit = 64

// Left returns the sender and the label of a message with this tag that has arrived and
// that no receive has matched. It may miss one behind many others.
func (c *Channel) Left(tag int) (from int, l Label, found bool) {
	gen := c.p.gen.Load()
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	looked := 0
	for m := c.q.arrived.first; m != nil && looked < leftLimit; m = m.next {
		looked++
		if h := &m.header; int(h.Tag) == tag && h.Gen == gen {
			return int(h.Src), labelOf(h, m.payload), true
		}
	}
	return 0, Label{}, false
}

// Listener hears of what concerns a channel without being a message that a receive takes.
type Listener interface {
	// Told is called with what rank h.Src tells, in the order in which that rank has sent it
	// and its messages. It is a handler, see engine.Handler.
	Told(h *fabric.Header, payload []byte)
	// Stray is called with the header of a message that no receive has matched yet. It
	// reports whether none will. It is a handler, called under a lock of the channel.
	Stray(h *fabric.Header) bool
}

// Listen gives the channel its listener.
func (c *Channel) Listen(l Listener) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.q.listener, c.q.world = l, c.World
}

// Tell sends header and payload to the listener of rank dest, which is called even if that
// rank's program makes no call. The caller sets all of the header but Kind, Ctx, Src and Len;
// it does not change the payload any more. What is told before dest listens, or in another
// generation than that of dest, is lost.
func (c *Channel) Tell(dest int, h fabric.Header, payload []byte) {
	h.Kind, h.Ctx, h.Src = fabric.KindCall, c.Ctx, int32(c.Rank)
	h.Flags |= engine.FlagUrgent
	h.Len = uint64(len(payload))
	c.p.eng.Send(c.World[dest], &h, payload, nil, nil)
}

// onTold handles what a peer tells.
func (p *P2P) onTold(src int, h *fabric.Header, payload []byte) {
	if h.Gen != p.gen.Load() {
		return
	}
	p.mu.RLock()
	q := p.queues[h.Ctx]
	p.mu.RUnlock()
	if q == nil {
		return
	}
	q.mu.Lock()
	l, world := q.listener, q.world
	q.mu.Unlock()
	if l != nil && h.Src >= 0 && int(h.Src) < len(world) && world[h.Src] == src {
		l.Told(h, payload)
	}
}

// Drop drops the messages with this tag, of generation gen, that have arrived and that no
// receive has matched. It calls before with the header of each first, and then ends the
// sender's wait.
func (c *Channel) Drop(tag int, gen uint32, before func(h *fabric.Header)) {
	c.q.mu.Lock()
	dropped := c.q.arrived.take(func(m *message) bool { return int(m.header.Tag) == tag && m.header.Gen == gen })
	c.q.mu.Unlock()
	for _, m := range dropped {
		before(&m.header)
		c.p.drop(m.world, &m.header, len(m.payload))
	}
}

// drop ends the wait of the sender of a message that nobody receives, of which n bytes have come.
func (p *P2P) drop(src int, h *fabric.Header, n int) {
	p.received(src, h, n)
	if h.Kind == fabric.KindRTS || h.Flags&FlagSync != 0 {
		p.eng.Send(src, &fabric.Header{Kind: fabric.KindFin, Gen: h.Gen, Ctx: h.Ctx, A: h.A}, nil, nil, nil)
	}
}
