package dtype_test

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/dtype"
)

// A column of a matrix of 3 rows and 4 columns is a vector: 3 blocks of one element, a
// row apart.
func ExampleVector() {
	column, err := dtype.Vector(dtype.ByName("INT"), 3, 1, 4)
	if err != nil {
		panic(err)
	}
	fmt.Println("size", column.Size(), "extent", column.Extent())
	column.Runs(1, func(off, n int) bool {
		fmt.Println(n, "bytes at", off)
		return true
	})
	// Output:
	// size 12 extent 36
	// 4 bytes at 0
	// 4 bytes at 16
	// 4 bytes at 32
}

// The columns of a matrix follow each other when the extent of a column is that of an
// element.
func ExampleResized() {
	column, _ := dtype.Vector(dtype.ByName("INT"), 2, 1, 3)
	column, err := dtype.Resized(column, 0, 4)
	if err != nil {
		panic(err)
	}
	matrix := [2][3]int32{{1, 2, 3}, {4, 5, 6}}
	var transposed [6]int32
	packed := unsafe.Slice((*byte)(unsafe.Pointer(&transposed)), 24)
	fmt.Println(column.Pack(packed, unsafe.Pointer(&matrix), 3), transposed)
	// Output: 24 [1 4 2 5 3 6]
}

func ExampleFromFormat() {
	fmt.Println(dtype.FromFormat("<d", 8).Name())
	fmt.Println(dtype.FromFormat(">d", 8), "for another byte order")
	// Output:
	// MPI_DOUBLE
	// <nil> for another byte order
}
