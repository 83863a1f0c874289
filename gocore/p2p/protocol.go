package p2p

import (
	"math/bits"
	"sync/atomic"
)

// A long message whose sender waits can come in two ways: the receiver pulls it
// through the kernel, or the sender streams it through the ring while the
// receiver takes it out. Streaming is two to three times as fast where each has
// a core of its own, and slower than pulling where they share one, which a
// process can't know. So the receiver measures.
type protocol uint8

const (
	pull protocol = iota
	stream
	protocols
)

// timing is how long messages of one size from one peer took: nanoseconds,
// averaged over the latest, 0 if none has come that way yet. Threads that receive
// at once may overwrite each other's average, which does no harm.
type timing struct {
	took  [protocols]atomic.Int64
	count atomic.Uint32
}

const (
	// tryFirst is how many messages come by both ways in turn before one is chosen:
	// the first of all find memory that nobody has touched yet.
	tryFirst = 6
	// tryOther is how many come the faster way before one comes the other.
	tryOther = 64
)

// choose is the way for the next message.
func (p *timing) choose() protocol {
	n := p.count.Add(1)
	if n <= tryFirst {
		return protocol(n % uint32(protocols))
	}
	best := pull
	if p.took[stream].Load() < p.took[pull].Load() {
		best = stream
	}
	if n%tryOther == 0 {
		return protocols - 1 - best
	}
	return best
}

// learn notes that a message took ns by the way w. One that was held up by
// something else counts little.
func (p *timing) learn(w protocol, ns int64) {
	old := p.took[w].Load()
	switch {
	case old == 0:
		old = ns
	case ns < old:
		old -= (old - ns) / 2
	default:
		old += (min(ns, 2*old) - old) / 8
	}
	p.took[w].Store(max(old, 1))
}

// timings has the paces of one peer by the power of two that the size is.
type timings [24]timing

func (p *timings) of(size int) *timing { return &p[min(bits.Len(uint(size)), len(p)-1)] }
