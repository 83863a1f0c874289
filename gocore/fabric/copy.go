package fabric

import "unsafe"

// Pointer is the foreign (not Go's) memory at addr in this process.
func Pointer(addr uint64) unsafe.Pointer {
	p := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// copyPiece bounds one memmove: Go can't interrupt it, and a thread that stops
// the world waits for it (64 MiB held up every thread that entered Go for 300 ms).
const copyPiece = 256 << 10

// Copy copies n bytes of foreign memory. Overlap is allowed only within a piece
// of copyPiece bytes; MPI buffers must not overlap.
func Copy(dst, src unsafe.Pointer, n int) {
	for n > copyPiece {
		copy(unsafe.Slice((*byte)(dst), copyPiece), unsafe.Slice((*byte)(src), copyPiece))
		dst, src, n = unsafe.Add(dst, copyPiece), unsafe.Add(src, copyPiece), n-copyPiece
	}
	if n > 0 {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}

const pageSize = 4096

// MostProbes is how often a system call is made again that could not access memory, after a Probe of it: memory that
// mpiexec --check watches is opened by that, and protected again when another thread's call ends.
const MostProbes = 100

// Probe reads a byte of each page of n bytes of foreign memory. Memory that
// faults then does so here, where Go turns the fault into a panic, and not in C,
// or in the kernel when it has taken half of the memory.
//
//go:noinline
func Probe(p unsafe.Pointer, n int) (sum byte) {
	for at := 0; at < n; at += pageSize - int(uintptr(p)+uintptr(at))%pageSize {
		sum |= *(*byte)(unsafe.Add(p, at))
	}
	return sum
}
