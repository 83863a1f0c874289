package mt19937

import (
	"encoding/binary"

	"gormapy/gocore/fabric"
)

// The parameters, by the names of the paper.
const (
	n         = 312
	m         = 156
	upperMask = 0xffffffff80000000
	lowerMask = 0x7fffffff
	matrixA   = 0xb5026f5aa96619e9
	initF     = 6364136223846793005
)

// State is a generator: its words, and how many of them have been used. The zero value
// is not seeded. It is not safe for concurrent use.
type State struct {
	word [n]uint64
	used uint64
}

// Size is the size of a State in bytes.
const Size = 8 * (n + 1)

// At returns the State at an address that is aligned to 8 bytes.
func At(addr int64) *State { return (*State)(fabric.Pointer(uint64(addr))) }

// New returns a generator seeded with seed.
func New(seed uint64) *State {
	s := new(State)
	s.Seed(seed)
	return s
}

// Seed restarts the generator with a seed.
func (s *State) Seed(seed uint64) {
	s.word[0] = seed
	for i := 1; i < n; i++ {
		seed = initF*(seed^seed>>62) + uint64(i)
		s.word[i] = seed
	}
	s.used = n
}

// twist computes the next n words.
func (s *State) twist() {
	w := &s.word
	for i := 0; i < n-m; i++ {
		w[i] = w[i+m] ^ mix(w[i], w[i+1])
	}
	for i := n - m; i < n-1; i++ {
		w[i] = w[i-(n-m)] ^ mix(w[i], w[i+1])
	}
	w[n-1] = w[m-1] ^ mix(w[n-1], w[0])
	s.used = 0
}

// mix returns a step of the recurrence. It does not branch on the last bit, which the
// processor can't predict.
func mix(a, b uint64) uint64 {
	x := a&upperMask | b&lowerMask
	return x>>1 ^ -(x&1)&matrixA
}

func temper(x uint64) uint64 {
	x ^= x >> 29 & 0x5555555555555555
	x ^= x << 17 & 0x71d67fffeda60000
	x ^= x << 37 & 0xfff7eee000000000
	return x ^ x>>43
}

// Uint64 returns the next number.
func (s *State) Uint64() uint64 {
	if s.used >= n { // more than n only if the memory was overwritten
		s.twist()
	}
	x := s.word[s.used]
	s.used++
	return temper(x)
}

// Fill fills b with as many whole numbers, little endian, as fit, and returns the number
// of bytes written.
func (s *State) Fill(b []byte) int {
	rest := b
	for len(rest) >= 8 {
		if s.used >= n {
			s.twist()
		}
		words := s.word[s.used:]
		words = words[:min(len(words), len(rest)/8)]
		out := rest[:8*len(words)]
		for _, x := range words {
			binary.LittleEndian.PutUint64(out, temper(x))
			out = out[8:]
		}
		s.used += uint64(len(words))
		rest = rest[8*len(words):]
	}
	return len(b) - len(rest)
}
