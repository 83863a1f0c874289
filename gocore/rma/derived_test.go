package rma_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// side is a type and a count for one side of an operation.
type side struct {
	name  string
	typ   *dtype.Type
	count int
}

// sides are several descriptions of as many bytes each.
func sides(t *testing.T) [][]side {
	must := func(typ *dtype.Type, err error) *dtype.Type {
		require.NoError(t, err)
		return typ
	}
	long := dtype.ByName("INT64_T")
	const n = 36 // n*n runs are more than one call takes
	displs := make([]int, n*n)
	for i := range displs {
		displs[i] = (i * 1237) % (n * n)
	}
	const row = 600 << 10 // more than one piece
	double := must(dtype.Struct([]int{1, 1}, []int{0, 8}, []*dtype.Type{dtype.ByName("INT32_T"), dtype.ByName("INT32_T")}))
	return [][]side{{
		{"dense", long, n * n},
		{"columns", must(dtype.Resized(must(dtype.Vector(long, n, 1, n)), 0, 8)), n},
		{"shuffled", must(dtype.IndexedBlock(long, 1, displs)), 1},
		{"split", must(dtype.Resized(double, 0, 16)), n * n},
	}, {
		{"dense", dtype.ByName("BYTE"), 3 * row},
		{"rows", must(dtype.Vector(dtype.ByName("BYTE"), 3, row, row+40)), 1},
		{"backwards", must(dtype.Resized(must(dtype.Hvector(dtype.ByName("BYTE"), 3, row, -row-8)), 0, 1)), 1},
	}}
}

// Data of any description goes to memory of any description and comes back, on
// every way, and nothing beside it changes.
func TestDerivedOnBothSides(t *testing.T) {
	const size = 2 << 20
	groups := sides(t)
	run(t, 2, size, 1, func(w *window) {
		other := 1 - w.Rank
		for _, group := range groups {
			for _, target := range group {
				lo, hi := target.typ.Span(target.count)
				disp := 24 - lo
				for _, origin := range group {
					olo, ohi := origin.typ.Span(origin.count)
					data, back := make([]byte, ohi-olo), make([]byte, ohi-olo)
					for i := range data {
						data[i] = byte(i*7 + i>>9 + w.Rank)
					}
					from := p2p.Buf{Addr: unsafe.Add(unsafe.Pointer(&data[0]), -olo), Count: origin.count, Type: origin.typ}
					into := p2p.Buf{Addr: unsafe.Add(unsafe.Pointer(&back[0]), -olo), Count: origin.count, Type: origin.typ}
					spot := rma.Spot{Rank: other, Disp: disp, Count: target.count, Type: target.typ}

					clear(w.mem)
					w.fence()
					require.Nil(w.r.T, w.Put(from, spot))
					w.fence()
					packed := make([]byte, origin.count*origin.typ.Size())
					theirs := append([]byte(nil), data...)
					for i := range theirs {
						theirs[i] += byte(other) - byte(w.Rank)
					}
					origin.typ.Pack(packed, unsafe.Add(unsafe.Pointer(&theirs[0]), -olo), origin.count)
					want := make([]byte, size)
					target.typ.Unpack(unsafe.Pointer(&want[disp]), packed, target.count)
					require.Equal(w.r.T, string(want), string(w.mem), "%s to %s", origin.name, target.name)

					require.Nil(w.r.T, w.Get(into, spot))
					w.fence()
					want = make([]byte, len(back))
					origin.typ.Pack(packed, from.Addr, origin.count)
					origin.typ.Unpack(unsafe.Add(unsafe.Pointer(&want[0]), -olo), packed, origin.count)
					require.Equal(w.r.T, string(want), string(back), "%s from %s", origin.name, target.name)
				}
				require.LessOrEqual(w.r.T, disp+hi, size)
			}
		}
	})
}

// Spans that do not fit in an integer are out of range, not anywhere.
func TestHugeSpans(t *testing.T) {
	wide, err := dtype.Resized(dtype.ByName("INT64_T"), 0, 1<<62)
	require.NoError(t, err)
	back, err := dtype.Resized(dtype.ByName("INT64_T"), 0, -1<<62)
	require.NoError(t, err)
	run(t, 2, 64, 8, func(w *window) {
		w.lock(w.Rank, true)
		v := longs(make([]int64, 4))
		for _, typ := range []*dtype.Type{wide, back} {
			for _, disp := range []int{0, 1, 7} {
				e := w.Put(v, rma.Spot{Rank: w.Rank, Disp: disp, Count: 4, Type: typ})
				require.NotNil(w.r.T, e)
				require.Equal(w.r.T, errs.RMARange, e.Class)
			}
		}
		w.unlock(w.Rank)
	})
}
