//go:build interleave

package explore

import (
	"fmt"
	"unsafe"
)

// # Weak memory
//
// Package atom's own accesses are sequentially consistent on all processors. On some
// (arm64) they order the accesses past it less than on amd64: a store of package atom
// is a release, so that what is written before it is seen before it, but what is
// written after it can be seen before it, too. With Options.Weak each thread has a
// store buffer in which its atomic stores wait, in their order, while its accesses past
// package atom reach memory at once. The search chooses when the oldest store leaves the
// buffer. All have left before the thread's next load or read-modify-write of package
// atom (those are acquires, and sequentially consistent with the stores), before a call
// of the kernel, and at the end. The stores of a thread that dies still leave.
//
// So the search finds a protocol that opens a section by a store (a seqlock's odd
// number) and writes its data plainly; an exchange that opens it is not delayed. The
// model does not cover that the other side's plain reads may be made late, after an
// atomic load that follows them: to close such a section a reader must read the number
// by a compare-and-swap.

// delayed is a store that waits in a buffer.
type delayed struct {
	p    unsafe.Pointer
	size int
	v    uint64
}

// Delay implements atom.Stepper.
func (w *World) Delay(p unsafe.Pointer, size int, v uint64) bool {
	t := w.current
	if !w.opt.Weak || t.unwinds {
		return false
	}
	t.buffer = append(t.buffer, delayed{p, size, v})
	return true
}

// commit writes the oldest store of the thread's buffer to memory.
func (t *Thread) commit() {
	d := t.buffer[0]
	t.buffer = t.buffer[1:]
	if d.size == 4 {
		*(*uint32)(d.p) = uint32(d.v)
	} else {
		*(*uint64)(d.p) = d.v
	}
	if t.w.trace != nil {
		fmt.Fprintf(t.w.trace, "    %-10s       its store to %s is seen: %#x\n", t.Name, t.w.name(d.p), d.v)
	}
	for _, o := range t.w.threads {
		if o != t {
			o.fresh = true
		}
	}
}

// drain writes all stores of the thread's buffer to memory.
func (t *Thread) drain() {
	for len(t.buffer) > 0 {
		t.commit()
	}
}

// drained reports whether all stores have been written to memory.
func (w *World) drained() bool {
	for _, t := range w.threads {
		if len(t.buffer) > 0 {
			return false
		}
	}
	return true
}

// mixBuffer adds the contents of the thread's buffer to a hash.
func (t *Thread) mixBuffer(h uint64) uint64 {
	for _, d := range t.buffer {
		h = mix(mix(h, t.w.place(d.p)), d.v)
	}
	return h
}
