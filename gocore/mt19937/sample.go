package mt19937

import "math/bits"

// Below returns a number from 0 to bound-1, as std::uniform_int_distribution of
// libstdc++ 11 and later draws it from a generator of 64 bits: by Lemire's method, from
// the upper half of a product. bound must not be 0.
func (s *State) Below(bound uint64) uint64 {
	high, low := bits.Mul64(s.Uint64(), bound)
	if low < bound {
		// The lowest -bound % bound values would make some numbers more likely.
		for limit := -bound % bound; low < limit; {
			high, low = bits.Mul64(s.Uint64(), bound)
		}
	}
	return high
}

// Sample chooses len(out) of the numbers from 0 to population-1 and writes them in
// ascending order. It returns how many it wrote, population at most. The numbers are
// those of std::sample of libstdc++ 7 and later, which the C++ standard leaves
// open: selection sampling (Knuth, 3.4.2 S), with two draws from one number, since the
// product of two populations of 32 bits fits into 64.
func (s *State) Sample(population uint32, out []uint32) int {
	left, wanted := uint64(population), min(len(out), int(population))
	number, chosen := uint32(0), 0
	choose := func(drawn uint64) {
		if drawn < uint64(wanted-chosen) {
			out[chosen] = number
			chosen++
		}
		number++
	}
	for chosen < wanted && left >= 2 {
		both := s.Below(left * (left - 1))
		first, second := both/(left-1), both%(left-1)
		choose(first)
		left--
		if chosen < wanted {
			choose(second)
			left--
		}
	}
	for chosen < wanted {
		choose(s.Below(left))
		left--
	}
	return chosen
}
