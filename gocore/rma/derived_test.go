package rma_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
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
	const n = 36 // n*n runs are more than the limit of one call
	displs := make([]int, n*n)
	for i := range displs {
		displs[i] = (i * 1237) % (n * n)
	}
	const row = 280 << 10 // more than one piece
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

// TestDerivedOnBothSides checks that data of any type is put to memory of any type and
// fetched back, by every path, and that no byte beside it changes.
func TestDerivedOnBothSides(t *testing.T) {
	const size = 1 << 20
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
					at := rma.TargetSpec{Rank: other, Disp: disp, Count: target.count, Type: target.typ}

					clear(w.mem)
					w.fence()
					require.Nil(w.r.T, w.Put(from, at))
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

					require.Nil(w.r.T, w.Get(into, at))
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

// TestHugeSpans checks that spans that do not fit in an integer are out of range.
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
				e := w.Put(v, rma.TargetSpec{Rank: w.Rank, Disp: disp, Count: 4, Type: typ})
				require.NotNil(w.r.T, e)
				require.Equal(w.r.T, errs.RMARange, e.Class)
			}
		}
		// Counts whose number of bytes matches only because it wraps around.
		one := longs(make([]int64, 1))
		huge := rma.TargetSpec{Rank: w.Rank, Count: 1<<61 + 1, Type: dtype.ByName("INT64_T")}
		for _, e := range []*errs.Error{w.Put(one, huge), w.Get(one, huge), w.Accumulate(one, nil, huge, op.Sum)} {
			require.NotNil(w.r.T, e)
		}
		w.unlock(w.Rank)
	})
}

// TestAccumulateOfManyRuns checks that the locks, system calls, messages and allocations
// for elements that are not contiguous do not grow with the number of elements.
func TestAccumulateOfManyRuns(t *testing.T) {
	const n = 1500
	for _, name := range []string{"INT64_T", "INT16_T", "C_DOUBLE_COMPLEX", "DOUBLE_INT"} {
		old := dtype.ByName(name)
		column, err := dtype.Vector(old, n, 1, 3)
		require.NoError(t, err)
		f := op.Sum
		if old.Kind().IsPair() {
			f = op.Maxloc
		}
		for _, disp := range []int{0, 1} { // aligned and not
			run(t, 2, 3*n*old.Extent()+8, 1, func(w *window) {
				operand, before := make([]byte, n*old.Extent()), make([]byte, n*old.Extent())
				for i := range operand {
					operand[i] = byte(i % 7)
				}
				origin := p2p.Buf{Addr: unsafe.Pointer(&operand[0]), Count: n, Type: old}
				result := p2p.Buf{Addr: unsafe.Pointer(&before[0]), Count: n, Type: old}
				at := rma.TargetSpec{Rank: 1 - w.Rank, Disp: disp, Count: 1, Type: column}
				clear(w.mem)
				w.fence()
				if w.Rank == 0 {
					allocs := testing.AllocsPerRun(5, func() {
						require.Nil(w.r.T, w.Accumulate(origin, nil, at, f))
						w.quiet(-1)
					})
					require.Less(w.r.T, allocs, float64(n/5))
				}
				w.fence()
				require.Nil(w.r.T, w.Accumulate(origin, &result, at, f))
				w.fence()
				require.Nil(w.r.T, w.Accumulate(p2p.Buf{}, &result, at, op.NoOp))
				w.fence()
				theirs := make([]byte, n*old.Size())
				old.Pack(theirs, unsafe.Pointer(&before[0]), n)
				// The expected values, by the same steps in local memory.
				want, pad := make([]byte, len(operand)), make([]byte, len(operand))
				rounds := 1
				if w.Rank == 1 {
					rounds += 6 // AllocsPerRun warms up once
				}
				for range rounds {
					f.Apply(old.Kind(), unsafe.Pointer(&want[0]), unsafe.Pointer(&operand[0]), n)
				}
				mine := make([]byte, len(operand))
				column.PackElements(mine, unsafe.Pointer(&w.mem[disp]), 1)
				old.Pack(pad, unsafe.Pointer(&want[0]), n)
				got := make([]byte, len(operand))
				old.Pack(got, unsafe.Pointer(&mine[0]), n)
				require.Equal(w.r.T, pad, got, name)
				if f == op.Maxloc { // idempotent
					require.Equal(w.r.T, got[:n*old.Size()], theirs, "fetched by NO_OP")
				}
			})
		}
	}
}
