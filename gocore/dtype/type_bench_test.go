package dtype

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkTranspose packs and unpacks an n by n matrix of doubles column by
// column, as one item (a vector of vectors) and as n items (a resized column).
func BenchmarkTranspose(b *testing.B) {
	double := ByName("DOUBLE")
	for _, n := range []int{64, 1000, 1024, 2048} {
		column, err := Vector(double, n, 1, n)
		require.NoError(b, err)
		column, err = Resized(column, 0, 8)
		require.NoError(b, err)
		mem := newMemory(0, n*n*8)
		buf := make([]byte, n*n*8)
		b.Run(fmt.Sprintf("pack/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				column.Pack(buf, mem.at(0), n)
			}
		})
		b.Run(fmt.Sprintf("unpack/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				column.Unpack(mem.at(0), buf, n)
			}
		})
	}
}

func BenchmarkPack(b *testing.B) {
	double := ByName("DOUBLE")
	const n = 1 << 14
	column, err := Vector(double, n, 1, 16)
	require.NoError(b, err)
	blocks, err := Vector(double, n/8, 8, 16)
	require.NoError(b, err)
	displs := make([]int, n)
	for i := range displs {
		displs[i] = 3*i + i%2
	}
	scattered, err := IndexedBlock(double, 1, displs)
	require.NoError(b, err)
	small, err := Vector(double, 2, 1, 2)
	require.NoError(b, err)
	for name, typ := range map[string]*Type{"column": column, "blocks": blocks, "scattered": scattered, "small": small, "double": double} {
		_, hi := typ.Span(1)
		mem := newMemory(0, hi)
		buf := make([]byte, typ.Size())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				typ.Pack(buf, mem.at(0), 1)
			}
		})
	}
}
