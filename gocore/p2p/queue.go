package p2p

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gormapy/gocore/fabric"
)

// queue has the posted receives and the unexpected messages of one context.
type queue struct {
	mu      sync.Mutex
	ctx     uint32
	posted  postedList
	arrived []*message

	listener Listener // nil: nobody listens
	world    []int    // world ranks of those that may tell it something

	revoked  atomic.Bool
	internal bool                  // the messages are not the program's
	names    func(rank int) string // how errors name ranks; nil: by their numbers
}

// peer names the peer of a message in errors: a rank, and the tag if that is the program's.
func (q *queue) peer(rank, tag int) string {
	name := fmt.Sprintf("rank %d", rank)
	switch {
	case rank < 0:
		name = "any rank"
	case q.names != nil:
		name = q.names(rank)
	case q.internal:
		name += " of the communicator"
	}
	switch {
	case q.internal:
		return name
	case tag == AnyTag:
		return name + " with any tag"
	}
	return fmt.Sprintf("%s with tag %d", name, tag)
}

// message is an unexpected message: it arrived before its receive was posted.
type message struct {
	world   int // sender
	header  fabric.Header
	payload []byte // own copy
}

func newQueue(ctx uint32) *queue {
	return &queue{ctx: ctx}
}

// postedList has the posted receives in posting order.
type postedList struct{ first, last *Request }

func (q *queue) post(r *Request) {
	r.posted, r.prev, r.next = true, q.posted.last, nil
	if r.prev == nil {
		q.posted.first = r
	} else {
		r.prev.next = r
	}
	q.posted.last = r
}

func (q *queue) unpost(r *Request) bool {
	if !r.posted {
		return false
	}
	if r.prev == nil {
		q.posted.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		q.posted.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.posted, r.prev, r.next = false, nil, nil
	return true
}

// takePosted removes and returns the first receive that accepts h.
func (q *queue) takePosted(h *fabric.Header) *Request {
	r := q.firstPosted(h)
	if r != nil {
		q.unpost(r)
	}
	return r
}

// firstPosted returns the first receive that accepts h, nil if there is none.
func (q *queue) firstPosted(h *fabric.Header) *Request {
	for r := q.posted.first; r != nil; r = r.next {
		if accepts(r.src, r.tag, h) && r.gen == h.Gen {
			return r
		}
	}
	return nil
}

// findArrived returns the index of the first unexpected message that src and tag
// accept, -1 if there is none.
func (q *queue) findArrived(src, tag int, gen uint32) int {
	for i, m := range q.arrived {
		if accepts(src, tag, &m.header) && m.header.Gen == gen {
			return i
		}
	}
	return -1
}

func (q *queue) removeArrived(i int) *message {
	m := q.arrived[i]
	if i == 0 {
		q.arrived[0] = nil
		q.arrived = q.arrived[1:]
	} else {
		q.arrived = append(q.arrived[:i], q.arrived[i+1:]...)
	}
	return m
}

func accepts(src, tag int, h *fabric.Header) bool {
	return (src == AnySource || src == int(h.Src)) && (tag == AnyTag || tag == int(h.Tag))
}
