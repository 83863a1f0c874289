package p2p

import (
	"sync"

	"gormapy/gocore/fabric"
)

// message is an unexpected message: it arrived before its receive was posted.
type message struct {
	world   int // sender
	header  fabric.Header
	payload []byte // own copy

	prev, next    *message // in the order of arrival, among all
	before, after *message // the same, in its chain
}

// spareMessages are messages that have been received, for the next unexpected ones: memory that Go's collector has not collected yet
// would be in no cache.
var spareMessages = sync.Pool{New: func() any { return new(message) }}

// newMessage returns an unexpected message, with a copy of its payload.
func newMessage(src int, h *fabric.Header, payload []byte) *message {
	m := spareMessages.Get().(*message)
	m.world, m.header, m.payload = src, *h, append(m.payload[:0], payload...)
	return m
}

// received gives back a message that has left its list and been received, if all of it was in it: nothing has it any more.
func (m *message) received() {
	if m.header.Kind != fabric.KindEager {
		return
	}
	if cap(m.payload) > EagerLimit {
		m.payload = nil
	}
	spareMessages.Put(m)
}

// arrivedList has the unexpected messages of a queue in the order of arrival, and in chains by source and tag, so that a receive
// that names both finds its own among many others.
type arrivedList struct {
	first, last *message
	n           int
	chains      []arrivedChain // a power of two of them
	one         [1]arrivedChain
}

type arrivedChain struct{ first, last *message }

func (l *arrivedList) chain(m *message) *arrivedChain {
	return &l.chains[chainOf(int(m.header.Src), int(m.header.Tag), len(l.chains))]
}

func (c *arrivedChain) append(m *message) {
	m.before, m.after = c.last, nil
	if c.last == nil {
		c.first = m
	} else {
		c.last.after = m
	}
	c.last = m
}

func (l *arrivedList) add(m *message) {
	if l.chains == nil {
		l.chains = l.one[:]
	}
	if l.n++; l.n > perChain*len(l.chains) && len(l.chains) < maxChains {
		l.spread(4 * len(l.chains))
	}
	m.prev = l.last
	if l.last == nil {
		l.first = m
	} else {
		l.last.next = m
	}
	l.last = m
	l.chain(m).append(m)
}

// spread divides the messages among n chains.
func (l *arrivedList) spread(n int) {
	l.chains = make([]arrivedChain, n)
	for m := l.first; m != nil; m = m.next {
		l.chain(m).append(m)
	}
}

func (l *arrivedList) remove(m *message) {
	if m.prev == nil {
		l.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		l.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	c := l.chain(m)
	if m.before == nil {
		c.first = m.after
	} else {
		m.before.after = m.after
	}
	if m.after == nil {
		c.last = m.before
	} else {
		m.after.before = m.before
	}
	m.prev, m.next, m.before, m.after = nil, nil, nil, nil
	if l.n--; l.n == 0 && len(l.chains) > keptChains {
		l.chains, l.one = nil, [1]arrivedChain{}
	}
}

// find returns the first message of a generation that src and tag accept, nil if there is none.
func (l *arrivedList) find(src, tag int, gen uint32) *message {
	fits := func(m *message) bool { return accepts(src, tag, &m.header) && m.header.Gen == gen }
	if src != AnySource && tag != AnyTag {
		if l.n == 0 {
			return nil
		}
		for m := l.chains[chainOf(src, tag, len(l.chains))].first; m != nil; m = m.after {
			if fits(m) {
				return m
			}
		}
		return nil
	}
	for m := l.first; m != nil; m = m.next {
		if fits(m) {
			return m
		}
	}
	return nil
}

// take removes the messages for which f returns true, and returns them in the order of arrival.
func (l *arrivedList) take(f func(m *message) bool) (taken []*message) {
	for m := l.first; m != nil; {
		next := m.next
		if f(m) {
			l.remove(m)
			taken = append(taken, m)
		}
		m = next
	}
	return taken
}
