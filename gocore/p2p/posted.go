package p2p

import "gormapy/gocore/fabric"

// postedList has the posted receives of a queue. Those that name a source and a tag are in chains by both, so that to match a message
// takes no longer when many receives wait for others; those with a wildcard are in a chain of their own. In each chain they are
// in posting order, and the first of the two that accept a message is the one that was posted first. One chain is enough as
// long as there are few.
type postedList struct {
	wild  postedChain
	exact []postedChain // a power of two of them
	one   [1]postedChain
	n     int    // receives in exact
	next  uint64 // order of the next receive
}

type postedChain struct{ first, last *Request }

// perChain is how many entries there are for each chain, on average, before there are more chains; maxChains is how many there
// are at most; keptChains is how many an empty list keeps.
const (
	perChain   = 8
	maxChains  = 1 << 16
	keptChains = 64
)

// chainOf returns which of n chains a source and a tag belong to; n is a power of two. What is in one of n chains is in
// i, n+i, … of more of them.
func chainOf(src, tag, n int) int {
	h := uint32(src)*0x9e3779b1 ^ uint32(tag)*0x85ebca6b
	return int(h^h>>15) & (n - 1)
}

func (r *Request) isWild() bool { return r.src == AnySource || r.tag == AnyTag }

func (l *postedList) chain(r *Request) *postedChain {
	if r.isWild() {
		return &l.wild
	}
	return &l.exact[chainOf(r.src, r.tag, len(l.exact))]
}

func (c *postedChain) append(r *Request) {
	r.prev, r.next = c.last, nil
	if r.prev == nil {
		c.first = r
	} else {
		r.prev.next = r
	}
	c.last = r
}

func (c *postedChain) remove(r *Request) {
	if r.prev == nil {
		c.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		c.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// find returns the first receive that accepts h.
func (c *postedChain) find(h *fabric.Header) *Request {
	for r := c.first; r != nil; r = r.next {
		if accepts(r.src, r.tag, h) && r.gen == h.Gen {
			return r
		}
	}
	return nil
}

func (l *postedList) add(r *Request) {
	if l.exact == nil {
		l.exact = l.one[:]
	}
	r.posted, r.order = true, l.next
	l.next++
	if !r.isWild() {
		l.n++
		if l.n > perChain*len(l.exact) && len(l.exact) < maxChains {
			l.spread(4 * len(l.exact))
		}
	}
	l.chain(r).append(r)
}

func (l *postedList) remove(r *Request) {
	l.chain(r).remove(r)
	r.posted = false
	if r.isWild() {
		return
	}
	if l.n--; l.n == 0 && len(l.exact) > keptChains {
		l.exact, l.one = nil, [1]postedChain{}
	}
}

// spread divides the receives among n chains.
func (l *postedList) spread(n int) {
	old := l.exact
	l.exact = make([]postedChain, n)
	for i := range old {
		for r := old[i].first; r != nil; {
			next := r.next
			l.exact[chainOf(r.src, r.tag, n)].append(r)
			r = next
		}
	}
}

// find returns the first receive that accepts h, nil if there is none.
func (l *postedList) find(h *fabric.Header) *Request {
	wild := l.wild.find(h)
	if l.n == 0 {
		return wild
	}
	exact := l.exact[chainOf(int(h.Src), int(h.Tag), len(l.exact))].find(h)
	if exact == nil || wild != nil && wild.order < exact.order {
		return wild
	}
	return exact
}

// any returns one of the receives, nil if there is none.
func (l *postedList) any() *Request {
	for i := range l.exact {
		if r := l.exact[i].first; r != nil {
			return r
		}
	}
	return l.wild.first
}
