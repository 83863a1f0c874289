package soft

import (
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
)

// drainTime limits the wait for a peer that may write to memory that is being closed.
var drainTime = 5 * time.Second

// region is registered memory.
type region struct {
	ctx    *context
	pd     *pd
	addr   uint64
	n      int
	key    uint32
	access backend.Access

	mu     sync.RWMutex
	closed bool

	pinMu sync.Mutex
	pins  int
	none  chan struct{} // made by Close that waits; closed when pins becomes 0
}

func (r *region) Addr() uint64           { return r.addr }
func (r *region) LKey() uint32           { return r.key }
func (r *region) RKey() uint64           { return uint64(r.key) }
func (r *region) Access() backend.Access { return r.access }

// use calls f if the memory is registered, and reports whether it did. The memory
// stays registered during f, which must not block. A nil region is Go's memory.
func (r *region) use(f func()) bool {
	if r == nil {
		f()
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return false
	}
	f()
	return true
}

// contains reports whether n bytes at addr lie in the region.
func (r *region) contains(addr, n uint64) bool {
	return addr >= r.addr && n <= uint64(r.n) && addr-r.addr <= uint64(r.n)-n
}

// pin records that a peer may write to the region by itself until unpin. It returns
// false if the region is closed.
func (r *region) pin() bool {
	return r.use(func() {
		r.pinMu.Lock()
		r.pins++
		r.pinMu.Unlock()
	})
}

func (r *region) unpin() {
	r.pinMu.Lock()
	defer r.pinMu.Unlock()
	if r.pins--; r.pins == 0 && r.none != nil {
		close(r.none)
		r.none = nil
	}
}

// Close implements backend.Region.
func (r *region) Close() error {
	r.ctx.forget(r)
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.pinMu.Lock()
	if r.pins == 0 {
		r.pinMu.Unlock()
		return nil
	}
	if r.none == nil {
		r.none = make(chan struct{})
	}
	none := r.none
	r.pinMu.Unlock()
	select {
	case <-none:
		return nil
	case <-time.After(drainTime):
		return backend.ErrBusy
	}
}

// span is the memory of a transfer of data.
type span struct {
	region *region
	p      unsafe.Pointer
	n      int
}

func (s span) bytes() []byte { return unsafe.Slice((*byte)(s.p), s.n) }

// at returns the n bytes of a span at offset off.
func (s span) at(off, n int) span { return span{s.region, unsafe.Add(s.p, off), n} }

// span returns n bytes of a region at address addr, which the region contains.
func (r *region) span(addr, n uint64) span { return span{r, fabric.Pointer(addr), int(n)} }
