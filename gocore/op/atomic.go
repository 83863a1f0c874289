package op

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/dtype"
)

// Atomic reports whether elements of kind k can be updated by CPU atomics if
// they are aligned to their size: those of 4 and 8 bytes.
func Atomic(k dtype.Kind) bool { return k.Size() == 4 || k.Size() == 8 }

var (
	folds32 = makeFolds32()
	folds64 = makeFolds64()
)

// AtomicApply sets, for each of n elements of kind k, result[i] = target[i] and
// target[i] = operand[i] op target[i] in one step that is atomic to every other
// AtomicApply and AtomicCAS on elements of this size. target must be aligned to
// the element's size; operand and result need not be. result may be nil, and so
// may operand for NoOp. It panics if k is not Atomic or the operation not Valid
// for it.
func (o Op) AtomicApply(k dtype.Kind, target, operand, result unsafe.Pointer, n int) {
	if !o.Valid(k) || !Atomic(k) {
		panic(fmt.Sprintf("op: AtomicApply: %v on elements of kind %v", o, k))
	}
	if k.Size() == 4 {
		apply32(o, k, target, operand, result, n)
	} else {
		apply64(o, k, target, operand, result, n)
	}
}

func apply32(o Op, k dtype.Kind, target, operand, result unsafe.Pointer, n int) {
	for i := range n {
		t := (*uint32)(unsafe.Add(target, 4*i))
		var x, old uint32
		if o != NoOp {
			x = *(*uint32)(unsafe.Add(operand, 4*i))
		}
		switch {
		case o == NoOp:
			old = atomic.LoadUint32(t)
		case o == Replace:
			old = atomic.SwapUint32(t, x)
		case o == Sum && isInteger(k):
			old = atomic.AddUint32(t, x) - x
		case o == Band:
			old = atomic.AndUint32(t, x)
		case o == Bor:
			old = atomic.OrUint32(t, x)
		default:
			fold := folds32[o][k]
			for {
				old = atomic.LoadUint32(t)
				next := fold(old, x)
				if next == old || atomic.CompareAndSwapUint32(t, old, next) {
					break
				}
			}
		}
		if result != nil {
			*(*uint32)(unsafe.Add(result, 4*i)) = old
		}
	}
}

func apply64(o Op, k dtype.Kind, target, operand, result unsafe.Pointer, n int) {
	for i := range n {
		t := (*uint64)(unsafe.Add(target, 8*i))
		var x, old uint64
		if o != NoOp {
			x = *(*uint64)(unsafe.Add(operand, 8*i))
		}
		switch {
		case o == NoOp:
			old = atomic.LoadUint64(t)
		case o == Replace:
			old = atomic.SwapUint64(t, x)
		case o == Sum && isInteger(k):
			old = atomic.AddUint64(t, x) - x
		case o == Band:
			old = atomic.AndUint64(t, x)
		case o == Bor:
			old = atomic.OrUint64(t, x)
		default:
			fold := folds64[o][k]
			for {
				old = atomic.LoadUint64(t)
				next := fold(old, x)
				if next == old || atomic.CompareAndSwapUint64(t, old, next) {
					break
				}
			}
		}
		if result != nil {
			*(*uint64)(unsafe.Add(result, 8*i)) = old
		}
	}
}

// AtomicCAS sets result = target, and target = operand if target was equal to
// compare, bit by bit, in one atomic step. size is 4 or 8 and target is aligned
// to it; the others need not be. result may be nil.
func AtomicCAS(size int, target, compare, operand, result unsafe.Pointer) {
	switch size {
	case 4:
		t, c, x := (*uint32)(target), *(*uint32)(compare), *(*uint32)(operand)
		old := c
		for !atomic.CompareAndSwapUint32(t, c, x) {
			// The element may be equal to compare again: then the loop tries again.
			if old = atomic.LoadUint32(t); old != c {
				break
			}
		}
		if result != nil {
			*(*uint32)(result) = old
		}
	case 8:
		t, c, x := (*uint64)(target), *(*uint64)(compare), *(*uint64)(operand)
		old := c
		for !atomic.CompareAndSwapUint64(t, c, x) {
			if old = atomic.LoadUint64(t); old != c {
				break
			}
		}
		if result != nil {
			*(*uint64)(result) = old
		}
	default:
		panic(fmt.Sprintf("op: AtomicCAS: size is %d; it must be 4 or 8", size))
	}
}

type folds[W uint32 | uint64] [ops][dtype.Kinds]func(old, x W) W

// fold converts an operation on elements to one on words of the same size. It passes
// values: a pointer passed to a function in a table would escape to the heap.
func fold[W uint32 | uint64, T any](f func(a, b T) T) func(old, x W) W {
	return func(old, x W) W {
		v := f(*(*T)(unsafe.Pointer(&old)), *(*T)(unsafe.Pointer(&x)))
		return *(*W)(unsafe.Pointer(&v))
	}
}

func makeFolds32() *folds[uint32] {
	t := new(folds[uint32])
	foldArithmetic[uint32, int32](t, dtype.Int32)
	foldArithmetic[uint32, uint32](t, dtype.Uint32)
	foldArithmetic[uint32, float32](t, dtype.Float32)
	foldLogical[uint32, uint32](t, dtype.Int32, dtype.Uint32, dtype.Logical4)
	t[Sum][dtype.Complex32] = fold[uint32](complex32.add)
	t[Prod][dtype.Complex32] = fold[uint32](complex32.mul)
	return t
}

func makeFolds64() *folds[uint64] {
	t := new(folds[uint64])
	foldArithmetic[uint64, int64](t, dtype.Int64)
	foldArithmetic[uint64, uint64](t, dtype.Uint64)
	foldArithmetic[uint64, float64](t, dtype.Float64)
	foldLogical[uint64, uint64](t, dtype.Int64, dtype.Uint64, dtype.Logical8)
	t[Sum][dtype.Complex64] = fold[uint64](add[complex64])
	t[Prod][dtype.Complex64] = fold[uint64](multiply[complex64])
	foldLocation[float32](t, dtype.FloatInt)
	foldLocation[int32](t, dtype.TwoInt)
	foldLocation[int16](t, dtype.ShortInt)
	return t
}

func foldArithmetic[W uint32 | uint64, T ordered](t *folds[W], k dtype.Kind) {
	t[Max][k] = fold[W](larger[T])
	t[Min][k] = fold[W](smaller[T])
	t[Sum][k] = fold[W](add[T])
	t[Prod][k] = fold[W](multiply[T])
	if isInteger(k) {
		t[Bxor][k] = func(old, x W) W { return old ^ x }
	}
}

func foldLogical[W uint32 | uint64, T unsigned](t *folds[W], kinds ...dtype.Kind) {
	for _, k := range kinds {
		t[Land][k] = fold[W](land[T])
		t[Lor][k] = fold[W](lor[T])
		t[Lxor][k] = fold[W](lxor[T])
	}
}

func foldLocation[T ordered](t *folds[uint64], k dtype.Kind) {
	t[Maxloc][k] = fold[uint64](pair[T].maxloc)
	t[Minloc][k] = fold[uint64](pair[T].minloc)
}
