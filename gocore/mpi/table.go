package mpi

import "sync"

// table maps handles to objects. A handle is index | generation<<32; handles
// made by set are small and never freed.
type table[T any] struct {
	mu    sync.Mutex
	items []entry[T]
	free  []int32
	base  int // first index that add may use

	found func(*T) // called, under the lock, for each object that get and each return; nil: nothing
}

type entry[T any] struct {
	obj  *T
	gen  uint32
	live bool
}

func newTable[T any](base int) *table[T] {
	return &table[T]{items: make([]entry[T], base), base: base}
}

// set puts a predefined object at a fixed handle.
func (t *table[T]) set(i int, obj *T) {
	t.mu.Lock()
	for len(t.items) <= i {
		t.items = append(t.items, entry[T]{})
	}
	t.items[i] = entry[T]{obj: obj, live: true}
	t.mu.Unlock()
}

func (t *table[T]) add(obj *T) int64 {
	t.mu.Lock()
	var i int32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = int32(len(t.items))
		t.items = append(t.items, entry[T]{})
	}
	e := &t.items[i]
	e.gen = (e.gen + 1) & 0x3fffffff
	e.obj, e.live = obj, true
	h := int64(i) | int64(e.gen)<<32
	t.mu.Unlock()
	return h
}

// reserve makes a handle that names nothing until fill gives it an object.
func (t *table[T]) reserve() int64 { return t.add(nil) }

func (t *table[T]) fill(h int64, obj *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entry(h); e != nil {
		e.obj = obj
	}
}

// get returns the object, or nil if the handle names none or is stale.
func (t *table[T]) get(h int64) *T {
	t.mu.Lock()
	obj := t.at(h)
	if obj != nil && t.found != nil {
		t.found(obj)
	}
	t.mu.Unlock()
	return obj
}

// borrow is get without a call of found.
func (t *table[T]) borrow(h int64) *T {
	t.mu.Lock()
	obj := t.at(h)
	t.mu.Unlock()
	return obj
}

// at is get under the lock.
func (t *table[T]) at(h int64) *T {
	if e := t.entry(h); e != nil {
		return e.obj
	}
	return nil
}

// entry returns the entry of a handle, nil if that names no object or is stale.
func (t *table[T]) entry(h int64) *entry[T] {
	i := int(h & 0xffffffff)
	if i >= len(t.items) || h < 0 {
		return nil
	}
	if e := &t.items[i]; e.live && int64(e.gen) == h>>32 {
		return e
	}
	return nil
}

// take removes the object and returns it.
func (t *table[T]) take(h int64) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entry(h)
	if e == nil || int(h&0xffffffff) < t.base {
		return nil
	}
	obj := e.obj
	e.obj, e.live = nil, false
	t.free = append(t.free, int32(h&0xffffffff))
	return obj
}

// each calls f for every object.
func (t *table[T]) each(f func(h int64, obj *T)) {
	t.mu.Lock()
	type pair struct {
		h   int64
		obj *T
	}
	var all []pair
	for i, e := range t.items {
		if e.live && e.obj != nil {
			if t.found != nil {
				t.found(e.obj)
			}
			all = append(all, pair{int64(i) | int64(e.gen)<<32, e.obj})
		}
	}
	t.mu.Unlock()
	for _, p := range all {
		f(p.h, p.obj)
	}
}
