package op

import "math"

// float16 is IEEE 754's binary16, complex32 two of them. Sums and products are
// computed in float32, which has at least two digits more than twice as many: rounding
// twice then gives the same as rounding once.
type float16 uint16

type complex32 [2]float16

func (a float16) float() float32 {
	sign := uint32(a&0x8000) << 16
	exp, frac := uint32(a>>10)&31, uint32(a&0x3ff)
	switch exp {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case 0:
		// Exact: frac has 10 bits.
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

func toFloat16(f float32) float16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	exp, frac := int(b>>23&255)-127, b&0x7fffff
	switch {
	case exp == 128 && frac != 0:
		return float16(sign | 0x7e00 | uint16(frac>>13))
	case exp > 15:
		return float16(sign | 0x7c00)
	case exp < -25:
		return float16(sign)
	}
	// The bits to drop: 13 of a normal number, more of a subnormal one.
	drop, base := 13, uint32(exp+15)<<10
	if exp < -14 {
		drop, base = 13-14-exp, 0
		frac |= 1 << 23
	}
	h := base + frac>>drop
	rest, half := frac&(1<<drop-1), uint32(1)<<(drop-1)
	if rest > half || rest == half && h&1 == 1 {
		// A carry out of the fraction is the next exponent, or infinity.
		h++
	}
	return float16(sign | uint16(h))
}

func (a float16) add(b float16) float16 { return toFloat16(a.float() + b.float()) }
func (a float16) mul(b float16) float16 { return toFloat16(a.float() * b.float()) }

// half is a number of 16 bits, which Go does not have.
type half interface{ float() float32 }

func largerHalf[T half](a, b T) T {
	if b.float() > a.float() {
		return b
	}
	return a
}

func smallerHalf[T half](a, b T) T {
	if b.float() < a.float() {
		return b
	}
	return a
}

func (a complex32) add(b complex32) complex32 {
	return complex32{a[0].add(b[0]), a[1].add(b[1])}
}

func (a complex32) mul(b complex32) complex32 {
	p := complex(a[0].float(), a[1].float()) * complex(b[0].float(), b[1].float())
	return complex32{toFloat16(real(p)), toFloat16(imag(p))}
}
