package op_test

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/op"
)

func ExampleOp_Apply() {
	sum, values := []float64{1, 2, 3}, []float64{10, 20, 30}
	op.Sum.Apply(dtype.Float64, unsafe.Pointer(&sum[0]), unsafe.Pointer(&values[0]), len(sum))
	fmt.Println(sum)
	// Output: [11 22 33]
}

// A fetch and add on memory that several processes may map.
func ExampleOp_AtomicApply() {
	var counter, before int64 = 40, 0
	one := int64(1)
	op.Sum.AtomicApply(dtype.Int64, unsafe.Pointer(&counter), unsafe.Pointer(&one), unsafe.Pointer(&before), 1)
	fmt.Println(before, counter)
	// Output: 40 41
}

func ExampleOp_Valid() {
	fmt.Println(op.Band.Valid(dtype.Int32), op.Band.Valid(dtype.Float64), op.Maxloc.Valid(dtype.DoubleInt))
	// Output: true false true
}

// The contributions of three ranks, combined in one pass.
func ExampleOp_Fold() {
	a, b, c := []int32{1, 2}, []int32{10, 20}, []int32{100, 200}
	in := []unsafe.Pointer{unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])}
	op.Sum.Fold(dtype.Int32, unsafe.Pointer(&a[0]), in, 2)
	fmt.Println(a)
	// Output: [111 222]
}
