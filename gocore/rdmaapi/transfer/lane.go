package transfer

import (
	"math/bits"

	"gormapy/gocore/rdmaapi/backend"
)

// between is after how many work requests one is signalled at the latest.
const between = 32

// posted is what a work request of a lane belongs to: a piece of a transfer, or its
// notice.
type posted struct{ t *transfer }

// lane is one queue pair of a link, and its work requests that have not completed.
type lane struct {
	index      int
	qp         backend.QP
	ring       []posted // a power of two of them
	max        uint32
	head, tail uint32
	silent     int              // taken in since the last one that was signalled
	stuck      []backend.SendWR // for which the device had no room
	dead       bool             // a request has failed; what else completes is flushed
}

func newLane(index int, qp backend.QP, max int) *lane {
	return &lane{index: index, qp: qp, ring: make([]posted, 1<<bits.Len(uint(max-1))), max: uint32(max)}
}

func (l *lane) room() int           { return int(l.max - (l.tail - l.head)) }
func (l *lane) at(n uint32) *posted { return &l.ring[n&uint32(len(l.ring)-1)] }
func (l *lane) slot(n uint32) int   { return int(n & uint32(len(l.ring)-1)) }

// cookie names the request n of the lane: its number, and the lane.
func (l *lane) cookie(n uint32) uint64 { return uint64(l.index)<<32 | uint64(n) }

// retire takes the requests before number n out, or also that one, and calls f for
// each. It returns whether n is outstanding; if not, nothing happens.
func (l *lane) retire(n uint32, also bool, f func(p posted)) bool {
	if n-l.head >= l.tail-l.head {
		return false
	}
	if also {
		n++
	}
	for ; l.head != n; l.head++ {
		p := l.at(l.head)
		f(*p)
		*p = posted{}
	}
	return true
}

// push takes a request in, which is then to be posted.
func (l *lane) push(t *transfer, w *backend.SendWR) {
	*l.at(l.tail) = posted{t}
	w.Cookie = l.cookie(l.tail)
	l.tail++
	if l.silent++; l.silent >= between {
		w.Signaled = true
		l.silent = 0
	}
}
