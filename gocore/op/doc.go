// Package op has the kernels of MPI's predefined reductions: on arrays for
// collectives and accumulates ([Op.Apply], [Op.Fold]), and element by element with CPU
// atomics for one-sided calls on memory that several processes map
// ([Op.AtomicApply], [AtomicCAS]).
//
// Sums, products, maxima, minima, logical and bit operations on arrays are in assembly for AVX2 (some for AVX-512)
// and NEON, which package kernelgen writes. What has no vector instructions, and other
// processors, have loops in Go, with the same results.
//
// Memory is passed as unsafe.Pointer and may be outside Go's heap.
// User-defined operations call back into Python and are not part of it.
//
// It may import dtype.
package op
