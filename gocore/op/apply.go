package op

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/dtype"
)

// kernel sets inout[i] = in[i] op inout[i] for n elements.
type kernel func(inout, in unsafe.Pointer, n int)

// kernels are loops in Go: the oracle of those in assembly, and what does what these leave.
var kernels = makeKernels()

// Apply sets inout[i] = in[i] op inout[i] for n elements of kind k that form an
// array (pairs with their padding). Nothing needs to be aligned. It panics if
// the operation is not Valid for k.
//
// The bits do not depend on the processor, except where both operands are NaN: the result is
// then one of them.
func (o Op) Apply(k dtype.Kind, inout, in unsafe.Pointer, n int) {
	if !o.Valid(k) {
		panic(fmt.Sprintf("op: Apply: %v is not defined on elements of kind %v", o, k))
	}
	if n <= 0 {
		return
	}
	switch o {
	case NoOp:
	case Replace:
		replace(inout, in, n*k.Size())
	default:
		if v := vectorKernels[o][k]; v != nil && n*k.Size() >= vectorBlock {
			done := vector(v.folds[2], inout, &[mostOperands]unsafe.Pointer{in, inout, in, in}, n*k.Size())
			if n -= done / k.Size(); n == 0 {
				return
			}
			inout, in = unsafe.Add(inout, done), unsafe.Add(in, done)
		}
		kernels[o][k](inout, in, n)
	}
}

func replace(dst, src unsafe.Pointer, n int) {
	for at := 0; at < n; at += pieceSize {
		m := min(n-at, pieceSize)
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, at)), m), unsafe.Slice((*byte)(unsafe.Add(src, at)), m))
	}
}

// bitwise returns a kernel that treats elements of any size as words of 8 bytes and a rest of
// bytes.
func bitwise(size int, words func(a, b []uint64), rest func(a, b []byte)) kernel {
	return func(inout, in unsafe.Pointer, n int) {
		n *= size
		if w := n / 8; w > 0 {
			words(unsafe.Slice((*uint64)(inout), w), unsafe.Slice((*uint64)(in), w))
		}
		if r := n % 8; r > 0 {
			rest(unsafe.Slice((*byte)(unsafe.Add(inout, n-r)), r), unsafe.Slice((*byte)(unsafe.Add(in, n-r)), r))
		}
	}
}

func makeKernels() (t [ops][dtype.Kinds]kernel) {
	arithmetic[int8](&t, dtype.Int8)
	arithmetic[uint8](&t, dtype.Uint8)
	arithmetic[int16](&t, dtype.Int16)
	arithmetic[uint16](&t, dtype.Uint16)
	arithmetic[int32](&t, dtype.Int32)
	arithmetic[uint32](&t, dtype.Uint32)
	arithmetic[int64](&t, dtype.Int64)
	arithmetic[uint64](&t, dtype.Uint64)
	arithmetic[float32](&t, dtype.Float32)
	arithmetic[float64](&t, dtype.Float64)
	for _, k := range []dtype.Kind{dtype.Bool, dtype.Logical1, dtype.Int8, dtype.Uint8} {
		logical[uint8](&t, k)
	}
	for _, k := range []dtype.Kind{dtype.Logical2, dtype.Int16, dtype.Uint16} {
		logical[uint16](&t, k)
	}
	for _, k := range []dtype.Kind{dtype.Logical4, dtype.Int32, dtype.Uint32} {
		logical[uint32](&t, k)
	}
	for _, k := range []dtype.Kind{dtype.Logical8, dtype.Int64, dtype.Uint64} {
		logical[uint64](&t, k)
	}

	for k := dtype.KindNone; k < dtype.Kinds; k++ {
		if Band.Valid(k) {
			t[Band][k] = bitwise(k.Size(), and[uint64], and[byte])
			t[Bor][k] = bitwise(k.Size(), or[uint64], or[byte])
			t[Bxor][k] = bitwise(k.Size(), xor[uint64], xor[byte])
		}
	}

	t[Sum][dtype.Complex64] = array(sum[complex64])
	t[Prod][dtype.Complex64] = array(prod[complex64])
	t[Sum][dtype.Complex128] = array(sum[complex128])
	t[Prod][dtype.Complex128] = array(prod[complex128])

	t[Max][dtype.Float16] = each(largerHalf[float16])
	t[Min][dtype.Float16] = each(smallerHalf[float16])
	t[Sum][dtype.Float16] = each(float16.add)
	t[Prod][dtype.Float16] = each(float16.mul)
	t[Max][dtype.BFloat16] = each(largerHalf[bfloat16])
	t[Min][dtype.BFloat16] = each(smallerHalf[bfloat16])
	t[Sum][dtype.BFloat16] = each(bfloat16.add)
	t[Prod][dtype.BFloat16] = each(bfloat16.mul)
	t[Sum][dtype.Complex32] = each(complex32.add)
	t[Prod][dtype.Complex32] = each(complex32.mul)

	t[Max][dtype.LongDouble] = each(longDouble.max)
	t[Min][dtype.LongDouble] = each(longDouble.min)
	t[Sum][dtype.LongDouble] = each(longDouble.add)
	t[Prod][dtype.LongDouble] = each(longDouble.mul)
	if isX87 {
		t[Sum][dtype.LongDouble] = each(x87.add)
		t[Prod][dtype.LongDouble] = each(x87.mul)
	}
	t[Sum][dtype.ComplexLongDouble] = each(complexLongDouble.add)
	t[Prod][dtype.ComplexLongDouble] = each(complexLongDouble.mul)

	location[float32](&t, dtype.FloatInt)
	location[float64](&t, dtype.DoubleInt)
	location[int64](&t, dtype.LongInt)
	location[int32](&t, dtype.TwoInt)
	location[int16](&t, dtype.ShortInt)
	t[Maxloc][dtype.LongDoubleInt] = each(longDoubleInt.maxloc)
	t[Minloc][dtype.LongDoubleInt] = each(longDoubleInt.minloc)
	return t
}

func arithmetic[T ordered](t *[ops][dtype.Kinds]kernel, k dtype.Kind) {
	t[Max][k] = array(maximum[T])
	t[Min][k] = array(minimum[T])
	t[Sum][k] = array(sum[T])
	t[Prod][k] = array(prod[T])
}

// logical sets the kernels of logical operations, which depend only on whether an
// element is zero: there is one for each size.
func logical[T unsigned](t *[ops][dtype.Kinds]kernel, k dtype.Kind) {
	t[Land][k] = each(land[T])
	t[Lor][k] = each(lor[T])
	t[Lxor][k] = each(lxor[T])
}

func location[T ordered](t *[ops][dtype.Kinds]kernel, k dtype.Kind) {
	t[Maxloc][k] = each(pair[T].maxloc)
	t[Minloc][k] = each(pair[T].minloc)
}

// array returns a kernel that runs a loop.
func array[T any](loop func(a, b []T)) kernel {
	return func(inout, in unsafe.Pointer, n int) {
		loop(unsafe.Slice((*T)(inout), n), unsafe.Slice((*T)(in), n))
	}
}

// each returns a kernel that applies f to each pair of elements.
func each[T any](f func(a, b T) T) kernel {
	return func(inout, in unsafe.Pointer, n int) {
		a, b := unsafe.Slice((*T)(inout), n), unsafe.Slice((*T)(in), n)
		for i, x := range b {
			a[i] = f(a[i], x)
		}
	}
}
