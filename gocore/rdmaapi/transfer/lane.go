package transfer

import (
	"math/bits"

	"gormapy/gocore/rdmaapi/backend"
)

// signalInterval is the largest distance of two signalled work requests.
const signalInterval = 32

// posted is an outstanding work request of a lane: a piece or a notice of a transfer.
type posted struct{ t *transfer }

// lane is one queue pair of a link, with its work requests that have not completed.
type lane struct {
	index      int
	qp         backend.QP
	ring       []posted // its length is a power of two
	max        uint32
	head, tail uint32
	unsignaled int              // requests since the last signalled one
	stuck      []backend.SendWR // requests for which the device had no room
	dead       bool             // a request has failed; all later ones are flushed
}

func newLane(index int, qp backend.QP, max int) *lane {
	return &lane{index: index, qp: qp, ring: make([]posted, 1<<bits.Len(uint(max-1))), max: uint32(max)}
}

func (l *lane) room() int           { return int(l.max - (l.tail - l.head)) }
func (l *lane) at(n uint32) *posted { return &l.ring[n&uint32(len(l.ring)-1)] }
func (l *lane) slot(n uint32) int   { return int(n & uint32(len(l.ring)-1)) }

// cookie returns the cookie of request n: the lane's index and n.
func (l *lane) cookie(n uint32) uint64 { return uint64(l.index)<<32 | uint64(n) }

// retire removes the requests before number n, with also that one, too, and calls f
// for each. It reports whether n is outstanding; if not, it does nothing.
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

// push adds a request, which the caller then posts.
func (l *lane) push(t *transfer, w *backend.SendWR) {
	*l.at(l.tail) = posted{t}
	w.Cookie = l.cookie(l.tail)
	l.tail++
	if l.unsignaled++; l.unsignaled >= signalInterval {
		w.Signaled = true
		l.unsignaled = 0
	}
}
