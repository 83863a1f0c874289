package dtype

import (
	"math/bits"
	"runtime"
)

// x87 reports whether C's long double is the 80-bit format of x86, in 16 bytes; elsewhere
// it is IEEE 754's binary128.
const x87 = runtime.GOARCH == "amd64" || runtime.GOARCH == "386"

const (
	maxExponent = 0x7fff  // biased: infinities and NaNs; both formats have 15 bits
	integerBit  = 1 << 63 // of an x87 significand, before the point
	quietBit    = 1 << 62
	cut         = 49 // binary128 has 112 bits of fraction, x87 has 63
)

// packX87 converts long doubles of x86 to big-endian binary128, which holds all of them.
func packX87(dst, src []byte) {
	d, s := words[[2]uint64](dst), words[[2]uint64](src)
	for i := range d {
		hi, lo := quadOf(s[i][0], s[i][1])
		d[i] = [2]uint64{bits.ReverseBytes64(hi), bits.ReverseBytes64(lo)}
	}
}

// unpackX87 converts the other way, rounding to nearest even. The padding becomes zero.
func unpackX87(dst, src []byte) {
	d, s := words[[2]uint64](dst), words[[2]uint64](src)
	for i := range d {
		sig, top := x87Of(bits.ReverseBytes64(s[i][0]), bits.ReverseBytes64(s[i][1]))
		d[i] = [2]uint64{sig, top}
	}
}

// firstBeyondX87 returns the index of the first finite binary128 that would be rounded to
// an infinity, -1 if there is none.
func firstBeyondX87(src []byte) int {
	for i, x := range words[[2]uint64](src) {
		hi := bits.ReverseBytes64(x[0])
		if hi>>48&maxExponent != maxExponent-1 {
			continue // only the largest exponent can grow to that of infinities
		}
		if _, top := x87Of(hi, bits.ReverseBytes64(x[1])); top&maxExponent == maxExponent {
			return i
		}
	}
	return -1
}

// quadOf returns the binary128 of an x87 number: of the significand, and of sign and
// exponent in the low 16 bits of top.
func quadOf(sig, top uint64) (hi, lo uint64) {
	sign, exp, fraction := top>>15&1, top&maxExponent, sig&^integerBit
	switch {
	case exp == 0:
		// A denormal number with an integer bit is what the next exponent has.
		exp = sig >> 63
	case sig&integerBit == 0:
		// x87 has no longer taken these for numbers since the 80387.
		exp, fraction = maxExponent, quietBit
	case exp == maxExponent && fraction != 0:
		fraction |= quietBit
	}
	return sign<<63 | exp<<48 | fraction>>(64-cut), fraction << cut
}

// x87Of is the inverse of quadOf.
func x87Of(hi, lo uint64) (sig, top uint64) {
	sign, exp := hi>>63, hi>>48&maxExponent
	sig = hi<<16>>1 | lo>>cut
	if exp == maxExponent {
		if hi<<16|lo != 0 {
			sig |= quietBit
		}
		return integerBit | sig, sign<<15 | exp
	}
	if exp != 0 {
		sig |= integerBit
	}
	rest := lo << (64 - cut)
	if rest > 1<<63 || rest == 1<<63 && sig&1 == 1 {
		sig++
		switch {
		case sig == 0: // carried out of the integer bit
			sig = integerBit
			exp++
		case exp == 0 && sig == integerBit: // the least normal number
			exp = 1
		}
	}
	return sig, sign<<15 | exp
}
