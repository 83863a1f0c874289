package p2p

import "gormapy/gocore/fabric"

// SetCreditLimit changes how many bytes of one sender a rank keeps. All ranks call it before they
// send.
func (p *P2P) SetCreditLimit(n int64) { p.creditLimit = n }

// Owed returns how many bytes that this rank has sent whole to another one have not been returned.
func (p *P2P) Owed(to int) int64 { return p.credits[to].out.Load() }

// Posted reports whether r is a receive that no message has been matched with.
func (c *Channel) Posted(r *Request) bool {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	return r.posted
}

// Kept returns the bytes of the messages that have arrived whole and were not received, and the
// number of all that have arrived.
func (c *Channel) Kept() (bytes, messages int) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	for m := c.q.arrived.first; m != nil; m = m.next {
		if m.header.Kind != fabric.KindEager {
			continue
		}
		bytes += len(m.payload)
	}
	return bytes, c.q.arrived.n
}
