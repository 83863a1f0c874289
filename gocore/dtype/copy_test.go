package dtype

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkCopy compares Copy with the type maps of both sides.
func checkCopy(t *testing.T, to *Type, mto naive, dcount int, from *Type, mfrom naive, scount int) {
	t.Helper()
	what := fmt.Sprintf("%d x %s from %d x %s", dcount, describe(to), scount, describe(from))
	out, in := mto.bytes(dcount), mfrom.bytes(scount)
	require.Equal(t, len(in), len(out), what)
	src, dst := newMemory(from.Span(scount)).fill(), newMemory(to.Span(dcount))
	want := append([]byte(nil), dst.bytes...)
	for i, o := range out {
		want[dst.zero+o] = src.bytes[src.zero+in[i]]
	}
	require.Equal(t, len(in), Copy(dst.at(0), to, dcount, src.at(0), from, scount), what)
	require.Equal(t, want, dst.bytes, what)
}

func TestCopyBetweenRandomTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	n := 5000
	if testing.Short() {
		n = 1000
	}
	for range n {
		to, mto := randomType(t, r, 1+r.IntN(4))
		from, mfrom := randomType(t, r, 1+r.IntN(4))
		if mto.size() > 2000 || mfrom.size() > 2000 || mto.size() == 0 || mfrom.size() == 0 {
			continue
		}
		// Counts that make both sides equally long, if there are small ones.
		dcount, scount := mfrom.size(), mto.size()
		g := gcd(dcount, scount)
		dcount, scount = dcount/g, scount/g
		if dcount > 40 || scount > 40 || overlaps(mto.bytes(dcount)) {
			continue
		}
		checkCopy(t, to, mto, dcount, from, mfrom, scount)
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// shape is a type with its map.
type shape struct {
	name  string
	typ   *Type
	m     naive
	count int
}

// matrices returns descriptions of rows x cols items of old by all constructors: in
// memory order, by columns, with gaps, in one piece.
func matrices(t testing.TB, old *Type, rows, cols int) []shape {
	m, ex := naiveOf(old), old.Extent()
	must := func(typ *Type, err error) *Type {
		require.NoError(t, err)
		return typ
	}
	column := must(Resized(must(Vector(old, rows, 1, cols)), 0, ex))
	var columnMap, all, padded naive
	for r := range rows {
		columnMap.place(m, r*cols*ex, 1)
	}
	columnMap.marks = []mark{{0, ex}}
	displs := make([]int, 0, rows*cols)
	for c := range cols {
		for r := range rows {
			displs = append(displs, r*cols+c)
			all.place(m, (r*cols+c)*ex, 1)
		}
	}
	for i := range rows {
		padded.place(m, i*(cols+3)*ex, cols)
	}
	vectors := must(Hvector(must(Vector(old, rows, 1, cols)), cols, 1, ex))
	return []shape{
		{"dense", old, m, rows * cols},
		{"columns", column, columnMap, cols},
		{"hvector of vectors", vectors, all, 1},
		{"indexed", must(IndexedBlock(old, 1, displs)), all, 1},
		{"rows", must(Vector(old, rows, cols, cols+3)), padded, 1},
		{"gaps", must(Resized(old, 0, 2*ex)), naive{entries: m.entries, marks: []mark{{0, 2 * ex}}}, rows * cols},
	}
}

func TestCopyBetweenMatrices(t *testing.T) {
	for _, name := range []string{"INT8_T", "INT16_T", "INT32_T", "INT64_T", "C_DOUBLE_COMPLEX", "C_LONG_DOUBLE_COMPLEX"} {
		for _, size := range [][2]int{{16, 2}, {33, 7}, {130, 65}, {257, 20}} {
			shapes := matrices(t, ByName(name), size[0], size[1])
			for _, to := range shapes {
				for _, from := range shapes {
					checkCopy(t, to.typ, to.m, to.count, from.typ, from.m, from.count)
				}
			}
		}
	}
}

// More bytes than the buffer has and than one memmove copies.
func TestCopyOfManyBytes(t *testing.T) {
	double := ByName("DOUBLE")
	n := 90_000
	gaps, err := Resized(double, 0, 24)
	require.NoError(t, err)
	back, err := Hvector(double, n, 1, -16)
	require.NoError(t, err)
	src, dst := make([]float64, 3*n), make([]float64, 2*n)
	for i := range n {
		src[3*i] = float64(i)
	}
	// The last element is written first, to the end.
	require.Equal(t, 8*n, Copy(unsafe.Pointer(&dst[2*(n-1)]), back, 1, unsafe.Pointer(&src[0]), gaps, n))
	for i := range n {
		require.Equal(t, float64(n-1-i), dst[2*i])
	}
}

func TestCopyChecksItsSides(t *testing.T) {
	x := make([]byte, 16)
	p := unsafe.Pointer(&x[0])
	assert.Panics(t, func() { Copy(p, ByName("INT"), 1, p, ByName("DOUBLE"), 1) })
	assert.Zero(t, Copy(nil, ByName("INT"), 0, nil, ByName("DOUBLE"), 0))
}

func TestCopyAllocatesNothing(t *testing.T) {
	for _, to := range matrices(t, ByName("DOUBLE"), 64, 32) {
		for _, from := range matrices(t, ByName("DOUBLE"), 64, 32) {
			src, dst := newMemory(from.typ.Span(from.count)), newMemory(to.typ.Span(to.count))
			Copy(dst.at(0), to.typ, to.count, src.at(0), from.typ, from.count)
			// The pool of buffers may be emptied by the collector.
			assert.Less(t, testing.AllocsPerRun(50, func() {
				Copy(dst.at(0), to.typ, to.count, src.at(0), from.typ, from.count)
			}), 1.0, "%s from %s", to.name, from.name)
		}
	}
}

// A matrix that is described element by element is recognised as one of columns.
func TestIndexedMatrixIsALoopOfLoops(t *testing.T) {
	typ := matrices(t, ByName("DOUBLE"), 40, 30)[3].typ
	require.Equal(t, opLoop, typ.body.l.op)
	require.Equal(t, opLoop, typ.body.l.child.op)
	require.Equal(t, []int{30, 40, 1200}, []int{typ.body.l.count, typ.body.l.child.count, typ.body.l.blocks})
}

// Types that are reported as solid are; matrices in any order are reported.
func TestSolid(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	found := 0
	for range 5000 {
		typ, m := randomType(t, r, 1+r.IntN(3))
		count := r.IntN(4)
		if m.size() > 1000 || !typ.Solid(count) {
			continue
		}
		found++
		offs := m.bytes(count)
		lo, hi := typ.Span(count)
		require.False(t, overlaps(offs), describe(typ))
		require.Equal(t, len(offs), hi-lo, describe(typ))
		require.NotZero(t, typ.Blocks(count))
	}
	require.Greater(t, found, 200)
	for i, s := range matrices(t, ByName("DOUBLE"), 9, 12) {
		require.Equal(t, i < 4, s.typ.Solid(s.count), s.name)
	}
	require.False(t, ByName("DOUBLE").Solid(0))
	twice, err := Resized(ByName("INT64_T"), 0, 4)
	require.NoError(t, err)
	require.False(t, twice.Solid(2), "it overlaps")
}

func FuzzCopy(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		to, mto := randomType(t, r, 1+r.IntN(4))
		from, mfrom := randomType(t, r, 1+r.IntN(4))
		if mto.size() == 0 || mfrom.size() == 0 || mto.size() > 300 || mfrom.size() > 300 {
			return
		}
		g := gcd(mfrom.size(), mto.size())
		if dcount := mfrom.size() / g; !overlaps(mto.bytes(dcount)) {
			checkCopy(t, to, mto, dcount, from, mfrom, mto.size()/g)
		}
	})
}

