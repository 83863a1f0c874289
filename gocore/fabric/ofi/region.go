//go:build cgo

package ofi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// region is registered memory.
type region struct {
	t    *transport
	addr uintptr
	n    int
	mr   *libfabric.MR // nil: it is empty, or closed
	uses int           // operations of this process that use its descriptor; under transport.mu
	key  fabric.RemoteKey
}

// regions has the regions of a transport.
type regions struct {
	mu          sync.Mutex
	table       device.Table[*region]     // for local memory, too
	unpublished map[*region]bool          // for peers only
	late        map[*region]*libfabric.MR // closed while in use: the provider may read the descriptor
}

func (t *transport) register(addr uintptr, n int, access device.Access) (*libfabric.MR, error) {
	return t.offer.Register(t.domain, t.ep, addr, n, access)
}

// Register implements fabric.Transport.
func (t *transport) Register(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, device.AllAccess)
}

// RegisterReadOnly implements fabric.ReadOnlyRegisterer.
func (t *transport) RegisterReadOnly(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, device.ReadOnly)
}

func (t *transport) registerFor(p unsafe.Pointer, n int, access device.Access) (fabric.Region, error) {
	if n < 0 {
		return nil, fmt.Errorf("register %d bytes", n)
	}
	r := &region{t: t, addr: uintptr(p), n: n}
	if n == 0 {
		return r, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	mr, err := t.register(r.addr, n, access)
	if err != nil {
		return nil, fmt.Errorf("register %d bytes at %#x with provider %s: %w", n, r.addr, t.info.Provider, err)
	}
	r.mr, r.key.Key = mr, mr.Key
	if t.virtual {
		r.key.Addr = uint64(r.addr)
	}
	t.regions.add(r)
	return r, nil
}

// Key implements fabric.Region.
func (r *region) Key() fabric.RemoteKey { return r.key }

// Unpublish implements fabric.Unpublisher.
func (r *region) Unpublish() {
	s := &r.t.regions
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.table.Remove(r) {
		return
	}
	if s.unpublished == nil {
		s.unpublished = map[*region]bool{}
	}
	s.unpublished[r] = true
}

// Close implements fabric.Region. As long as an operation of this process uses the
// memory, it stays registered.
func (r *region) Close() error {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.mr == nil {
		return nil
	}
	r.t.regions.remove(r)
	mr := r.mr
	r.mr = nil
	if r.uses > 0 {
		r.t.regions.postpone(r, mr)
		return nil
	}
	return mr.Close()
}

// unuse ends an operation's use of r. The caller has the lock.
func (r *region) unuse() {
	if r.uses--; r.uses > 0 {
		return
	}
	s := &r.t.regions
	s.mu.Lock()
	mr := s.late[r]
	delete(s.late, r)
	s.mu.Unlock()
	if mr != nil {
		_ = mr.Close() // there is no caller to report an error to
	}
}

func (s *regions) postpone(r *region, mr *libfabric.MR) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late == nil {
		s.late = map[*region]*libfabric.MR{}
	}
	s.late[r] = mr
}

func (s *regions) add(r *region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Add(r, uint64(r.addr), uint64(r.addr)+uint64(r.n))
}

func (s *regions) remove(r *region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Remove(r)
	delete(s.unpublished, r)
}

// find returns a region that contains n bytes at addr, nil if there is none.
func (s *regions) find(addr uintptr, n int) *region {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Find(uint64(addr), n)
}

// closeAll closes the regions that the user has not closed. The transport is closed.
func (s *regions) closeAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range slices.AppendSeq(s.table.All(), maps.Keys(s.unpublished)) {
		errs = append(errs, r.mr.Close())
		r.mr = nil
	}
	for _, mr := range s.late {
		errs = append(errs, mr.Close())
	}
	s.table, s.unpublished, s.late = device.Table[*region]{}, nil, nil
	return errors.Join(errs...)
}
