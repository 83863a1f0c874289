//go:build cgo

package verbs

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/ibverbs"
)

// slab is registered memory of the transport, cut into equal buffers.
type slab struct {
	mem  []byte
	mr   *ibverbs.MR
	size int
	free []int32
}

func newSlab(t *Transport, count, size int, what string) (*slab, error) {
	mem, err := unix.Mmap(-1, 0, count*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for %s: %w", count*size, what, err)
	}
	// A child of a fork does not get them, so that the parent's pages stay where the device knows them.
	_ = unix.Madvise(mem, unix.MADV_DONTFORK)
	s := &slab{mem: mem, size: size, free: make([]int32, count)}
	for i := range s.free {
		s.free[i] = int32(count - 1 - i)
	}
	s.mr, err = t.register(s.addr(0), len(mem), ibverbs.LocalWrite)
	if err != nil {
		_ = unix.Munmap(mem)
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

// take returns a free buffer's number, -1 if there is none.
func (s *slab) take() int32 {
	if len(s.free) == 0 {
		return -1
	}
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return i
}

func (s *slab) give(i int32) { s.free = append(s.free, i) }

func (s *slab) at(i int32) unsafe.Pointer { return unsafe.Pointer(&s.mem[int(i)*s.size]) }

func (s *slab) addr(i int32) uint64 { return uint64(uintptr(s.at(i))) }

func (s *slab) close() error {
	if s == nil {
		return nil
	}
	err := s.mr.Close()
	_ = unix.Munmap(s.mem)
	return err
}
