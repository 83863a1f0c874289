package engine

import (
	"sync"
	"sync/atomic"
)

// Background is an operation in progress that nobody may be waiting for just now, such
// as a nonblocking collective: a rank in the middle of a tree has to pass on what
// it gets, while its program is in another call, or others wait for ever.
type Background interface {
	// Advance goes on as far as it can without waiting and reports whether the
	// operation has completed. Threads may call it at once.
	Advance() bool
}

// backgroundList is the work that whoever waits for anything carries on.
type backgroundList struct {
	mu   sync.Mutex
	list []Background
	n    atomic.Int32
}

// AddBackground has w carried on by all calls that wait or test, until it is complete.
func (e *Engine) AddBackground(w Background) {
	c := &e.background
	c.mu.Lock()
	c.list = append(c.list, w)
	c.n.Store(int32(len(c.list)))
	c.mu.Unlock()
}

// Progress polls, and carries on what nobody waits for. Both may touch memory of the
// program: whoever calls it, or Poll, has faults made panics (debug.SetPanicOnFault, a
// setting of each goroutine), as Wait does itself.
func (e *Engine) Progress() {
	e.Poll()
	e.advanceBackground()
}

func (e *Engine) advanceBackground() {
	c := &e.background
	if c.n.Load() == 0 || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	keep := c.list[:0]
	for _, w := range c.list {
		if !e.advanceOne(w) {
			keep = append(keep, w)
		}
	}
	clear(c.list[len(keep):])
	c.list = keep
	c.n.Store(int32(len(keep)))
}

// advanceOne goes on with work that is not its caller's. Work that panics is carried
// no further.
func (e *Engine) advanceOne(w Background) (complete bool) {
	defer e.contain("an operation in progress")
	complete = true
	complete = w.Advance()
	return complete
}
