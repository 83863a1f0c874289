// Package choice chooses the fastest of several ways to do the same again and again, by measuring them.
//
// It may import only the standard library.
package choice

import "sync/atomic"

// Most is the largest number of ways.
const Most = 3

// Choice has the times that each way took: nanoseconds, averaged over the latest; 0 if it has not been used yet. The zero
// value has none. Concurrent users may overwrite each other's average, which does no harm.
//
// A way that seems faster than it is will be used, and that corrects it; one that seems slower is seldom used. So the first
// times count as the shortest of them, not as their average: the very first ones are slow because memory has not been
// touched yet, and threads have not been started.
type Choice struct {
	took  [Most]atomic.Int64
	count atomic.Uint32
}

const (
	// tryFirst is how often each way is used, in turn, before one is chosen.
	tryFirst = 4
	// tryOther is after how many times a slower way is measured again.
	tryOther = 64
)

// Choose returns the way to use next, one of the first few.
func (c *Choice) Choose(few int) int {
	n := c.count.Add(1)
	if n <= tryFirst*uint32(few) {
		return int(n % uint32(few))
	}
	best := 0
	for other := range few {
		if c.took[other].Load() < c.took[best].Load() {
			best = other
		}
	}
	if n%tryOther == 0 && few > 1 {
		return (best + 1 + int(n/tryOther)%(few-1)) % few
	}
	return best
}

// Learn records that a way took ns. A time that was long because of something else has little weight.
func (c *Choice) Learn(way int, ns int64) {
	old := c.took[way].Load()
	switch {
	case old == 0:
		old = ns
	case c.count.Load() <= tryFirst*Most:
		old = min(old, ns)
	case ns < old:
		old -= (old - ns) / 2
	default:
		old += (min(ns, 2*old) - old) / 8
	}
	c.took[way].Store(max(old, 1))
}
