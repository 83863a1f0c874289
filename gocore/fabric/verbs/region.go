//go:build cgo

package verbs

import (
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/ibverbs"
)

// region is registered memory.
type region struct {
	t      *Transport
	start  uint64
	mr     *ibverbs.MR // nil if it is empty, or deregistered
	uses   int         // operations under way that use its key for local memory
	closed bool
}

// Key implements fabric.Region.
func (r *region) Key() fabric.RemoteKey {
	k := fabric.RemoteKey{Addr: r.start}
	if r.mr != nil {
		k.Key = uint64(r.mr.RKey())
	}
	return k
}

// Close implements fabric.Region. As long as an operation of this process uses the
// memory it stays registered, because a queue pair fails if its memory goes.
func (r *region) Close() error {
	t := r.t
	t.mu.Lock()
	if r.closed {
		t.mu.Unlock()
		return nil
	}
	r.closed = true
	t.regions.Remove(r)
	delete(t.unpublished, r)
	mr := r.mr
	if r.uses > 0 {
		mr = nil
	}
	t.mu.Unlock()
	if mr == nil {
		return nil
	}
	return mr.Close()
}

// Unpublish implements fabric.Unpublisher.
func (r *region) Unpublish() {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.mr == nil || r.closed || t.closed {
		return
	}
	t.regions.Remove(r)
	if t.unpublished == nil {
		t.unpublished = map[*region]bool{}
	}
	t.unpublished[r] = true
}

// Register implements fabric.Transport.
func (t *Transport) Register(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, device.AllAccess)
}

// RegisterReadOnly implements fabric.ReadOnlyRegisterer.
func (t *Transport) RegisterReadOnly(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, device.ReadOnly)
}

func (t *Transport) registerFor(p unsafe.Pointer, n int, access device.Access) (fabric.Region, error) {
	start := uint64(uintptr(p))
	r := &region{t: t, start: start}
	if n == 0 {
		return r, nil
	}
	mr, err := t.register(uintptr(p), n, access)
	if err != nil {
		return nil, err
	}
	r.mr = mr
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = mr.Close()
		return nil, errClosed
	}
	t.regions.Add(r, start, start+uint64(n))
	return r, nil
}

func (t *Transport) register(addr uintptr, n int, access device.Access) (*ibverbs.MR, error) {
	return t.port.Register(t.pd, addr, n, access)
}

func (t *Transport) newSlab(count, size int, what string) (*slab, error) {
	return device.NewSlab(count, size, what, func(addr uintptr, n int) (*ibverbs.MR, error) {
		return t.register(addr, n, device.LocalWrite)
	})
}
