package engine

import (
	"sync"
	"sync/atomic"
)

// Background is an operation that has to advance although no thread may be waiting
// for it, such as a nonblocking collective: a rank in the middle of a tree has to pass
// on the data that it receives, while its program is in another call, or others wait
// for ever.
type Background interface {
	// Advance continues as far as it can without waiting and reports whether the
	// operation has completed. It may be called concurrently.
	Advance() bool
}

// backgroundList has the operations that every waiting thread advances.
type backgroundList struct {
	mu   sync.Mutex
	list []Background
	n    atomic.Int32
}

// AddBackground lets every call that waits or tests advance w, until it is complete.
func (e *Engine) AddBackground(w Background) {
	c := &e.background
	c.mu.Lock()
	c.list = append(c.list, w)
	c.n.Store(int32(len(c.list)))
	c.mu.Unlock()
}

// Progress polls and advances background operations. Both may touch memory of the
// program: a goroutine that calls Progress or Poll first turns faults into panics
// (debug.SetPanicOnFault, a setting of each goroutine), as Wait does itself.
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

// advanceOne advances an operation that the caller may have no part in. An operation
// that panics is not advanced again.
func (e *Engine) advanceOne(w Background) (complete bool) {
	defer e.contain("an operation in progress")
	complete = true
	complete = w.Advance()
	return complete
}
