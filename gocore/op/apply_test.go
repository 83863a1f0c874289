package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

var allOps = []Op{Max, Min, Sum, Prod, Land, Band, Lor, Bor, Lxor, Bxor, Maxloc, Minloc, Replace, NoOp}

func forAll(t *testing.T, f func(t *testing.T, o Op, k dtype.Kind)) {
	for _, o := range allOps {
		for k := dtype.KindNone; k < dtype.Kinds; k++ {
			if o.Valid(k) {
				t.Run(fmt.Sprintf("%v/%v", o, k), func(t *testing.T) { f(t, o, k) })
			}
		}
	}
}

// element returns the bytes of a random element of kind k: small values often,
// so that products stay finite, values are equal and some are zero.
func element(r *rand.Rand, k dtype.Kind) []byte {
	b := make([]byte, k.Size())
	small := r.IntN(9) - 4
	put := func(v uint64) { // the first bytes of it
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], v)
		copy(b, w[:])
	}
	switch {
	case k.IsPair():
		copy(b, element(r, k.PairValue()))
		binary.LittleEndian.PutUint32(b[k.PairIndex():], uint32(r.IntN(4)))
	case k == dtype.Float16:
		binary.LittleEndian.PutUint16(b, uint16(toFloat16(float32(small)*0.7)))
	case k == dtype.BFloat16:
		binary.LittleEndian.PutUint16(b, uint16(toBFloat16(float32(small)*0.7)))
	case k == dtype.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(small)*float32(r.NormFloat64())))
	case k == dtype.Float64:
		put(math.Float64bits(float64(small) * r.NormFloat64()))
	case k == dtype.LongDouble:
		v := ld(small)
		copy(b, v[:])
	case k == dtype.Complex32, k == dtype.Complex64, k == dtype.Complex128, k == dtype.ComplexLongDouble:
		part := map[dtype.Kind]dtype.Kind{dtype.Complex32: dtype.Float16, dtype.Complex64: dtype.Float32,
			dtype.Complex128: dtype.Float64, dtype.ComplexLongDouble: dtype.LongDouble}[k]
		copy(b, element(r, part))
		copy(b[part.Size():], element(r, part))
	case r.IntN(2) == 0:
		put(uint64(small))
	default:
		put(r.Uint64())
	}
	return b
}

func isSigned(k dtype.Kind) bool {
	return k == dtype.Int8 || k == dtype.Int16 || k == dtype.Int32 || k == dtype.Int64
}

// integer reads an element as the mathematical integer that it is.
func integer(k dtype.Kind, b []byte) *big.Int {
	var w [8]byte
	copy(w[:], b)
	v := new(big.Int).SetUint64(binary.LittleEndian.Uint64(w[:]))
	if isSigned(k) && b[len(b)-1]>>7 == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func integerBytes(k dtype.Kind, v *big.Int) []byte {
	v = new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*k.Size())), big.NewInt(1)))
	b := make([]byte, k.Size())
	for i, x := range v.Bits() {
		for j := range 8 {
			if 8*i+j < len(b) {
				b[8*i+j] = byte(x >> (8 * j))
			}
		}
	}
	return b
}

// expected computes a op b on the bytes of elements with numbers of any length.
func expected(o Op, k dtype.Kind, a, b []byte) []byte {
	switch {
	case o == Replace:
		return b
	case o == NoOp:
		return a
	case o == Band || o == Bor || o == Bxor:
		c := make([]byte, len(a))
		for i := range c {
			c[i] = map[Op]byte{Band: a[i] & b[i], Bor: a[i] | b[i], Bxor: a[i] ^ b[i]}[o]
		}
		return c
	case o == Land || o == Lor || o == Lxor:
		x, y := integer(k, a).Sign() != 0, integer(k, b).Sign() != 0
		c := make([]byte, len(a))
		if map[Op]bool{Land: x && y, Lor: x || y, Lxor: x != y}[o] {
			c[0] = 1
		}
		return c
	case isInteger(k):
		x, y, z := integer(k, a), integer(k, b), new(big.Int)
		switch o {
		case Sum:
			z.Add(x, y)
		case Prod:
			z.Mul(x, y)
		case Max:
			if z = x; y.Cmp(x) > 0 {
				z = y
			}
		case Min:
			if z = x; y.Cmp(x) < 0 {
				z = y
			}
		}
		return integerBytes(k, z)
	case isFloat(k):
		return roundTo(k, exact(o, real2big(k, a), real2big(k, b)))
	case isComplex(k):
		return complexExpected(o, k, a, b)
	default:
		return pairExpected(o, k, a, b)
	}
}

