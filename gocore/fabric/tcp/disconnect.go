package tcp

import (
	"fmt"

	"gormapy/gocore/fabric"
)

// Control frames have the kind KindNone, no payload, and one of these in Aux.
const (
	controlGoodbye = iota + 1 // the sender sends no message any more that the receiver needs
	controlAnswer             // all that was sent before the goodbye has been received
)

// Disconnect implements fabric.Disconnecter.
func (t *Transport) Disconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disconnecting = true
	for i := range t.pairs {
		p := &t.pairs[i]
		p.mu.Lock()
		if p.state == open {
			p.goodbye()
		}
		p.mu.Unlock()
	}
}

// goodbye says goodbye, once, under mu.
func (p *pair) goodbye() {
	if !p.leaving {
		p.leaving = true
		p.say(controlGoodbye)
	}
}

// say queues a control frame, under mu.
func (p *pair) say(what uint32) {
	waiting := p.waiting()
	p.join(&fabric.Header{Aux: what}, nil)
	p.held = false
	if !waiting {
		p.wait()
	}
}

// control handles a control frame of the peer.
func (p *pair) control(size int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.lane > 0:
		return fmt.Errorf("a control frame has come on connection %d", p.lane)
	case size == 0 && p.head.Aux == controlGoodbye && !p.left:
		p.left = true
		p.say(controlAnswer)
	case size == 0 && p.head.Aux == controlAnswer && p.leaving:
		p.released = true
	default:
		return fmt.Errorf("a control frame that is not due has %d in Aux, and %d bytes", p.head.Aux, size)
	}
	return nil
}

// Disconnected implements fabric.Disconnecter.
func (t *Transport) Disconnected(peer int) bool {
	p := &t.pairs[peer]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state != open || p.released || p.failed != nil
}

// Drained implements fabric.Drainer. The peer may use a connection that this rank is still trying.
func (t *Transport) Drained(peer int) bool {
	p := &t.pairs[peer]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending && !p.over { // what is on other lanes is still delivered
		return p.left
	}
	return p.state != open && p.state != trying || p.left
}

// Cut implements fabric.Disconnecter.
func (t *Transport) Cut(peer int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.pairs[peer]
	t.stopSeeking(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.endAll(fmt.Errorf("%w: the connection to rank %d was cut", fabric.ErrPeerGone, peer))
	}
}
