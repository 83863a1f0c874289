package transfer

import (
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/rdmaapi/backend"
)

// Region is registered memory.
type Region struct {
	ID     uint64
	engine *Engine
	base   unsafe.Pointer
	n      int64
	region backend.Region

	mu     sync.Mutex
	closed bool
	users  int           // transfers that have not ended
	idle   chan struct{} // made by unused that waits; closed when users becomes 0
}

// Addr returns the address for peers.
func (r *Region) Addr() uint64 { return r.region.Addr() }

// RKey returns the key for peers.
func (r *Region) RKey() uint64 { return r.region.RKey() }

// Access returns the access that was granted.
func (r *Region) Access() backend.Access { return r.region.Access() }

// take counts a transfer as a user of the region. It returns false if the region is
// closed.
func (r *Region) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.users++
	return true
}

func (r *Region) give() {
	r.mu.Lock()
	if r.users--; r.users == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
	r.mu.Unlock()
}

func (r *Region) open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.closed
}

// unused waits, at most d, until no transfer uses the region, and reports whether
// none does.
func (r *Region) unused(d time.Duration) bool {
	r.mu.Lock()
	if r.users == 0 {
		r.mu.Unlock()
		return true
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
