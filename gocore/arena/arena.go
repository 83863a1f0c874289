package arena

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// MaxAlign is the largest alignment that Alloc takes.
const MaxAlign = 2 << 20

// growth is the unit in which the file grows, so that it rarely has to.
const growth = 2 << 20

var pageBytes = uint64(os.Getpagesize())

func pageUp(n uint64) uint64 { return (n + pageBytes - 1) / pageBytes * pageBytes }

// own is the arena of this process.
var own heap

// Alloc returns n bytes of zeroed memory of the process's arena at an address
// that is a multiple of align, a power of two up to MaxAlign (0 means any). The address
// is unique even if n is 0. If the arena has no room and can't grow, the memory is
// private. Alloc is safe for concurrent use, as is the whole package.
func Alloc(n, align int) ([]byte, error) { return own.alloc(n, align) }

// Free frees memory that Alloc returned. It must not be used afterwards.
func Free(mem []byte) error { return own.free(mem) }

// Find returns the offset in the arena of the n bytes at addr. ok is false unless they
// lie in one allocation that has not been freed.
func Find(addr unsafe.Pointer, n int) (off uint64, ok bool) { return own.find(addr, n) }

// FD returns the descriptor of the arena, which peers open; -1 before its first use.
func FD() int { return own.file() }

// Check makes the arena if there is none yet, and returns why it can't be made.
func Check() error { return own.open() }

// heap is an arena and the process's allocations from it.
type heap struct {
	once sync.Once
	fd   atomic.Int64 // descriptor + 1, 0 if there is none
	why  error        // why there is none
	pid  int          // the process that made it; a forked child has another pid

	mu    sync.RWMutex
	spans []*span          // in use, in the order of their addresses
	spare ranges           // free ranges of the file, between those of the spans
	end   uint64           // end of the part of the file that spans and spare cover
	size  uint64           // size of the file
	slabs [classes][]*span // slabs with free blocks, by class
}

// span is a mapping: one allocation, or a slab.
type span struct {
	addr    uintptr
	bytes   uint64 // whole pages
	at      uint64 // offset in the file
	private bool   // private memory, not part of the file
	blocks  *blocks
}

func (s *span) mem() []byte { return unsafe.Slice((*byte)(s.pointer()), s.bytes) }

// pointer returns the address of the span's memory, which is outside Go's heap.
func (s *span) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&s.addr)) }

func (h *heap) file() int { return int(h.fd.Load()) - 1 }

// open makes the file on first use.
func (h *heap) open() error {
	h.once.Do(func() {
		fd, err := sys.NewSealed("arena", 0, unix.F_SEAL_SHRINK)
		if err != nil {
			h.why = err
			return
		}
		h.pid = os.Getpid()
		h.fd.Store(int64(fd) + 1)
	})
	return h.why
}

// foreign reports whether this process is a forked child of the one that made the
// arena.
func (h *heap) foreign() bool { return h.pid != os.Getpid() }

func (h *heap) alloc(n, align int) ([]byte, error) {
	switch {
	case n < 0 || n > 1<<46:
		return nil, fmt.Errorf("allocate %d bytes: no such size", n)
	case align < 0 || align > MaxAlign || align&(align-1) != 0:
		return nil, fmt.Errorf("allocate %d bytes aligned to %d: the alignment must be a power of two up to %d", n, align, MaxAlign)
	}
	if class, small := classOf(max(n, align)); small {
		h.mu.Lock()
		defer h.mu.Unlock()
		p, err := h.block(class)
		if err != nil {
			return nil, fmt.Errorf("allocate %d bytes: %w", n, err)
		}
		return unsafe.Slice((*byte)(p), blockBytes(class))[:n], nil
	}
	s, err := h.span(pageUp(uint64(max(n, 1))), uint64(align), &h.mu)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", n, err)
	}
	return s.mem()[:n], nil
}

