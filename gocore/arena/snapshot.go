package arena

import (
	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// A forked child must have its own copy of the arrays of its parent, as of other memory. But the arena's pages are
// shared, and neither kind of mapping is a copy: the child would write to its parent's arrays (MAP_SHARED), or see what
// the parent writes later (MAP_PRIVATE). So the process that forks copies what is allocated, and the child moves the
// copies to where the arrays are:
//  1. BeforeFork, in the parent: lock the pool, and make private memory for each chunk with what is allocated of it.
//  2. The kernel forks. Private memory is copied when it is written, as always.
//  3. The child moves each copy over its chunk (pybind/shim/arrays.c: Go's threads are not in a child, so that nothing
//     of Go may be called).
//  4. AfterFork, in the parent: unmap the copies, and unlock the pool.
//
// A fork takes time and memory for all pages of arrays that have been touched. What does not copy memory for a child
// (vfork, posix_spawn, clone with CLONE_VM: subprocess, os.posix_spawn, Go) calls no handlers, and costs nothing.
//
// Where there are no addresses for a copy the child maps the chunk MAP_PRIVATE: its parent's arrays are safe, but what
// the parent writes to a page that the child has not written shows in the child.

// ChunkCopy tells a forked child of a chunk. Its layout is that of gm_chunk in gormapy.h.
type ChunkCopy struct {
	Addr, Bytes uint64
	At          uint64 // offset in the arena
	Copy        uint64 // address of the copy; 0: none
	Live        uint64 // how many runs are allocated
}

// BeforeFork locks the pool and writes what a child has to do to out, which has room for MaxChunks. It returns the
// number of chunks.
func (p *Pool) BeforeFork(out []ChunkCopy) int {
	p.mu.Lock()
	copies, bytes := map[*chunk]uintptr{}, map[*chunk]uint64{}
	for _, r := range p.live {
		bytes[r.chunk] += r.bytes
	}
	for i, c := range p.chunks {
		out[i] = ChunkCopy{Addr: uint64(c.addr), Bytes: c.bytes, At: c.at, Live: uint64(c.live)}
		if c.live == 0 {
			continue
		}
		addr, err := sys.MapAligned(-1, 0, c.bytes, MaxAlign)
		if err != nil {
			continue
		}
		if bytes[c] >= c.bytes/2 { // a quarter of the time, where the system has huge pages on request
			_ = unix.Madvise((&span{addr: addr, bytes: c.bytes}).mem(), unix.MADV_HUGEPAGE)
		}
		out[i].Copy = uint64(addr)
		copies[c] = addr
	}
	for _, r := range p.live {
		if addr, ok := copies[r.chunk]; ok {
			p.copyRun(r, addr+(r.addr-r.chunk.addr))
		}
	}
	return len(p.chunks)
}

// copyRun copies the pages of a run that are there.
func (p *Pool) copyRun(r *run, addr uintptr) {
	from, to := r.span().mem(), (&span{addr: addr, bytes: r.bytes}).mem()
	fd, at := p.heap.file(), int64(r.at())
	for next := uint64(0); next < r.bytes; {
		begin, err := unix.Seek(fd, at+int64(next), unix.SEEK_DATA)
		if err == unix.ENXIO || err == nil && uint64(begin-at) >= r.bytes {
			return // the rest is a hole
		}
		end := at + int64(r.bytes)
		if err != nil {
			begin = at + int64(next)
		} else if hole, err := unix.Seek(fd, begin, unix.SEEK_HOLE); err == nil {
			end = min(end, hole)
		}
		copyMemory(to[begin-at:end-at], from[begin-at:end-at])
		next = uint64(end - at)
	}
}

// AfterFork ends what BeforeFork began, in the parent.
func (p *Pool) AfterFork(chunks []ChunkCopy) {
	for _, c := range chunks {
		if c.Copy != 0 {
			sys.Unmap(uintptr(c.Copy), c.Bytes)
		}
	}
	p.mu.Unlock()
}

// FD returns the descriptor of the pool's arena.
func (p *Pool) FD() int { return p.heap.file() }
