package sys

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Segment is a mapped piece of shared memory. Close unmaps it and closes the
// descriptor; the memory itself exists as long as any process maps it.
type Segment struct {
	FD   int // -1 once closed or when the descriptor was not kept
	Mem  []byte
	addr uintptr

	aligned bool // mapped by MapAligned
}

// NewSegment creates a memfd of size bytes, sealed against any change of size
// (so that no peer can make accesses of this process end in SIGBUS), and maps it.
// The pages are allocated by the kernel when they are first touched.
func NewSegment(name string, size int) (*Segment, error) {
	fd, err := NewSealed(name, size, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	if err != nil {
		return nil, err
	}
	return mapFD(fd, name, size)
}

// OpenSegment maps the segment that process pid holds as descriptor fd. It
// works for processes of the same user in the same PID namespace.
// It refuses a file that is not sealed against shrinking.
func OpenSegment(pid, fd int) (*Segment, error) {
	return OpenSegmentPath(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
}

// OpenSegmentPath maps the sealed segment at path, usually /proc/PID/fd/N.
func OpenSegmentPath(path string) (*Segment, error) {
	fd, size, err := OpenSealed(path)
	if err != nil {
		return nil, err
	}
	return mapFD(fd, path, size)
}

// NewSealed creates a memfd of size bytes with seals that can't be changed any more,
// and returns its descriptor.
func NewSealed(name string, size, seals int) (int, error) {
	fd, err := unix.MemfdCreate("gormapy-"+name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("create shared segment %s: %w", name, err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("size shared segment %s to %d bytes: %w", name, size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("seal shared segment %s: %w", name, err)
	}
	return fd, nil
}

// OpenSealed opens the memfd at path and returns its descriptor and size. It
// refuses a file that is not sealed against shrinking.
func OpenSealed(path string) (fd, size int, err error) {
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, fmt.Errorf("open shared segment %s: %w", path, err)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("open shared segment %s: not a sealed memfd", path)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("stat shared segment %s: %w", path, err)
	}
	return fd, int(st.Size), nil
}

func mapFD(fd int, name string, size int) (*Segment, error) {
	s := &Segment{FD: fd}
	if size == 0 {
		return s, nil
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("map shared segment %s (%d bytes): %w", name, size, err)
	}
	s.Mem = mem
	s.addr = uintptr(unsafe.Pointer(&mem[0]))
	return s, nil
}

// KeepFromChildren leaves the memory out of forked children, which are no ranks and
// must not write to it by accident.
func (s *Segment) KeepFromChildren() { _ = unix.Madvise(s.Mem, unix.MADV_DONTFORK) }

// Addr returns the address of the first byte in this process, 0 if the segment is
// empty.
func (s *Segment) Addr() uintptr { return s.addr }

// CloseFD closes the descriptor and keeps the mapping.
func (s *Segment) CloseFD() {
	if s.FD >= 0 {
		unix.Close(s.FD)
		s.FD = -1
	}
}

// Close unmaps the memory and closes the descriptor. No pointer into the
// segment may be used afterwards.
func (s *Segment) Close() error {
	s.CloseFD()
	if s.Mem == nil {
		return nil
	}
	err := s.unmap()
	s.Mem, s.addr = nil, 0
	return os.NewSyscallError("munmap", err)
}
