package op

import (
	"math/bits"
	"unsafe"
)

// x87 is a long double on x86: the significand, and in the low 16 bits of top
// the sign and the exponent. The rest of top is padding, which is preserved.
type x87 struct{ sig, top uint64 }

// add and mul handle the common case, normal numbers with a normal result, with
// the significands in one word each. They use extended for the others.

func (a x87) add(b x87) x87 {
	if !a.normal() || !b.normal() {
		switch {
		case b.zero() && a.normal():
			return a
		case a.zero() && b.normal():
			return x87{b.sig, a.top&^0xffff | b.top&0xffff}
		}
		return a.slow(b, longDouble.add)
	}
	big, small := a, b
	exp, d := a.exp(), a.exp()-b.exp()
	if d < 0 || d == 0 && a.sig < b.sig {
		big, small = b, a
		exp, d = b.exp(), -d
	}
	// The smaller number in two words; the last bit is sticky.
	var hi, lo uint64
	switch {
	case d < 64:
		hi, lo = small.sig>>d, small.sig<<(64-d)
	case d < 128:
		lo = small.sig >> (d - 64)
		if small.sig<<(128-d) != 0 {
			lo |= 1
		}
	default:
		lo = 1
	}
	var carry uint64
	if (a.top^b.top)&(1<<15) == 0 {
		if hi, carry = bits.Add64(big.sig, hi, 0); carry != 0 {
			lo = hi<<63 | lo>>1 | lo&1
			hi = hi>>1 | 1<<63
			exp++
		}
	} else {
		lo, carry = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(big.sig, hi, carry)
		n := bits.LeadingZeros64(hi)
		if n == 64 {
			return a.slow(b, longDouble.add)
		}
		hi, lo = hi<<n|lo>>(64-n), lo<<n
		exp -= n
	}
	if sig, exp, ok := round(hi, lo, exp); ok {
		return x87{sig, a.top&^0xffff | big.top&(1<<15) | uint64(exp)}
	}
	return a.slow(b, longDouble.add)
}

func (a x87) mul(b x87) x87 {
	if !a.normal() || !b.normal() {
		return a.slow(b, longDouble.mul)
	}
	hi, lo := bits.Mul64(a.sig, b.sig)
	exp := a.exp() + b.exp() - bias + 1
	if hi>>63 == 0 {
		hi, lo = hi<<1|lo>>63, lo<<1
		exp--
	}
	if sig, exp, ok := round(hi, lo, exp); ok {
		return x87{sig, a.top&^0xffff | (a.top^b.top)&(1<<15) | uint64(exp)}
	}
	return a.slow(b, longDouble.mul)
}

func (a x87) exp() int { return int(a.top & maxExp) }

func (a x87) normal() bool {
	return a.sig>>63 == 1 && a.top&maxExp != maxExp && a.top&maxExp != 0
}

func (a x87) zero() bool { return a.sig == 0 && a.top&maxExp == 0 }

// round rounds to one word. The last result reports whether the number is normal, and
// thus valid.
func round(hi, lo uint64, exp int) (uint64, int, bool) {
	if lo > 1<<63 || lo == 1<<63 && hi&1 == 1 {
		if hi++; hi == 0 {
			hi, exp = 1<<63, exp+1
		}
	}
	return hi, exp, exp > 0 && exp < maxExp
}

func (a x87) slow(b x87, f func(a, b longDouble) longDouble) x87 {
	r := f(*(*longDouble)(unsafe.Pointer(&a)), *(*longDouble)(unsafe.Pointer(&b)))
	x := *(*x87)(unsafe.Pointer(&r))
	x.top = a.top&^0xffff | x.top&0xffff
	return x
}
