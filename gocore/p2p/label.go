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
	if h.Kind == fabric.KindRTS && h.Flags&FlagPull != 0 {
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

// leftLimit is how many unexpected messages Left looks at.
const leftLimit = 64

// Left returns the sender and the label of a message with this tag that has arrived and
// that no receive has matched. It may miss one behind many others.
func (c *Channel) Left(tag int) (from int, l Label, found bool) {
	gen := c.p.gen.Load()
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	for _, m := range c.q.arrived[:min(len(c.q.arrived), leftLimit)] {
		if h := &m.header; int(h.Tag) == tag && h.Gen == gen {
			return int(h.Src), labelOf(h, m.payload), true
		}
	}
	return 0, Label{}, false
}

// Tell sends header and payload to the function that rank dest has given to OnTold, which
// is called even if that rank's program makes no call. The caller sets all of the header but
// Kind, Ctx, Src and Len; it does not change the payload any more. What is told before dest
// has called OnTold, or in another generation than that of dest, is lost.
func (c *Channel) Tell(dest int, h fabric.Header, payload []byte) {
	h.Kind, h.Ctx, h.Src = fabric.KindCall, c.Ctx, int32(c.Rank)
	h.Flags |= engine.FlagUrgent
	h.Len = uint64(len(payload))
	c.p.eng.Send(c.World[dest], &h, payload, nil, nil)
}

// OnTold has f called with what other ranks of the channel tell, in the order in which they
// have sent it and their other messages. f is a handler, see engine.Handler.
func (c *Channel) OnTold(f func(h *fabric.Header, payload []byte)) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.q.told = func(src int, h *fabric.Header, payload []byte) {
		if h.Src >= 0 && int(h.Src) < len(c.World) && c.World[h.Src] == src {
			f(h, payload)
		}
	}
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
	f := q.told
	q.mu.Unlock()
	if f != nil {
		f(src, h, payload)
	}
}
