package p2p

import (
	"math/bits"
	"sync/atomic"
)

// protocol is the protocol of a long message whose sender waits: the receiver pulls
// it through the kernel, by one thread or several, or the sender streams it through the
// ring while the receiver takes it out. Streaming is two to three times as fast where each has
// a core of its own, and slower than pulling where they share one. A process can't
// know which is the case, so the receiver measures.
type protocol uint8

const (
	pull protocol = iota
	stream
	divided // pull by several threads, if the message is long enough for that
	protocols
)

// timing has the times that messages of one size from one peer took by each protocol:
// nanoseconds, averaged over the latest; 0 if none has come by it yet. Concurrent
// receives may overwrite each other's average, which does no harm.
type timing struct {
	took  [protocols]atomic.Int64
	count atomic.Uint32
}

const (
	// tryFirst is how many messages use each protocol, in turn, before one is chosen:
	// the very first ones are slow because their memory has not been touched yet.
	tryFirst = 3
	// divideFrom is the length from which on several threads pull: streaming occupies two cores, too, and is as fast
	// for less.
	divideFrom = 8 << 20
	// tryOther is after how many messages a slower protocol is measured again.
	tryOther = 64
)

// choose returns the protocol for the next message, one of the first few.
func (p *timing) choose(few protocol) protocol {
	n := p.count.Add(1)
	if n <= tryFirst*uint32(few) {
		return protocol(n % uint32(few))
	}
	best := pull
	for other := range few {
		if p.took[other].Load() < p.took[best].Load() {
			best = other
		}
	}
	if n%tryOther == 0 {
		return (best + 1 + protocol(n/tryOther%uint32(few-1))) % few
	}
	return best
}

// learn records that a message took ns by the protocol by. A message that was delayed
// by something else has little weight.
func (p *timing) learn(by protocol, ns int64) {
	old := p.took[by].Load()
	switch {
	case old == 0:
		old = ns
	case ns < old:
		old -= (old - ns) / 2
	default:
		old += (min(ns, 2*old) - old) / 8
	}
	p.took[by].Store(max(old, 1))
}

// timings has the timing of one peer for each power of two of the size.
type timings [24]timing

func (p *timings) of(size int) *timing { return &p[min(bits.Len(uint(size)), len(p)-1)] }