// noLock is for callers that hold the heap's lock.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// span makes a span of the arena, or one of private memory if it can't. It holds mu
// except while it maps.
func (h *heap) span(bytes, align uint64, mu sync.Locker) (*span, error) {
	align = max(align, pageBytes)
	s := &span{bytes: bytes}
	err := h.open()
	if err == nil && !h.foreign() {
		mu.Lock()
		s.at = h.reserve(bytes, align)
		mu.Unlock()
		s.addr, err = sys.MapAligned(h.file(), s.at, bytes, align)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			if err = h.grow(s.at + bytes); err == nil {
				h.insert(s)
				return s, nil
			}
			sys.Unmap(s.addr, bytes)
		}
		h.spare.put(s.at, bytes)
		s.at = 0
	} else {
		mu.Lock()
		defer mu.Unlock()
	}
	s.private = true
	if s.addr, err = sys.MapAligned(-1, 0, bytes, align); err != nil {
		return nil, err
	}
	h.insert(s)
	return s, nil
}

// reserve takes a free range of the file, or one at its end, and returns its offset.
func (h *heap) reserve(bytes, align uint64) uint64 {
	if at, ok := h.spare.take(bytes, align); ok {
		return at
	}
	from := h.spare.takeLast(h.end)
	at := (from + align - 1) &^ (align - 1)
	h.spare.put(from, at-from)
	h.end = at + bytes
	return at
}

// grow extends the file to end at least.
func (h *heap) grow(end uint64) error {
	if end <= h.size {
		return nil
	}
	size := (end + growth - 1) / growth * growth
	if err := unix.Ftruncate(h.file(), int64(size)); err != nil {
		return fmt.Errorf("grow the arena to %d bytes: %w", size, err)
	}
	h.size = size
	return nil
}

func (h *heap) insert(s *span) {
	i, _ := slices.BinarySearchFunc(h.spans, s.addr, bySpan)
	h.spans = slices.Insert(h.spans, i, s)
}

func bySpan(s *span, addr uintptr) int {
	switch {
	case s.addr < addr:
		return -1
	case s.addr > addr:
		return 1
	}
	return 0
}

// spanOf returns the span that has addr or, if there is none, ends at addr; else nil.
func (h *heap) spanOf(addr uintptr) *span {
	i, exact := slices.BinarySearchFunc(h.spans, addr, bySpan)
	if !exact {
		i--
	}
	if i < 0 || uint64(addr-h.spans[i].addr) > h.spans[i].bytes {
		return nil
	}
	return h.spans[i]
}

func (h *heap) find(addr unsafe.Pointer, n int) (uint64, bool) {
	if n < 0 {
		return 0, false
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := h.spanOf(uintptr(addr))
	if s == nil || s.private {
		return 0, false
	}
	in := uint64(uintptr(addr) - s.addr)
	if s.blocks != nil && !s.blocks.holds(in, uint64(n)) || uint64(n) > s.bytes-in {
		return 0, false
	}
	return s.at + in, true
}

func (h *heap) free(mem []byte) error {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	h.mu.Lock()
	s := h.spanOf(addr)
	switch {
	case s == nil || s.blocks == nil && s.addr != addr:
		h.mu.Unlock()
		return fmt.Errorf("free memory at %#x: nothing is allocated there", addr)
	case s.blocks != nil:
		defer h.mu.Unlock()
		return h.freeBlock(s, addr)
	}
	h.remove(s)
	h.mu.Unlock() // freeing gigabytes may take a while
	h.giveBack(s)
	h.mu.Lock()
	h.reuse(s)
	h.mu.Unlock()
	return nil
}

func (h *heap) remove(s *span) {
	i, _ := slices.BinarySearchFunc(h.spans, s.addr, bySpan)
	h.spans = slices.Delete(h.spans, i, i+1)
}

// giveBack unmaps a span and, unless the process is a forked child, frees its pages.
func (h *heap) giveBack(s *span) {
	if !s.private && !h.foreign() {
		h.returnPages(s)
	}
	sys.Unmap(s.addr, s.bytes)
}

// returnPages frees the pages of a span of the file, which reads as zeros afterwards.
func (h *heap) returnPages(s *span) {
	const hole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	if unix.Fallocate(h.file(), hole, int64(s.at), int64(s.bytes)) != nil {
		clearMemory(s.mem()) // the next user must find zeros
	}
}

// reuse makes the span's range of the file free for other allocations.
func (h *heap) reuse(s *span) {
	if !s.private && !h.foreign() {
		h.spare.put(s.at, s.bytes)
	}
}
