package engine

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/fabric"
)

// regions is a cache of registrations: user memory that stays registered with the
// network as long as the object lives that owns it, so that a buffer which is used
// repeatedly is registered once. The caller of Keep watches that object and calls
// Release before its memory is freed. Memory that can't be watched is never kept, so
// no key is stale.
type regions struct {
	mu   sync.RWMutex
	list []*Region // by address; they do not overlap
}

// Region is a cached registration. It implements fabric.Region for its users: the last
// one to close it after Release ends the registration.
type Region struct {
	e      *Engine
	region fabric.Region
	start  uintptr
	n      int
	users  atomic.Int32
}

// Keep registers n bytes at p with the network. It returns nil if no network needs
// it, the network refuses, or part of the bytes is kept already.
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

// Release removes the region from the cache: Kept and the transport do not find it any
// more. It stays registered until its last user closes it.
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

// Kept returns the region that has n bytes at p, which the caller closes, and the key
// of the bytes. It returns nil if they are not kept.
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
