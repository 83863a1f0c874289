package arena

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// Pool allocates memory of the arena for objects that come and go, such as NumPy's arrays: without a system call where
// it can. It is safe for concurrent use.
//
// It takes chunks from the arena and cuts them into runs of pages, since a process may have more arrays than mappings
// (vm.max_map_count). Free runs are of two kinds:
//   - The pages of a dirty run are there, with what was in them. Programs make and drop arrays of the same sizes again
//     and again: these find dirty pages, and the kernel neither allocates nor clears any.
//   - A clean run has no pages: a hole of the file. It reads as zeros, and takes memory when it is touched.
//
// Free makes a run dirty. When there are more than keep bytes of dirty runs, those that were freed first have their pages
// returned to the system (a hole is punched) and are clean. A run of more than keep bytes is clean at once.
//
// Alloc takes a dirty run, else a clean one, else one of a new chunk. Memory that is to be zero is cleared if it is dirty,
// up to lazy bytes: that takes a sixth of the time in which the kernel would do it, page by page. More than that comes
// from a clean run, or has its pages returned, so that it takes no memory and no time until it is touched, as calloc's.
//
// A chunk is given back to the arena when it is one clean run. Where there is no room for a chunk (the limit of address
// space, of the size of files, or of chunks) all dirty runs are made clean, and merged with their neighbours. If that is
// not enough Alloc returns nil, and the caller takes memory from elsewhere.
//
// The kernel kills a process that touches a hole when it has promised more memory than there is, and it promises any
// number of holes. Callers count on an error in two cases: for one allocation of more than the system has, and for
// all where the system promises no more than it has (vm.overcommit_memory is 2). Then Alloc returns nil.
type Pool struct {
	keep, lazy uint64
	heap       *heap

	mu           sync.Mutex // held from BeforeFork to AfterFork, too
	closed       bool       // Alloc returns nil
	chunks       []*chunk   // in the order of their addresses
	live         map[uintptr]*run
	dirty, clean runs
}

// chunk is one allocation from the arena.
type chunk struct {
	addr  uintptr
	bytes uint64
	at    uint64 // its offset in the arena
	live  int    // how many runs of it are allocated
}

func (c *chunk) run() *run { return &run{addr: c.addr, bytes: c.bytes, chunk: c} }

func (c *chunk) mem() []byte { return (&span{addr: c.addr, bytes: c.bytes}).mem() }

const (
	// chunkBytes is the size of chunks. What takes more than half of one has a chunk of its own.
	chunkBytes = 64 << 20
	// MaxChunks is the largest number of chunks of a pool.
	MaxChunks = 4096
	// lazy is the largest number of bytes that Alloc clears itself.
	lazy = 64 << 20
	// grow is which part more than it asks for an array gets that grows, and has to be moved for that.
	grow = 8
	// step is how many bytes are cleared or copied at once: a stop for Go's collector waits for that.
	step = 256 << 10
)

// NewPool returns a pool of the process's arena that keeps up to keep bytes of freed memory.
func NewPool(keep uint64) *Pool {
	p := newPool(&own, keep)
	mode, _ := os.ReadFile("/proc/sys/vm/overcommit_memory")
	p.closed = bytes.HasPrefix(mode, []byte("2"))
	return p
}

func newPool(h *heap, keep uint64) *Pool {
	return &Pool{keep: keep, lazy: lazy, heap: h, live: map[uintptr]*run{}, dirty: newRuns(), clean: newRuns()}
}

// Alloc returns n bytes at an address that is a multiple of the size of a page; nil if the arena has no room. They are
// zero if zero is set, else anything.
func (p *Pool) Alloc(n uint64, zero bool) unsafe.Pointer {
	if n > 1<<46 {
		return nil
	}
	size := pageUp(max(n, 1))
	p.mu.Lock()
	r, dirty := p.take(size, zero)
	if r == nil {
		p.mu.Unlock()
		return nil
	}
	r.chunk.live++
	p.live[r.addr] = r
	p.mu.Unlock()
	s := r.span()
	if dirty && zero {
		clearMemory(s.mem()[:n])
	}
	return s.pointer()
}

// take returns a run of that size, and whether it is dirty.
func (p *Pool) take(size uint64, zero bool) (r *run, dirty bool) {
	if p.closed {
		return nil, false
	}
	untouched := zero && size > p.lazy
	if !untouched {
		if r = p.dirty.take(size); r != nil {
			return r, true
		}
	}
	if r = p.clean.take(size); r != nil {
		return r, false
	}
	if untouched {
		if r = p.dirty.take(size); r != nil {
			p.heap.returnPages(r.span())
			return r, false
		}
	}
	if !p.addChunk(size) && p.dirty.bytes > 0 {
		p.trim(0)
		if p.clean.find(size) == nil {
			p.addChunk(size) // chunks that were given back have left room
		}
	}
	return p.clean.take(size), false
}

// addChunk gets a chunk for at least size bytes from the arena, which is a clean run. It reports whether it could.
func (p *Pool) addChunk(size uint64) bool {
	if len(p.chunks) == MaxChunks || p.heap.open() != nil {
		return false
	}
	if size > chunkBytes && size > sys.SystemMemory() {
		return false
	}
	least := (size + MaxAlign - 1) &^ (MaxAlign - 1)
	sizes := []uint64{chunkBytes, least}
	if size > chunkBytes/2 {
		sizes = sizes[1:]
	}
	for _, bytes := range sizes {
		mem, err := p.heap.alloc(int(bytes), MaxAlign)
		if err != nil {
			continue
		}
		addr := unsafe.Pointer(unsafe.SliceData(mem))
		at, shared := p.heap.find(addr, len(mem))
		if !shared {
			_ = p.heap.free(mem)
			continue
		}
		c := &chunk{addr: uintptr(addr), bytes: bytes, at: at}
		if bytes > chunkBytes {
			// As NumPy does. It is the system's choice (transparent_hugepage/shmem_enabled) whether it has an effect.
			_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
		}
		i, _ := slices.BinarySearchFunc(p.chunks, c.addr, func(o *chunk, addr uintptr) int {
			return bySpan(&span{addr: o.addr}, addr)
		})
		p.chunks = slices.Insert(p.chunks, i, c)
		p.clean.put(c.run())
		return true
	}
	return false
}

