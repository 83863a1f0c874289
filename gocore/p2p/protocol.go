package p2p

import (
	"math/bits"

	"gormapy/gocore/choice"
)

// The protocols of a long message whose sender waits: the receiver pulls
// it through the kernel, by one thread or several, or the sender streams it through the
// ring while the receiver takes it out. Streaming is two to three times as fast where each has
// a core of its own, and slower than pulling where they share one. A process can't
// know which is the case, so the receiver measures. A receiver that has announced a long message itself pulls: see announced.
const (
	pull = iota
	stream
	divided // pull by several threads, if the message is long enough for that
	protocols
)

// divideFrom is the length from which on several threads pull: streaming occupies two cores, too, and is as fast
// for less.
const divideFrom = 8 << 20

// timings has the choice for messages from one peer, for each power of two of the size.
type timings [34]choice.Choice

func (p *timings) of(size int) *choice.Choice { return &p[min(bits.Len(uint(size)), len(p)-1)] }
