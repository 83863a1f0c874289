// Package atom is how the protocols in shared memory touch it: sequentially
// consistent loads, stores and read-modify-writes, and the futex.
//
// In a normal build the functions are the ones of sync/atomic, inlined. With
// the build tag "interleave" every access first calls Step, through which a
// test drives the real protocol code through every interleaving of its
// accesses (go test -race can't see mapped memory).
//
// It may import sys.
package atom
