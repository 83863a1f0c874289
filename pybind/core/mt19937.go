package core

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/mt19937"
)

// MtSize returns how many bytes the state of a generator takes, which Python keeps.
func MtSize() int { return mt19937.Size }

// MtSeed seeds the generator at an address; the seed's bits are those of an
// unsigned integer.
func MtSeed(state, seed int64) int {
	mt19937.At(state).Seed(uint64(seed))
	return 0
}

// MtFill writes numbers to the n bytes at addr, of which there are a multiple of 8.
func MtFill(state, addr, n int64) int64 {
	b := unsafe.Slice((*byte)(fabric.Pointer(uint64(addr))), int(n))
	return int64(mt19937.At(state).Fill(b))
}

// MtSample chooses n of the numbers below population, writes them to addr as
// unsigned integers of 32 bits and returns how many there are.
func MtSample(state, population, n, addr int64) int64 {
	out := unsafe.Slice((*uint32)(fabric.Pointer(uint64(addr))), int(n))
	return int64(mt19937.At(state).Sample(uint32(population), out))
}
