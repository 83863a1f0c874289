package engine

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/fabric"
)

// regions is the user memory that is registered with the network for as long as
// the object lives that it belongs to, so that what is communicated again and again
// is registered once. Who calls Keep watches that object, and calls Release before
// its memory goes; memory that nobody can watch is never kept, so no key is stale.
type regions struct {
	mu   sync.RWMutex
	list []*Region // by address; they do not overlap
}

// Region is kept memory. It is a fabric.Region for those who use it: closed by its
// last user after it has been released.
type Region struct {
	e      *Engine
	region fabric.Region
	start  uintptr
	n      int
	users  atomic.Int32
}

// Keep registers n bytes at p with the network; nil if there is none that needs it,
// it refuses, or part of them is kept already.
func (e *Engine) Keep(p unsafe.Pointer, n int) *Region {
	if e.net == nil || !e.net.Caps().Keys || n <= 0 {
		return nil
	}
	t := &e.regions
	t.mu.Lock()
	defer t.mu.Unlock()
	at := uintptr(p)
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].start+uintptr(t.list[i].n) > at })
	if i < len(t.list) && t.list[i].start < at+uintptr(n) {
		return nil
	}
	region, err := fabric.RegisterReadOnly(e.net, p, n)
	if err != nil {
		return nil
	}
	r := &Region{e: e, region: region, start: at, n: n}
	r.users.Store(1)
	t.list = append(t.list, nil)
	copy(t.list[i+1:], t.list[i:])
	t.list[i] = r
	return r
}

// Release ends the keeping: nobody finds the memory any more, also not the
// transport, although it stays registered for users that are left.
func (r *Region) Release() {
	t := &r.e.regions
	t.mu.Lock()
	if i := slices.Index(t.list, r); i >= 0 {
		t.list = slices.Delete(t.list, i, i+1)
	}
	t.mu.Unlock()
	if h, ok := r.region.(fabric.Unpublisher); ok {
		h.Unpublish()
	}
	_ = r.Close()
}

// Key implements fabric.Region.
func (r *Region) Key() fabric.RemoteKey { return r.region.Key() }

// Close implements fabric.Region, for one of its users.
func (r *Region) Close() error {
	if r.users.Add(-1) == 0 {
		return r.region.Close()
	}
	return nil
}

// Kept finds n bytes at p in kept memory: the region, which the caller closes, and
// the key of the bytes. nil if they are not kept.
func (e *Engine) Kept(p unsafe.Pointer, n int) (*Region, fabric.RemoteKey) {
	t := &e.regions
	t.mu.RLock()
	defer t.mu.RUnlock()
	at := uintptr(p)
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].start+uintptr(t.list[i].n) > at })
	if i == len(t.list) || t.list[i].start > at || at+uintptr(n) > t.list[i].start+uintptr(t.list[i].n) {
		return nil, fabric.RemoteKey{}
	}
	r := t.list[i]
	r.users.Add(1)
	key := r.region.Key()
	key.Addr += uint64(at - r.start)
	return r, key
}
