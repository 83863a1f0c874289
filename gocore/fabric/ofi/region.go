//go:build cgo

package ofi

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// region is registered memory.
type region struct {
	t    *transport
	addr uintptr
	n    int
	mr   *libfabric.MR // nil: it is empty, or closed
	uses int           // operations of this process that have its descriptor; under transport.mu
	key  fabric.RemoteKey

	hidden bool // it is not for local memory any more
}

// regions are the transport's, by address.
type regions struct {
	mu   sync.Mutex
	list []*region
	late map[*region]*libfabric.MR // closed, and in use: the provider may read its descriptor
}

// enokey is FI_ENOKEY: the key is taken.
const enokey = libfabric.Errno(266)

// register makes n bytes at addr known to the provider. Keys that the provider
// lets us choose are random: whoever reaches the endpoint needs nothing else.
func (t *transport) register(addr uintptr, n int, access libfabric.Access) (*libfabric.MR, error) {
	for range 8 {
		var key uint64
		if !t.provKey {
			var b [8]byte
			_, _ = rand.Read(b[:]) // it never fails
			key = binary.LittleEndian.Uint64(b[:]) >> 1
			if size := t.info.MRKeySize; size > 0 && size < 8 {
				key &= 1<<(8*size) - 1
			}
		}
		mr, err := t.domain.Register(addr, n, access, key, t.info, t.ep)
		if errors.Is(err, enokey) && !t.provKey {
			continue
		}
		return mr, err
	}
	return nil, errors.New("all keys that were tried are taken")
}

// Register implements fabric.Transport.
func (t *transport) Register(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, libfabric.AccessAll)
}

// RegisterReadOnly implements fabric.ReadOnlyRegisterer.
func (t *transport) RegisterReadOnly(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, libfabric.AccessAll&^libfabric.AccessRemoteWrite)
}

func (t *transport) registerFor(p unsafe.Pointer, n int, access libfabric.Access) (fabric.Region, error) {
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
	r.t.regions.mu.Lock()
	defer r.t.regions.mu.Unlock()
	r.hidden = true
}

// Close implements fabric.Region. As long as an operation of this process uses it,
// the provider keeps it.
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
		_ = mr.Close() // nobody is there to tell
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
	at, _ := slices.BinarySearchFunc(s.list, r.addr, func(o *region, addr uintptr) int {
		if o.addr < addr {
			return -1
		}
		return 1
	})
	s.list = slices.Insert(s.list, at, r)
}

func (s *regions) remove(r *region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.list, r); at >= 0 {
		s.list = slices.Delete(s.list, at, at+1)
	}
}

// find is a region that has n bytes at addr in it, nil if there is none.
func (s *regions) find(addr uintptr, n int) *region {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.list, addr, func(o *region, addr uintptr) int {
		if o.addr <= addr {
			return -1
		}
		return 1
	})
	// Regions may overlap, so the nearest one before need not be the one.
	for at--; at >= 0; at-- {
		if r := s.list[at]; !r.hidden && addr+uintptr(n) <= r.addr+uintptr(r.n) {
			return r
		}
	}
	return nil
}

// closeAll closes what the user has left. The transport is closed.
func (s *regions) closeAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range s.list {
		errs = append(errs, r.mr.Close())
		r.mr = nil
	}
	for _, mr := range s.late {
		errs = append(errs, mr.Close())
	}
	s.list, s.late = nil, nil
	return errors.Join(errs...)
}
