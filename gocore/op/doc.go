// Package op has the kernels of MPI's predefined reductions: on arrays for
// collectives and accumulates ([Op.Apply]), and element by element with CPU
// atomics for one-sided calls on memory that several processes map
// ([Op.AtomicApply], [AtomicCAS]).
//
// Memory is passed as unsafe.Pointer and may be outside Go's heap.
// User-defined operations call back into Python and are not part of it.
//
// It may import dtype.
package op