func real2big(k dtype.Kind, b []byte) *big.Float {
	f := new(big.Float).SetPrec(500)
	switch k {
	case dtype.Float16:
		return f.SetFloat64(float64(float16(binary.LittleEndian.Uint16(b)).float()))
	case dtype.BFloat16:
		return f.SetFloat64(float64(bfloat16(binary.LittleEndian.Uint16(b)).float()))
	case dtype.Float32:
		return f.SetFloat64(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case dtype.Float64:
		return f.SetFloat64(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	x := longDouble(b).decode()
	if x.class == zero {
		return f
	}
	f.SetInt(new(big.Int).Add(new(big.Int).Lsh(new(big.Int).SetUint64(x.hi), 64), new(big.Int).SetUint64(x.lo)))
	f.SetMantExp(f, x.exp-127)
	if x.neg {
		f.Neg(f)
	}
	return f
}

func exact(o Op, x, y *big.Float) *big.Float {
	z := new(big.Float).SetPrec(500)
	switch o {
	case Sum:
		return z.Add(x, y)
	case Prod:
		return z.Mul(x, y)
	case Max:
		if y.Cmp(x) > 0 {
			return y
		}
	case Min:
		if y.Cmp(x) < 0 {
			return y
		}
	}
	return x
}

func roundTo(k dtype.Kind, f *big.Float) []byte {
	b := make([]byte, k.Size())
	switch k {
	case dtype.Float16:
		v, _ := f.Float64()
		binary.LittleEndian.PutUint16(b, uint16(nearestFloat16(v)))
	case dtype.BFloat16:
		v, _ := f.Float64()
		binary.LittleEndian.PutUint16(b, uint16(nearestBFloat16(v)))
	case dtype.Float32:
		v, _ := f.Float32()
		binary.LittleEndian.PutUint32(b, math.Float32bits(v))
	case dtype.Float64:
		v, _ := f.Float64()
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	case dtype.LongDouble:
		v, _ := f.Int64() // whole numbers only: the vectors test the rest
		x := ld(int(v))
		if v == 0 && f.Signbit() {
			x = x.negated()
		}
		copy(b, x[:])
	}
	return b
}

func complexExpected(o Op, k dtype.Kind, a, b []byte) []byte {
	half := len(a) / 2
	part := map[int]dtype.Kind{2: dtype.Float16, 4: dtype.Float32, 8: dtype.Float64, 16: dtype.LongDouble}[half]
	ar, ai := real2big(part, a[:half]), real2big(part, a[half:])
	br, bi := real2big(part, b[:half]), real2big(part, b[half:])
	if o == Sum {
		return append(roundTo(part, exact(Sum, ar, br)), roundTo(part, exact(Sum, ai, bi))...)
	}
	mul := func(x, y *big.Float) *big.Float { return exact(Prod, x, y) }
	re := new(big.Float).SetPrec(500).Sub(mul(ar, br), mul(ai, bi))
	im := new(big.Float).SetPrec(500).Add(mul(ar, bi), mul(ai, br))
	return append(roundTo(part, re), roundTo(part, im)...)
}

func pairExpected(o Op, k dtype.Kind, a, b []byte) []byte {
	v, at := k.PairValue(), k.PairIndex()
	var cmp int
	if isInteger(v) {
		cmp = integer(v, b[:v.Size()]).Cmp(integer(v, a[:v.Size()]))
	} else {
		cmp = real2big(v, b[:v.Size()]).Cmp(real2big(v, a[:v.Size()]))
	}
	if o == Minloc {
		cmp = -cmp
	}
	index := func(e []byte) int32 { return int32(binary.LittleEndian.Uint32(e[at:])) }
	if cmp > 0 || cmp == 0 && index(b) < index(a) {
		return b
	}
	return a
}

// agree compares elements: products of complex numbers are rounded more than
// once and may differ in the last digits, and the sign of zero does not matter.
func agree(t *testing.T, o Op, k dtype.Kind, want, got []byte, what string) {
	t.Helper()
	if !isFloat(k) && !isComplex(k) {
		require.Equal(t, want, got, what)
		return
	}
	part, eps := k, 0.0
	if isComplex(k) {
		part = map[int]dtype.Kind{4: dtype.Float16, 8: dtype.Float32, 16: dtype.Float64, 32: dtype.LongDouble}[k.Size()]
		if o == Prod {
			eps = map[dtype.Kind]float64{dtype.Float16: 1e-2, dtype.Float32: 1e-5, dtype.Float64: 1e-13}[part]
		}
	}
	for at := 0; at < len(want); at += part.Size() {
		x, _ := real2big(part, want[at:at+part.Size()]).Float64()
		y, _ := real2big(part, got[at:at+part.Size()]).Float64()
		require.InDelta(t, x, y, eps, what)
	}
}

func TestApply(t *testing.T) {
	forAll(t, func(t *testing.T, o Op, k dtype.Kind) {
		r := rand.New(rand.NewPCG(uint64(o), uint64(k)))
		size := k.Size()
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 100} {
			for misaligned := range 2 {
				a, b := make([]byte, n*size+2), make([]byte, n*size+2)
				for i := range n {
					copy(a[misaligned+i*size:], element(r, k))
					copy(b[misaligned+i*size:], element(r, k))
				}
				before, other := append([]byte(nil), a...), append([]byte(nil), b...)
				o.Apply(k, unsafe.Pointer(&a[misaligned]), unsafe.Pointer(&b[misaligned]), n)
				require.Equal(t, other, b, "in is left alone")
				require.Equal(t, before[:misaligned], a[:misaligned])
				require.Equal(t, before[misaligned+n*size:], a[misaligned+n*size:], "nothing behind the end is touched")
				for i := range n {
					at := misaligned + i*size
					x, y := before[at:at+size], other[at:at+size]
					agree(t, o, k, expected(o, k, x, y), a[at:at+size], fmt.Sprintf("element %d of %d: %x %v %x", i, n, x, o, y))
				}
			}
		}
	})
}

func TestValidTable(t *testing.T) {
	// What MPI-4.1 section 6.9.2 allows, by rows of operations.
	for _, c := range []struct {
		ops   []Op
		kinds []dtype.Kind
	}{
		{[]Op{Max, Min}, []dtype.Kind{dtype.Int8, dtype.Uint64, dtype.Float16, dtype.Float64, dtype.LongDouble}},
		{[]Op{Sum, Prod}, []dtype.Kind{dtype.Uint8, dtype.Int32, dtype.Float32, dtype.Complex32, dtype.Complex128, dtype.ComplexLongDouble}},
		{[]Op{Land, Lor, Lxor}, []dtype.Kind{dtype.Bool, dtype.Logical4, dtype.Int16}},
		{[]Op{Band, Bor, Bxor}, []dtype.Kind{dtype.Byte, dtype.Uint16, dtype.Int64}},
		{[]Op{Maxloc, Minloc}, []dtype.Kind{dtype.FloatInt, dtype.TwoInt, dtype.LongDoubleInt}},
		{[]Op{Replace, NoOp}, []dtype.Kind{dtype.Byte, dtype.Char, dtype.Wchar, dtype.Bool, dtype.Float64, dtype.DoubleInt}},
	} {
		for _, o := range c.ops {
			for _, k := range c.kinds {
				assert.True(t, o.Valid(k), "%v on %v", o, k)
			}
			assert.False(t, o.Valid(dtype.KindNone))
			assert.False(t, o.Valid(dtype.Kinds))
		}
	}
	for _, c := range []struct {
		o Op
		k dtype.Kind
	}{
		{Sum, dtype.Bool}, {Max, dtype.Bool}, {Band, dtype.Bool}, {Sum, dtype.Byte}, {Land, dtype.Byte}, {Max, dtype.Complex64},
		{Land, dtype.Float64}, {Band, dtype.Float32}, {Sum, dtype.Char}, {Sum, dtype.Wchar}, {Sum, dtype.Logical4}, {Sum, dtype.DoubleInt},
		{Maxloc, dtype.Int32}, {OpNull, dtype.Int32}, {Op(-1), dtype.Int32}, {ops, dtype.Int32},
	} {
		assert.False(t, c.o.Valid(c.k), "%v on %v", c.o, c.k)
	}
}

func TestApplyInvalidPanics(t *testing.T) {
	x := 1.5
	p := unsafe.Pointer(&x)
	assert.PanicsWithValue(t, "op: Apply: MPI_BAND is not defined on elements of kind float64", func() { Band.Apply(dtype.Float64, p, p, 1) })
	assert.Panics(t, func() { Sum.AtomicApply(dtype.Complex128, p, p, nil, 1) })
	assert.Panics(t, func() { AtomicCAS(2, p, p, p, nil) })
}

func TestNames(t *testing.T) {
	assert.Equal(t, []int{1, 3, 11, 13, 14}, []int{int(Max), int(Sum), int(Maxloc), int(Replace), int(NoOp)}, "the values go over the wire")
	assert.Equal(t, "MPI_SUM", Sum.String())
	assert.Equal(t, "MPI_NO_OP", NoOp.String())
	assert.Equal(t, "unknown operation", ops.String())
	assert.True(t, Bxor.Commutative())
	assert.False(t, Replace.Commutative())
	assert.False(t, OpNull.Commutative())
}

func TestNaNIsKeptByTheFirst(t *testing.T) {
	for _, o := range []Op{Max, Min} {
		a, b := []float64{math.NaN(), 1}, []float64{1, math.NaN()}
		o.Apply(dtype.Float64, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), 2)
		assert.True(t, math.IsNaN(a[0]))
		assert.Equal(t, 1.0, a[1])
	}
}

func TestLargeReplace(t *testing.T) {
	a, b := make([]byte, 3*pieceSize+5), make([]byte, 3*pieceSize+5)
	for i := range b {
		b[i] = byte(i * 3)
	}
	Replace.Apply(dtype.Byte, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), len(a))
	assert.Equal(t, b, a)
}

func BenchmarkApply(b *testing.B) {
	const n = 4096
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		o Op
		k dtype.Kind
	}{
		{Sum, dtype.Float64}, {Sum, dtype.Float32}, {Sum, dtype.Int32}, {Max, dtype.Float64}, {Bor, dtype.Uint8},
		{Sum, dtype.Complex128}, {Maxloc, dtype.DoubleInt}, {Sum, dtype.LongDouble}, {Sum, dtype.Float16}, {Land, dtype.Bool},
	} {
		b.Run(fmt.Sprintf("%v/%v", c.o, c.k), func(b *testing.B) {
			var x, y []byte
			for range n {
				x, y = append(x, element(r, c.k)...), append(y, element(r, c.k)...)
			}
			b.SetBytes(int64(n * c.k.Size()))
			for b.Loop() {
				c.o.Apply(c.k, unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), n)
			}
		})
	}
}
