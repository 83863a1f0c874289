package arena

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// mapAligned maps bytes of the file from offset at, or private memory if fd is
// -1, to an address that is a multiple of align.
func mapAligned(fd int, at, bytes, align uint64) (uintptr, error) {
	flags := unix.MAP_SHARED
	if fd < 0 {
		flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	}
	if align <= pageBytes {
		p, err := unix.MmapPtr(fd, int64(at), nil, uintptr(bytes), readWrite, flags)
		return uintptr(p), err
	}
	// Room for the memory at any address, of which the unaligned rest goes.
	room := bytes + align - pageBytes
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(room), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return 0, err
	}
	begin := uintptr(p)
	before := -begin & uintptr(align-1)
	if _, err := unix.MmapPtr(fd, int64(at), unsafe.Add(p, before), uintptr(bytes), readWrite, flags|unix.MAP_FIXED); err != nil {
		unmap(begin, room)
		return 0, err
	}
	unmap(begin, uint64(before))
	unmap(begin+before+uintptr(bytes), room-bytes-uint64(before))
	return begin + before, nil
}

func unmap(addr uintptr, bytes uint64) {
	if bytes > 0 {
		_ = unix.MunmapPtr(*(*unsafe.Pointer)(unsafe.Pointer(&addr)), uintptr(bytes))
	}
}