// BenchmarkCopy transposes a matrix of doubles described in several ways, and for
// comparison by the loop over tiles that a program would have instead.
func BenchmarkCopy(b *testing.B) {
	const n = 1024
	shapes := matrices(b, ByName("DOUBLE"), n, n)
	dense := shapes[0]
	run := func(name string, to, from shape) {
		src, dst := newMemory(from.typ.Span(from.count)).fill(), newMemory(to.typ.Span(to.count)).fill()
		b.Run(name, func(b *testing.B) {
			b.SetBytes(8 * n * n)
			for b.Loop() {
				Copy(dst.at(0), to.typ, to.count, src.at(0), from.typ, from.count)
			}
		})
	}
	for _, s := range shapes {
		run("to "+s.name, s, dense)
		run("from "+s.name, dense, s)
		run(s.name+" to columns", shapes[1], s)
		run(s.name+" to rows", shapes[4], s)
	}
	x, y := make([]float64, n*n), make([]float64, n*n)
	for _, tile := range []int{8, 16, 32} {
		b.Run(fmt.Sprintf("tiles of %d", tile), func(b *testing.B) {
			b.SetBytes(8 * n * n)
			for b.Loop() {
				for r0 := 0; r0 < n; r0 += tile {
					for c0 := 0; c0 < n; c0 += tile {
						for r := r0; r < r0+tile; r++ {
							for c := c0; c < c0+tile; c++ {
								y[c*n+r] = x[r*n+c]
							}
						}
					}
				}
			}
		})
	}
}
