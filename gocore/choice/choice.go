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
	// tryNear is the same for a way that is slower by a quarter at most: it may be the faster one as soon as the
	// program does something else, and to use it costs little.
	tryNear = 16
)

// Choose returns the way to use next, one of the first few.
func (c *Choice) Choose(few int) int {
	n := c.count.Add(1)
	if n <= tryFirst*uint32(few) {
		return int(n % uint32(few))
	}
	best := c.best(few)
	if few == 1 || n%tryNear != 0 {
		return best
	}
	if n%tryOther == 0 {
		return another(best, few, n/tryOther)
	}
	if other := another(best, few, n/tryNear); c.took[other].Load()/5 <= c.took[best].Load()/4 {
		return other
	}
	return best
}

// best returns the one of the few ways that takes the least time, of those that have been used.
func (c *Choice) best(few int) int {
	best := 0
	for other := range few {
		if t := c.took[other].Load(); t != 0 && t < c.took[best].Load() {
			best = other
		}
	}
	return best
}

// another returns one of the few ways but best, each in turn.
func another(best, few int, turn uint32) int { return (best + 1 + int(turn)%(few-1)) % few }

// Learn records that a way took ns. A time that was long because of something else has little weight.
func (c *Choice) Learn(way int, ns int64) {
	old := c.took[way].Load()
	switch {
	case old == 0:
		old = ns
	case c.count.Load() <= tryFirst*Most:
		old = min(old, ns)
	case ns < old && c.best(Most) != way: // it may be the faster one now
		old -= (old - ns) / 2
	default: // the mean: of two ways, the one whose times vary more would seem faster by its shortest ones
		old += (min(ns, 2*old) - old) / 8
	}
	c.took[way].Store(max(old, 1))
}
