package op

import (
	"encoding/binary"
	"math/bits"
	"runtime"
)

// longDouble is C's long double in its 16 bytes: on x86 the 80-bit extended
// format and 6 bytes of padding, elsewhere IEEE 754's binary128. Go has no such
// type, so this file has its arithmetic, correctly rounded to nearest even.
type longDouble [16]byte

type complexLongDouble [2]longDouble

const isX87 = runtime.GOARCH == "amd64" || runtime.GOARCH == "386"

// extended is an unpacked number of up to 128 significant bits. Both formats
// have the same exponents, so they differ only in decoding and rounding.
type extended struct {
	class  class
	neg    bool
	exp    int    // the value is 1.xxx * 2^exp
	hi, lo uint64 // 1xxx: the top bit is set; the last bit is sticky: it is also set if a bit was cut off
}

type class uint8

const (
	zero class = iota
	finite
	infinite
	nan
)

const (
	bias   = 16383
	maxExp = 0x7fff // biased: infinities and NaNs
)

func (a longDouble) decode() extended {
	if isX87 {
		return decodeX87(a)
	}
	return decodeQuad(a)
}

func (x extended) encode() longDouble {
	if isX87 {
		return encodeX87(x)
	}
	return encodeQuad(x)
}

func (a longDouble) add(b longDouble) longDouble { return a.decode().add(b.decode()).encode() }
func (a longDouble) mul(b longDouble) longDouble { return a.decode().mul(b.decode()).encode() }

func (a longDouble) max(b longDouble) longDouble {
	if less(a.decode(), b.decode()) {
		return b
	}
	return a
}

func (a longDouble) min(b longDouble) longDouble {
	if less(b.decode(), a.decode()) {
		return b
	}
	return a
}

func (a complexLongDouble) add(b complexLongDouble) complexLongDouble {
	return complexLongDouble{a[0].add(b[0]), a[1].add(b[1])}
}

func (a complexLongDouble) mul(b complexLongDouble) complexLongDouble {
	return complexLongDouble{
		a[0].mul(b[0]).add(a[1].mul(b[1]).negated()),
		a[0].mul(b[1]).add(a[1].mul(b[0])),
	}
}

func (a longDouble) negated() longDouble {
	if isX87 {
		a[9] ^= 0x80
	} else {
		a[15] ^= 0x80
	}
	return a
}

// longDoubleInt has the layout of C's struct { long double v; int i; }.
type longDoubleInt struct {
	v longDouble
	i int32
	_ [12]byte
}

func (a longDoubleInt) maxloc(b longDoubleInt) longDoubleInt {
	return a.pick(b, less(a.v.decode(), b.v.decode()))
}

func (a longDoubleInt) minloc(b longDoubleInt) longDoubleInt {
	return a.pick(b, less(b.v.decode(), a.v.decode()))
}

func (a longDoubleInt) pick(b longDoubleInt, better bool) longDoubleInt {
	if better || b.i < a.i && equal(a.v.decode(), b.v.decode()) {
		return b
	}
	return a
}

func decodeX87(a [16]byte) extended {
	sig := binary.LittleEndian.Uint64(a[:])
	top := binary.LittleEndian.Uint16(a[8:])
	exp := int(top & maxExp)
	x := extended{class: finite, neg: top>>15 == 1, exp: exp - bias, hi: sig}
	switch {
	case exp == maxExp && sig == 1<<63:
		x.class = infinite
	case exp == maxExp, exp != 0 && sig>>63 == 0:
		// The second case is a number without its leading bit, which the processor
		// treats as a NaN too.
		x.class = nan
	case sig == 0:
		x.class = zero
	case exp == 0:
		x.exp = 1 - bias
		x.normalize()
	}
	return x
}

