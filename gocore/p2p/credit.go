package p2p

import (
	"sync/atomic"

	"gormapy/gocore/fabric"
)

// # Credits
//
// A message that is sent whole and finds no receive is kept in the receiver's memory. So that
// a receiver that computes, or waits for something else, does not run out of memory, each
// rank counts the bytes that it has sent, whole or ahead of the rest, to each other one and that have not been
// received yet. Beyond the limit a message is announced, as a long one is, and stays with
// the sender until it is received. The receiver returns the credits of what it has received
// (KindCredit), a quarter of the limit at a time.
//
// The collective reset drops all messages of earlier generations, and all counts with them;
// a return of an earlier generation is dropped, too.

const (
	// The memory that unexpected messages of all senders may take, and the least and the most
	// of one sender.
	unexpectedBytes = 1 << 30
	leastCredit     = 1 << 20
	mostCredit      = 64 << 20
	// messageCost is what a message takes beside its payload, roughly.
	messageCost = 128
)

// credit is the account of this rank with another one.
type credit struct {
	out   atomic.Int64 // sent whole and not returned
	taken atomic.Int64 // received of what the other one has sent whole, and not returned yet
}

func creditLimit(ranks int) int64 {
	return max(leastCredit, min(mostCredit, unexpectedBytes/int64(ranks)))
}

// charge reports whether r, a message of n bytes, may be sent whole to a rank, and counts it if so.
func (p *P2P) charge(r *Request, to, n int) bool {
	if to == p.eng.Rank || n == 0 {
		return true // this rank's own memory; and an empty message is not worth an announcement
	}
	if !p.spend(to, n) {
		return false
	}
	r.charged, r.cost = &p.credits[to], int64(n+messageCost)
	return true
}

// spend charges n bytes to a rank, if there is credit for them.
func (p *P2P) spend(to, n int) bool {
	c, cost := &p.credits[to], int64(n+messageCost)
	if c.out.Load()+cost > p.creditLimit {
		return false
	}
	c.out.Add(cost)
	return true
}

// unspend takes back what was charged for n bytes that are not sent.
func (p *P2P) unspend(to, n int) { p.credits[to].out.Add(-int64(n + messageCost)) }

// refund takes back what a message was charged that is not sent.
func (r *Request) refund() {
	if r.charged != nil {
		r.charged.out.Add(-r.cost)
		r.charged = nil
	}
}

// received counts n bytes that were sent whole, or ahead of the rest, and are not kept any more.
func (p *P2P) received(src int, h *fabric.Header, n int) {
	if h.Kind != fabric.KindEager && h.Flags&FlagAhead == 0 || n == 0 || src == p.eng.Rank {
		return
	}
	c := &p.credits[src]
	if c.taken.Add(int64(n)+messageCost) < p.creditLimit/4 {
		return
	}
	if n := c.taken.Swap(0); n > 0 {
		back := fabric.Header{Kind: fabric.KindCredit, Gen: h.Gen, A: uint64(n)}
		_, _ = p.eng.Send(src, &back, nil, nil, nil) // a rank that is gone needs none
	}
}

// onCredit handles the return of credits.
func (p *P2P) onCredit(src int, h *fabric.Header, _ []byte) {
	if h.Gen == p.gen.Load() && h.A < 1<<62 {
		p.credits[src].out.Add(-int64(h.A))
	}
}

// resetCredits drops all counts, see the collective reset.
func (p *P2P) resetCredits() {
	for i := range p.credits {
		p.credits[i].out.Store(0)
		p.credits[i].taken.Store(0)
	}
}
