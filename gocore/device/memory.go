package device

import (
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/ibverbs"
)

// Access is a set of allowed accesses to registered memory of either library. Memory with
// none of them can only be sent from.
type Access = ibverbs.Access

const (
	// LocalWrite is for memory that no peer accesses, ReadOnly for memory that they only
	// read, AllAccess for memory that they read and change.
	LocalWrite = ibverbs.LocalWrite
	ReadOnly   = LocalWrite | ibverbs.RemoteRead
	AllAccess  = ReadOnly | ibverbs.RemoteWrite | ibverbs.RemoteAtomic
)

// Mapping is memory of this process's own that is registered as MR.
type Mapping[M io.Closer] struct {
	Mem []byte
	MR  M
	// registered reports whether MR is valid. Some users need no registration.
	registered bool
}

// Map maps n bytes, and registers them by register unless that is nil. what names them in
// errors.
func Map[M io.Closer](n int, what string, register func(addr uintptr, n int) (M, error)) (*Mapping[M], error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for %s: %w", n, what, err)
	}
	_ = unix.Madvise(mem, unix.MADV_DONTFORK)
	m := &Mapping[M]{Mem: mem}
	if register == nil {
		return m, nil
	}
	if m.MR, err = register(uintptr(unsafe.Pointer(&mem[0])), n); err != nil {
		_ = unix.Munmap(mem)
		return nil, fmt.Errorf("register %s: %w", what, err)
	}
	m.registered = true
	return m, nil
}

// Deregister ends the registration. The memory stays mapped.
func (m *Mapping[M]) Deregister() error {
	if m == nil || !m.registered {
		return nil
	}
	m.registered = false
	return m.MR.Close()
}

// Unmap unmaps the memory.
func (m *Mapping[M]) Unmap() error {
	if m == nil || m.Mem == nil {
		return nil
	}
	mem := m.Mem
	m.Mem = nil
	return unix.Munmap(mem)
}

// Slab is a part of a Mapping, cut into equal buffers. It is not safe for concurrent use.
type Slab[M io.Closer] struct {
	*Mapping[M]
	Size int // of a buffer
	mem  []byte
	free []int32
}

// Cut makes a slab of count buffers of size bytes, from byte off of m on.
func (m *Mapping[M]) Cut(off, count, size int) *Slab[M] {
	s := &Slab[M]{Mapping: m, Size: size, mem: m.Mem[off:][:count*size], free: make([]int32, count)}
	for i := range s.free {
		s.free[i] = int32(count - 1 - i)
	}
	return s
}

// NewSlab maps and registers memory for count buffers of size bytes.
func NewSlab[M io.Closer](count, size int, what string, register func(addr uintptr, n int) (M, error)) (*Slab[M], error) {
	m, err := Map(count*size, what, register)
	if err != nil {
		return nil, err
	}
	return m.Cut(0, count, size), nil
}

// Free returns how many buffers are free.
func (s *Slab[M]) Free() int { return len(s.free) }

// Take returns a free buffer's number, -1 if there is none.
func (s *Slab[M]) Take() int32 {
	if len(s.free) == 0 {
		return -1
	}
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return i
}

// Give gives a buffer back.
func (s *Slab[M]) Give(i int32) { s.free = append(s.free, i) }

// At returns the address of buffer i.
func (s *Slab[M]) At(i int32) unsafe.Pointer { return unsafe.Pointer(&s.mem[int(i)*s.Size]) }

// Addr returns the address of buffer i as a number.
func (s *Slab[M]) Addr(i int32) uint64 { return uint64(uintptr(s.At(i))) }

// Bytes returns buffer i.
func (s *Slab[M]) Bytes(i int32) []byte { return s.mem[int(i)*s.Size:][:s.Size] }

// Close ends the registration and unmaps the memory, for all slabs of the Mapping.
func (s *Slab[M]) Close() error {
	if s == nil {
		return nil
	}
	err := s.Deregister()
	_ = s.Unmap()
	return err
}