// Free frees memory that Alloc or Resize returned. It reports whether it did: not if addr is none of the pool's.
func (p *Pool) Free(addr unsafe.Pointer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.live[uintptr(addr)]
	if r == nil {
		return false
	}
	delete(p.live, r.addr)
	r.chunk.live--
	p.retain(r)
	return true
}

// Size returns the number of bytes at addr, in whole pages; 0 if addr is none of the pool's.
func (p *Pool) Size(addr unsafe.Pointer) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.live[uintptr(addr)]; r != nil {
		return r.bytes
	}
	return 0
}

// Place returns the offset in the arena of the n bytes at addr; ok is false unless they are the pool's.
func (p *Pool) Place(addr unsafe.Pointer, n uint64) (at uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, exact := slices.BinarySearchFunc(p.chunks, uintptr(addr), func(c *chunk, addr uintptr) int { return cmp.Compare(c.addr, addr) })
	if !exact {
		i--
	}
	if i < 0 || uint64(uintptr(addr)-p.chunks[i].addr)+n > p.chunks[i].bytes {
		return 0, false
	}
	return p.chunks[i].at + uint64(uintptr(addr)-p.chunks[i].addr), true
}

// retain makes a run dirty, or clean if it is too large.
func (p *Pool) retain(r *run) {
	if r.bytes > p.keep {
		p.purge(r)
		return
	}
	if p.dirty.put(r); p.dirty.bytes > p.keep {
		p.trim(p.keep / 8 * 7) // several frees share a system call
	}
}

// trim makes the oldest dirty runs clean until there are no more than keep bytes.
func (p *Pool) trim(keep uint64) {
	for p.dirty.bytes > keep {
		r := p.dirty.oldest
		p.dirty.remove(r)
		excess := pageUp(p.dirty.bytes + r.bytes - keep)
		if excess < r.bytes { // what was freed last may have been merged with what is old
			rest := r.cut(excess)
			p.dirty.put(rest)
		}
		p.purge(r)
	}
}

// purge returns the pages of a run to the system, and its chunk to the arena if that has no other run.
func (p *Pool) purge(r *run) {
	p.heap.returnPages(r.span())
	r = p.clean.put(r)
	c := r.chunk
	if r.bytes < c.bytes || c.bytes == chunkBytes && len(p.chunks) == 1 {
		return
	}
	p.clean.remove(r)
	p.chunks = slices.DeleteFunc(p.chunks, func(o *chunk) bool { return o == c })
	_ = p.heap.free(c.mem())
}

// Resize returns n bytes that begin with what is at addr, as realloc does, and frees addr; nil, and addr is as before,
// if there is no room. ours is false if addr is none of the pool's.
func (p *Pool) Resize(addr unsafe.Pointer, n uint64) (to unsafe.Pointer, ours bool) {
	p.mu.Lock()
	r := p.live[uintptr(addr)]
	if r == nil {
		p.mu.Unlock()
		return nil, false
	}
	size := pageUp(max(n, 1))
	if size <= r.bytes {
		if r.bytes-size >= r.bytes/4 {
			if rest := r.cut(size); rest != nil {
				p.retain(rest)
			}
		}
		p.mu.Unlock()
		return addr, true
	}
	if p.extend(r, size) {
		p.mu.Unlock()
		return addr, true
	}
	old := r.span().mem()
	p.mu.Unlock() // the caller has addr, so nobody frees it
	// What grows once grows again: pages that are not touched take no memory.
	if to = p.Alloc(n+n/grow, false); to == nil {
		to = p.Alloc(n, false)
	}
	if to != nil {
		copyMemory(unsafe.Slice((*byte)(to), n), old)
		p.Free(addr)
	}
	return to, true
}

// extend makes a run longer by the free one that follows it, and reports whether it could.
func (p *Pool) extend(r *run, size uint64) bool {
	for _, free := range []*runs{&p.dirty, &p.clean} {
		next := free.begin[r.end()]
		if next == nil || next.chunk != r.chunk || r.bytes+next.bytes < size {
			continue
		}
		free.remove(next)
		if rest := next.cut(size - r.bytes); rest != nil {
			free.put(rest)
		}
		r.bytes = size
		return true
	}
	return false
}

// Move copies up to n bytes of what is at addr, which Resize had no room for, to other memory, and frees addr.
func (p *Pool) Move(to, addr unsafe.Pointer, n uint64) {
	p.mu.Lock()
	r := p.live[uintptr(addr)]
	p.mu.Unlock()
	if r != nil {
		copyMemory(unsafe.Slice((*byte)(to), n), r.span().mem())
		p.Free(addr)
	}
}

func clearMemory(mem []byte) {
	for len(mem) > 0 {
		n := min(len(mem), step)
		clear(mem[:n])
		mem = mem[n:]
	}
}

// copyMemory copies as much as both have.
func copyMemory(to, from []byte) {
	for len(to) > 0 && len(from) > 0 {
		n := copy(to[:min(len(to), step)], from)
		to, from = to[n:], from[n:]
	}
}
