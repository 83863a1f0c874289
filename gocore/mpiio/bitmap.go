package mpiio

import "math/bits"

// bitmap is the set of bytes of a window that have data.
type bitmap struct {
	words []uint64
	n     int64
}

// reset makes it n bits, all clear.
func (m *bitmap) reset(n int64) {
	words := int((n + 63) / 64)
	if cap(m.words) < words {
		m.words = make([]uint64, words)
	}
	m.words, m.n = m.words[:words], n
	clear(m.words)
}

// set sets the bits from lo to hi.
func (m *bitmap) set(lo, hi int64) {
	if lo >= hi {
		return
	}
	first, last := lo/64, (hi-1)/64
	from, to := ^uint64(0)<<(lo%64), ^uint64(0)>>(63-(hi-1)%64)
	if first == last {
		m.words[first] |= from & to
		return
	}
	m.words[first] |= from
	for i := first + 1; i < last; i++ {
		m.words[i] = ^uint64(0)
	}
	m.words[last] |= to
}

// stretches yields the runs of set bits.
func (m *bitmap) stretches(yield func(from, to int64) bool) {
	for at := int64(0); at < m.n; {
		from := m.next(at, 0)
		if from >= m.n {
			return
		}
		to := min(m.next(from, ^uint64(0)), m.n)
		if !yield(from, to) {
			return
		}
		at = to
	}
}

// next returns the first bit from at on that is set, or clear if flip is all ones.
func (m *bitmap) next(at int64, flip uint64) int64 {
	i := at / 64
	w := (m.words[i] ^ flip) &^ (1<<(at%64) - 1)
	for w == 0 {
		if i++; i == int64(len(m.words)) {
			return i * 64
		}
		w = m.words[i] ^ flip
	}
	return i*64 + int64(bits.TrailingZeros64(w))
}
