//go:build cgo

package verbs

import (
	"slices"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/ibverbs"
)

// region is registered memory.
type region struct {
	t          *Transport
	start, end uint64
	mr         *ibverbs.MR // nil if it is empty, or deregistered
	uses       int         // requests under way that have its key as local memory
	closed     bool
}

// Key implements fabric.Region.
func (r *region) Key() fabric.RemoteKey {
	k := fabric.RemoteKey{Addr: r.start}
	if r.mr != nil {
		k.Key = uint64(r.mr.RKey())
	}
	return k
}

// Close takes the memory back. As long as an operation of this process uses it,
// the device keeps it: a queue pair does not survive that its memory goes.
func (r *region) Close() error {
	t := r.t
	t.mu.Lock()
	if r.closed {
		t.mu.Unlock()
		return nil
	}
	r.closed = true
	t.regions.remove(r)
	delete(t.hidden, r)
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
	t.regions.remove(r)
	if t.hidden == nil {
		t.hidden = map[*region]bool{}
	}
	t.hidden[r] = true
}

// Register implements fabric.Transport.
func (t *Transport) Register(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, ibverbs.LocalWrite|ibverbs.RemoteWrite|ibverbs.RemoteRead|ibverbs.RemoteAtomic)
}

// RegisterReadOnly implements fabric.ReadOnlyRegisterer.
func (t *Transport) RegisterReadOnly(p unsafe.Pointer, n int) (fabric.Region, error) {
	return t.registerFor(p, n, ibverbs.LocalWrite|ibverbs.RemoteRead)
}

func (t *Transport) registerFor(p unsafe.Pointer, n int, access ibverbs.Access) (fabric.Region, error) {
	start := uint64(uintptr(p))
	r := &region{t: t, start: start, end: start + uint64(max(n, 0))}
	if n == 0 {
		return r, nil
	}
	mr, err := t.register(start, n, access)
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
	t.regions.add(r)
	return r, nil
}

// register pins the pages, or, where that is refused and the device can, has them
// paged on demand.
func (t *Transport) register(start uint64, n int, access ibverbs.Access) (*ibverbs.MR, error) {
	mr, err := t.pd.Register(start, n, access)
	if err == nil || !t.attr.OnDemand {
		return mr, err
	}
	if !t.attr.OnDemandAtomic {
		access &^= ibverbs.RemoteAtomic
	}
	if paged, again := t.pd.Register(start, n, access|ibverbs.OnDemand); again == nil {
		return paged, nil
	}
	return nil, err
}

// regions are sorted by start; most[i] is the highest end of those up to i, so
// that a search knows when no earlier one reaches far enough.
type regions struct {
	list []*region
	most []uint64
	last *region // where the search before ended
}

func (s *regions) add(r *region) {
	i, _ := slices.BinarySearchFunc(s.list, r.start, func(x *region, start uint64) int {
		if x.start <= start {
			return -1
		}
		return 1
	})
	s.list = slices.Insert(s.list, i, r)
	s.most = append(s.most, 0)
	s.update(i)
}

func (s *regions) remove(r *region) {
	i := slices.Index(s.list, r)
	if i < 0 {
		return
	}
	s.list = slices.Delete(s.list, i, i+1)
	s.most = s.most[:len(s.list)]
	s.last = nil
	s.update(i)
}

func (s *regions) update(from int) {
	for i := from; i < len(s.list); i++ {
		s.most[i] = s.list[i].end
		if i > 0 {
			s.most[i] = max(s.most[i], s.most[i-1])
		}
	}
}

// find returns a region that all n bytes at start are in, nil if there is none.
func (s *regions) find(start uint64, n int) *region {
	end := start + uint64(n)
	if r := s.last; r != nil && r.start <= start && end <= r.end {
		return r
	}
	lo, hi := 0, len(s.list)
	for lo < hi {
		if mid := (lo + hi) / 2; s.list[mid].start <= start {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for i := lo - 1; i >= 0 && s.most[i] >= end; i-- {
		if s.list[i].end >= end {
			s.last = s.list[i]
			return s.last
		}
	}
	return nil
}
