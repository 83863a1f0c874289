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
	arrived arrivedList

	listener Listener // nil: nobody listens
	world    []int    // world ranks of those that may tell it something

	revoked  atomic.Bool
	internal bool                  // the messages are not the program's
	checked  bool                  // a checker is told of them in any case
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

func newQueue(ctx uint32) *queue {
	return &queue{ctx: ctx}
}

func (q *queue) unpost(r *Request) bool {
	if !r.posted {
		return false
	}
	q.posted.remove(r)
	return true
}

// takePosted removes and returns the first receive that accepts h.
func (q *queue) takePosted(h *fabric.Header) *Request {
	r := q.posted.find(h)
	if r != nil {
		q.posted.remove(r)
	}
	return r
}

func accepts(src, tag int, h *fabric.Header) bool {
	return (src == AnySource || src == int(h.Src)) && (tag == AnyTag || tag == int(h.Tag))
}
