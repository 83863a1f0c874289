package arena

import (
	"cmp"
	"math"
	"slices"

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
// Where there are no addresses for a copy it is written to a file in memory, which the child maps over the chunk. Where no
// file can be made or written either, the child ends with a message: it must not run with arrays that change.

// ChunkCopy tells a forked child of a chunk. Its layout is that of gm_chunk in gormapy.h.
type ChunkCopy struct {
	Addr, Bytes uint64
	Copy        uint64 // address of the copy; 0: none
	FD          int64  // the file with the copy; -1: none
	Live        uint64 // how many runs are allocated
}

// BeforeFork locks the pool and writes what a child has to do to out, which has room for MaxChunks. It returns the
// number of chunks.
func (p *Pool) BeforeFork(out []ChunkCopy) int {
	p.mu.Lock()
	all := make([]*run, 0, len(p.live))
	for _, r := range p.live {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *run) int { return cmp.Compare(a.addr, b.addr) }) // as the chunks are
	pages := pagesOf{fd: p.heap.file()}
	for i, c := range p.chunks {
		n := 0
		for n < len(all) && all[n].chunk == c {
			n++
		}
		out[i] = c.copied(all[:n], &pages)
		all = all[n:]
	}
	return len(p.chunks)
}

// copied makes a copy of a chunk with these runs.
func (c *chunk) copied(live []*run, pages *pagesOf) ChunkCopy {
	out := ChunkCopy{Addr: uint64(c.addr), Bytes: c.bytes, FD: -1, Live: uint64(len(live))}
	if len(live) == 0 {
		return out
	}
	addr, err := sys.MapAligned(-1, 0, c.bytes, MaxAlign)
	if err != nil {
		out.FD = int64(c.written(live, pages))
		return out
	}
	var bytes uint64
	for _, r := range live {
		bytes += r.bytes
	}
	to := (&span{addr: addr, bytes: c.bytes}).mem()
	if bytes >= c.bytes/2 { // a quarter of the time, where the system has huge pages on request
		_ = unix.Madvise(to, unix.MADV_HUGEPAGE)
	}
	for _, r := range live {
		pages.each(r, func(from []byte, at uint64) bool {
			copyMemory(to[at:], from)
			return true
		})
	}
	out.Copy = uint64(addr)
	return out
}

// written returns the descriptor of a file with a copy of a chunk, -1 if it can't be made.
func (c *chunk) written(live []*run, pages *pagesOf) int {
	fd, err := unix.MemfdCreate("gormapy-fork", unix.MFD_CLOEXEC)
	if err != nil {
		return -1
	}
	whole := unix.Ftruncate(fd, int64(c.bytes)) == nil
	for _, r := range live {
		pages.each(r, func(from []byte, at uint64) bool {
			for len(from) > 0 && whole {
				n, err := unix.Pwrite(fd, from[:min(len(from), step)], int64(at))
				whole = err == nil && n > 0
				from, at = from[max(n, 0):], at+uint64(max(n, 0))
			}
			return whole
		})
	}
	if !whole {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// pagesOf finds the pages that a file has. The kernel looks for the end of a piece in all of the file, so that what has
// been found is used for all runs that it concerns.
type pagesOf struct {
	fd                int
	from, begin, hole int64 // there are no pages between from and begin, and all of them up to hole
}

func (p *pagesOf) find(at int64) {
	if at >= p.from && at < p.hole {
		return
	}
	p.from, p.hole = at, math.MaxInt64
	var err error
	switch p.begin, err = unix.Seek(p.fd, at, unix.SEEK_DATA); err {
	case nil:
		if hole, err := unix.Seek(p.fd, p.begin, unix.SEEK_HOLE); err == nil {
			p.hole = hole
		}
	case unix.ENXIO:
		p.begin = math.MaxInt64
	default:
		p.begin = at
	}
}

// each calls f for the pages of a run that are there, with their offset in the chunk, until it returns false.
func (p *pagesOf) each(r *run, f func(from []byte, at uint64) bool) {
	mem, at := r.span().mem(), int64(r.at())
	for next, end := at, at+int64(r.bytes); next < end; next = p.hole {
		p.find(next)
		first, last := max(next, p.begin), min(end, p.hole)
		if first >= last || !f(mem[first-at:last-at], uint64(first)-r.chunk.at) {
			return
		}
	}
}

// AfterFork ends what BeforeFork began, in the parent.
func (p *Pool) AfterFork(chunks []ChunkCopy) {
	for _, c := range chunks {
		if c.Copy != 0 {
			sys.Unmap(uintptr(c.Copy), c.Bytes)
		}
		if c.FD >= 0 {
			_ = unix.Close(int(c.FD))
		}
	}
	p.mu.Unlock()
}