func encodeX87(x extended) (a [16]byte) {
	exp, sig := 0, uint64(0)
	switch x.class {
	case infinite:
		exp, sig = maxExp, 1<<63
	case nan:
		exp, sig = maxExp, 3<<62|x.hi
	case finite:
		x.denormalize()
		// Round off lo.
		sig = x.hi
		exp = x.exp + bias
		if x.lo > 1<<63 || x.lo == 1<<63 && sig&1 == 1 {
			if sig++; sig == 0 {
				sig, exp = 1<<63, exp+1
			}
		}
		if sig>>63 == 0 {
			exp = 0
		}
		if exp >= maxExp {
			exp, sig = maxExp, 1<<63
		}
	}
	binary.LittleEndian.PutUint64(a[:], sig)
	binary.LittleEndian.PutUint16(a[8:], uint16(exp)|signBit(x.neg))
	return a
}

func decodeQuad(a [16]byte) extended {
	lo, hi := binary.LittleEndian.Uint64(a[:]), binary.LittleEndian.Uint64(a[8:])
	exp := int(hi >> 48 & maxExp)
	x := extended{class: finite, neg: hi>>63 == 1, exp: exp - bias}
	// 48 and 64 bits of fraction go behind the leading bit.
	x.hi = hi<<15&^(1<<63) | lo>>49
	x.lo = lo << 15
	switch {
	case exp == maxExp && x.hi|x.lo == 0:
		x.class = infinite
	case exp == maxExp:
		x.class = nan
	case exp != 0:
		x.hi |= 1 << 63
	case x.hi|x.lo == 0:
		x.class = zero
	default:
		x.exp = 1 - bias
		x.normalize()
	}
	return x
}

func encodeQuad(x extended) (a [16]byte) {
	exp := 0
	switch x.class {
	case zero:
		x.hi, x.lo = 0, 0
	case infinite:
		exp, x.hi, x.lo = maxExp, 0, 0
	case nan:
		exp, x.hi = maxExp, x.hi|1<<62
	case finite:
		x.denormalize()
		exp = x.exp + bias
		// Round off the last 15 bits.
		const unit, half = 1 << 15, 1 << 14
		rest := x.lo % unit
		x.lo -= rest
		if rest > half || rest == half && x.lo&unit != 0 {
			var carry uint64
			x.lo, carry = bits.Add64(x.lo, unit, 0)
			if x.hi, carry = bits.Add64(x.hi, 0, carry); carry != 0 {
				x.hi, exp = 1<<63, exp+1
			}
		}
		if x.hi>>63 == 0 {
			exp = 0
		}
		if exp >= maxExp {
			exp, x.hi, x.lo = maxExp, 0, 0
		}
	}
	x.hi &^= 1 << 63
	binary.LittleEndian.PutUint64(a[:], x.hi<<49|x.lo>>15)
	binary.LittleEndian.PutUint64(a[8:], x.hi>>15|uint64(uint16(exp)|signBit(x.neg))<<48)
	return a
}

func signBit(neg bool) uint16 {
	if neg {
		return 1 << 15
	}
	return 0
}

// normalize shifts the leading bit to the top.
func (x *extended) normalize() {
	n := bits.LeadingZeros64(x.hi)
	if n == 64 {
		n += bits.LeadingZeros64(x.lo)
		x.hi, x.lo = x.lo<<(n-64), 0
	} else if n > 0 {
		x.hi = x.hi<<n | x.lo>>(64-n)
		x.lo <<= n
	}
	x.exp -= n
}

// denormalize shifts a number below the smallest normal one to the exponent of that
// one.
func (x *extended) denormalize() {
	if d := 1 - bias - x.exp; d > 0 {
		x.shiftRight(d)
		x.exp = 1 - bias
	}
}

