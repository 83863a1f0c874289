package sys

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// MapAligned maps bytes of file fd from offset at, or private memory if fd is -1,
// to an address that is a multiple of align, a power of two.
func MapAligned(fd int, at, bytes, align uint64) (uintptr, error) {
	flags := unix.MAP_SHARED
	if fd < 0 {
		flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	}
	page := uint64(os.Getpagesize())
	if align <= page {
		p, err := unix.MmapPtr(fd, int64(at), nil, uintptr(bytes), readWrite, flags)
		return uintptr(p), err
	}
	// Reserve room at any address, map into its aligned part, and unmap the rest.
	bytes = (bytes + page - 1) / page * page
	room := bytes + align - page
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(room), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return 0, err
	}
	begin := uintptr(p)
	before := -begin & uintptr(align-1)
	if _, err := unix.MmapPtr(fd, int64(at), unsafe.Add(p, before), uintptr(bytes), readWrite, flags|unix.MAP_FIXED); err != nil {
		Unmap(begin, room)
		return 0, err
	}
	Unmap(begin, uint64(before))
	Unmap(begin+before+uintptr(bytes), room-bytes-uint64(before))
	return begin + before, nil
}

// Unmap ends a mapping of MapAligned. If bytes is 0 it does nothing.
func Unmap(addr uintptr, bytes uint64) {
	if bytes > 0 {
		_ = unix.MunmapPtr(pointerTo(addr), uintptr(bytes))
	}
}

// pointerTo returns a pointer to mapped memory outside Go's heap.
func pointerTo(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// Align maps the segment to an address that is a multiple of align, a power of
// two, unless its address is one already. It needs the descriptor. No pointer into the
// segment may be used afterwards.
func (s *Segment) Align(align int) error {
	if s.addr%uintptr(align) == 0 {
		return nil
	}
	addr, err := MapAligned(s.FD, 0, uint64(len(s.Mem)), uint64(align))
	if err != nil {
		return fmt.Errorf("map shared segment at a multiple of %d: %w", align, err)
	}
	_ = s.unmap()
	s.Mem, s.addr, s.aligned = unsafe.Slice((*byte)(pointerTo(addr)), len(s.Mem)), addr, true
	return nil
}

func (s *Segment) unmap() error {
	if s.aligned {
		return unix.MunmapPtr(pointerTo(s.addr), uintptr(len(s.Mem)))
	}
	return unix.Munmap(s.Mem)
}
