// Package atom has the accesses that the protocols in shared memory are made of:
// sequentially consistent loads, stores and read-modify-writes, and the futex.
//
// In a normal build the functions are those of sync/atomic, inlined, but for Publish32
// and Publish64 on x86-64. With
// the build tag "interleave" every access first calls Step, through which a
// test drives the real protocol code through every interleaving of its
// accesses (go test -race can't see mapped memory): see package explore.
//
// It may import sys.
package atom