// shiftRight shifts the number by n bits and sets the last bit if it cuts off any bit
// that is set.
func (x *extended) shiftRight(n int) {
	var lost uint64
	switch {
	case n == 0:
		return
	case n < 64:
		lost = x.lo << (64 - n)
		x.lo = x.hi<<(64-n) | x.lo>>n
		x.hi >>= n
	case n < 128:
		lost = x.lo
		if n > 64 {
			lost |= x.hi << (128 - n)
		}
		x.lo, x.hi = x.hi>>(n-64), 0
	default:
		lost = x.hi | x.lo
		x.hi, x.lo = 0, 0
	}
	if lost != 0 {
		x.lo |= 1
	}
}

var notANumber = extended{class: nan, neg: true}

func (x extended) add(y extended) extended {
	switch {
	case x.class == nan:
		return x
	case y.class == nan:
		return y
	case x.class == infinite:
		if y.class == infinite && x.neg != y.neg {
			return notANumber
		}
		return x
	case y.class == infinite:
		return y
	case x.class == zero:
		if y.class == zero {
			y.neg = x.neg && y.neg
		}
		return y
	case y.class == zero:
		return x
	}
	if x.exp < y.exp || x.exp == y.exp && (x.hi < y.hi || x.hi == y.hi && x.lo < y.lo) {
		x, y = y, x
	}
	y.shiftRight(x.exp - y.exp)
	var carry uint64
	if x.neg == y.neg {
		x.lo, carry = bits.Add64(x.lo, y.lo, 0)
		x.hi, carry = bits.Add64(x.hi, y.hi, carry)
		if carry != 0 {
			x.shiftRight(1)
			x.hi |= 1 << 63
			x.exp++
		}
		return x
	}
	x.lo, carry = bits.Sub64(x.lo, y.lo, 0)
	x.hi, _ = bits.Sub64(x.hi, y.hi, carry)
	if x.hi|x.lo == 0 {
		return extended{}
	}
	x.normalize()
	return x
}

func (x extended) mul(y extended) extended {
	neg := x.neg != y.neg
	switch {
	case x.class == nan:
		return x
	case y.class == nan:
		return y
	case x.class == infinite || y.class == infinite:
		if x.class == zero || y.class == zero {
			return notANumber
		}
		return extended{class: infinite, neg: neg}
	case x.class == zero || y.class == zero:
		return extended{neg: neg}
	}
	// 128 by 128 bits, word by word.
	h1, h0 := bits.Mul64(x.hi, y.hi)
	a1, a0 := bits.Mul64(x.hi, y.lo)
	b1, b0 := bits.Mul64(x.lo, y.hi)
	l1, l0 := bits.Mul64(x.lo, y.lo)
	var carry, more uint64
	l1, carry = bits.Add64(l1, a0, 0)
	h0, carry = bits.Add64(h0, a1, carry)
	h1 += carry
	l1, more = bits.Add64(l1, b0, 0)
	h0, more = bits.Add64(h0, b1, more)
	h1 += more

	z := extended{class: finite, neg: neg, exp: x.exp + y.exp + 1, hi: h1, lo: h0}
	if h1>>63 == 0 {
		z.hi, z.lo = h1<<1|h0>>63, h0<<1|l1>>63
		l1 <<= 1
		z.exp--
	}
	if l1|l0 != 0 {
		z.lo |= 1
	}
	return z
}

// less reports whether x < y; false if either is a NaN.
func less(x, y extended) bool {
	if x.class == nan || y.class == nan {
		return false
	}
	if x.class == zero && y.class == zero {
		return false
	}
	if x.class == zero {
		return !y.neg
	}
	if y.class == zero || x.neg != y.neg {
		return x.neg
	}
	if x.neg {
		x, y = y, x
	}
	switch {
	case x.class == infinite || y.class == infinite:
		return x.class != infinite
	case x.exp != y.exp:
		return x.exp < y.exp
	case x.hi != y.hi:
		return x.hi < y.hi
	}
	return x.lo < y.lo
}

// equal reports whether x == y; false if either is a NaN.
func equal(x, y extended) bool {
	return x.class != nan && y.class != nan && !less(x, y) && !less(y, x)
}
