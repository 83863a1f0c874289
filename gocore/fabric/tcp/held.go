package tcp

import (
	"sync"
	"sync/atomic"

	"gormapy/gocore/fabric"
)

// heldMax is how many bytes are held back before they are sent anyway.
const heldMax = 64 << 10

// holding has the pairs that may hold frames back.
type holding struct {
	some  atomic.Bool
	mu    sync.Mutex
	pairs []*pair
}

var _ fabric.Gatherer = (*pair)(nil)

// Gather implements fabric.Gatherer.
func (p *pair) Gather(h *fabric.Header, payload []byte) error {
	if len(payload) >= laneMin {
		return p.Send(h, payload)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state != open || p.failed != nil:
		return p.notOpen()
	case p.waiting():
		return p.enqueue(h, payload)
	}
	p.join(h, payload)
	p.held = true
	if len(p.queue) >= heldMax {
		return p.push()
	}
	p.t.hold(p)
	return nil
}

// Push implements fabric.Gatherer.
func (p *pair) Push() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.push() // the next Send returns the error
}

// push sends what is held back, under mu. If the socket does not take all of it, the rest is a queue like others.
func (p *pair) push() error {
	if p.held {
		p.held = false
		if !p.emptyQueue() {
			p.wait()
		}
	}
	return p.failed
}

// hold has the next Poll push p's frames, under p.mu.
func (t *Transport) hold(p *pair) {
	if p.listed {
		return
	}
	p.listed = true
	t.holding.mu.Lock()
	defer t.holding.mu.Unlock()
	t.holding.pairs = append(t.holding.pairs, p)
	t.holding.some.Store(true)
}

// pushHeld sends the frames that pairs hold back.
func (t *Transport) pushHeld() {
	if !t.holding.some.Load() {
		return
	}
	for _, p := range t.takeHolding() {
		p.mu.Lock()
		p.listed = false
		_ = p.push()
		p.mu.Unlock()
	}
}

func (t *Transport) takeHolding() []*pair {
	h := &t.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.pairs
	h.pairs = nil
	h.some.Store(false)
	return list
}
