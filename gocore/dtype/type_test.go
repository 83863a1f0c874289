package dtype

import (
	"bytes"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkAgainst compares all results of the engine with the type map.
func checkAgainst(t *testing.T, r *rand.Rand, typ *Type, m naive, count int) {
	t.Helper()
	what := describe(typ)
	lb, ub := m.bounds()
	tlb, tub := m.trueBounds()
	require.Equal(t, m.size(), typ.Size(), what)
	require.Equal(t, []int{lb, ub - lb, tlb, tub - tlb}, []int{typ.LB(), typ.Extent(), typ.TrueLB(), typ.TrueExtent()}, what)

	kind, elems := KindNone, 0
	for i, e := range m.entries {
		if i == 0 {
			kind = e.kind
		} else if kind != e.kind {
			kind = KindNone
		}
		// A pair is two entries and one element.
		if !e.kind.IsPair() || e.size != 4 || i > 0 && e.off == m.entries[i-1].off+e.kind.PairIndex() {
			elems++
		}
	}
	if len(m.entries) > 0 {
		require.Equal(t, kind, typ.Kind(), what)
	}
	if !kind.IsPair() && kind != KindNone {
		require.Equal(t, elems, typ.Elems(), what)
	}

	offs := m.bytes(count)
	lo, hi := typ.Span(count)
	wantLo, wantHi := 0, 0
	if len(offs) > 0 {
		wantLo, wantHi = offs[0], offs[0]+1
		for _, o := range offs {
			wantLo, wantHi = min(wantLo, o), max(wantHi, o+1)
		}
	}
	require.Equal(t, []int{wantLo, wantHi}, []int{lo, hi}, what)

	mem := newMemory(lo, hi).fill()
	want := make([]byte, len(offs))
	for i, o := range offs {
		want[i] = mem.bytes[mem.zero+o]
	}
	got := make([]byte, len(offs))
	require.Equal(t, len(want), typ.Pack(got, mem.at(0), count), what)
	require.Equal(t, want, got, what)

	// In pieces of any length.
	clear(got)
	for at := 0; at < len(want); {
		n := min(1+r.IntN(len(want)), len(want)-at)
		require.Equal(t, n, typ.PackAt(got[at:at+n], mem.at(0), count, at), what)
		at += n
	}
	require.Equal(t, want, got, what)

	if typ.Dense() {
		for i, o := range offs {
			require.Equal(t, i, o, what)
		}
	}
	checkRuns(t, typ, count, offs)
	if !overlaps(offs) {
		checkUnpack(t, r, typ, count, offs, want)
	}
}

func checkRuns(t *testing.T, typ *Type, count int, offs []int) {
	t.Helper()
	var flat []int
	end := math.MinInt
	typ.Runs(count, func(off, n int) bool {
		require.Positive(t, n)
		require.NotEqual(t, end, off, "runs that touch must be one: %s", describe(typ))
		for i := range n {
			flat = append(flat, off+i)
		}
		end = off + n
		return true
	})
	require.Equal(t, offs, flat[:len(flat):len(flat)], describe(typ))
	calls := 0
	typ.Runs(count, func(int, int) bool { calls++; return false })
	require.LessOrEqual(t, calls, 1, "stops when told to")
}

func checkUnpack(t *testing.T, r *rand.Rand, typ *Type, count int, offs []int, data []byte) {
	t.Helper()
	lo, hi := typ.Span(count)
	expect := func(n int) []byte {
		mem := newMemory(lo, hi)
		for i, o := range offs[:n] {
			mem.bytes[mem.zero+o] = data[i]
		}
		return mem.bytes
	}
	// Short data may end anywhere; the rest of longer data is not read.
	for _, n := range []int{len(data), r.IntN(len(data) + 1)} {
		mem := newMemory(lo, hi)
		require.Equal(t, n, typ.Unpack(mem.at(0), data[:n], count))
		require.Equal(t, expect(n), mem.bytes, describe(typ))
	}
	mem := newMemory(lo, hi)
	require.Equal(t, len(data), typ.Unpack(mem.at(0), append(data[:len(data):len(data)], 1, 2, 3), count))
	require.Equal(t, expect(len(data)), mem.bytes, describe(typ))

	mem = newMemory(lo, hi)
	for at := 0; at < len(data); {
		n := min(1+r.IntN(len(data)), len(data)-at)
		require.Equal(t, n, typ.UnpackAt(mem.at(0), data[at:at+n], count, at))
		at += n
	}
	require.Equal(t, expect(len(data)), mem.bytes, describe(typ))
}

func TestRandomTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 6000
	if testing.Short() {
		n = 600
	}
	for range n {
		typ, m := randomType(t, r, 1+r.IntN(4))
		if m.size() > 4000 {
			continue
		}
		checkAgainst(t, r, typ, m, r.IntN(4))
	}
}

func TestPredefinedAgainstTypeMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range Predefined() {
		for _, count := range []int{0, 1, 2, 5} {
			checkAgainst(t, r, typ, naiveOf(typ), count)
		}
	}
}

// Matrices of every block size that has a kernel of its own, large enough for
// tiles with remainders.
func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, name := range []string{"INT8_T", "INT16_T", "INT32_T", "INT64_T", "C_DOUBLE_COMPLEX", "C_LONG_DOUBLE_COMPLEX"} {
		old := ByName(name)
		for _, shape := range [][2]int{{16, 2}, {33, 7}, {40, 65}, {70, 33}} {
			rows, cols := shape[0], shape[1]
			column, err := Vector(old, rows, 1, cols)
			require.NoError(t, err)
			column, err = Resized(column, 0, old.Extent())
			require.NoError(t, err)
			m := naiveOf(old)
			var want naive
			for i := range rows {
				want.place(m, i*cols*old.Extent(), 1)
			}
			want.marks = []mark{{0, old.Extent()}}
			checkAgainst(t, r, column, want, cols)
			checkAgainst(t, r, column, want, cols-1)
		}
	}
}

func TestElementsOfPairs(t *testing.T) {
	for _, name := range []string{"FLOAT_INT", "DOUBLE_INT", "LONG_INT", "2INT", "SHORT_INT", "LONG_DOUBLE_INT", "DOUBLE"} {
		old := ByName(name)
		typ, err := Vector(old, 3, 2, 4)
		require.NoError(t, err)
		assert.Equal(t, 6, typ.Elems())
		assert.Equal(t, old.Extent(), typ.ElemSize())

		size, count := old.Extent(), 2
		var got [][2]int
		typ.Elements(count, func(off, n int) bool {
			got = append(got, [2]int{off / size, n})
			return true
		})
		// The second item follows the first's last block without a gap.
		assert.Equal(t, [][2]int{{0, 2}, {4, 2}, {8, 4}, {14, 2}, {18, 2}}, got, name)

		lo, hi := typ.CellSpan(count)
		assert.Equal(t, []int{0, 20 * size}, []int{lo, hi})
		mem := newMemory(lo, hi).fill()
		elements := make([]byte, 12*size)
		assert.Equal(t, len(elements), typ.PackElements(elements, mem.at(0), count))
		for i, e := range []int{0, 1, 4, 5, 8, 9, 10, 11, 14, 15, 18, 19} {
			assert.Equal(t, mem.bytes[e*size:(e+1)*size], elements[i*size:(i+1)*size], name)
		}

		// Unpacked again: the data is there, the padding and the gaps are untouched.
		back := newMemory(lo, hi)
		assert.Equal(t, len(elements), typ.UnpackElements(back.at(0), elements, count))
		want := newMemory(lo, hi)
		typ.Runs(count, func(off, n int) bool {
			copy(want.bytes[off:off+n], mem.bytes[off:off+n])
			return true
		})
		assert.Equal(t, want.bytes, back.bytes, name)
	}
	mixed, err := Struct([]int{1, 1}, []int{0, 8}, []*Type{ByName("INT"), ByName("DOUBLE")})
	require.NoError(t, err)
	assert.Equal(t, KindNone, mixed.Kind())
	mixed.Elements(1, func(int, int) bool { t.Error("a mixed type has no elements of one kind"); return true })
}

func TestLargeTypesStaySmall(t *testing.T) {
	old := ByName("DOUBLE")
	v, err := Vector(old, 1<<40, 1, 2)
	require.NoError(t, err)
	assert.Equal(t, 8<<40, v.Size())
	v, err = Contiguous(v, 1<<10)
	require.NoError(t, err)
	assert.Equal(t, 8<<50, v.Size())

	displs := make([]int, 1000)
	for i := range displs {
		displs[i] = 3 * i
	}
	typ, err := IndexedBlock(old, 1, displs)
	require.NoError(t, err)
	assert.Equal(t, opLoop, typ.body.l.op, "equal distances are a loop")
	for i := range displs {
		displs[i] = i
	}
	typ, err = IndexedBlock(old, 1, displs)
	require.NoError(t, err)
	assert.True(t, typ.Dense(), "blocks that touch are one")

	// Nested constructors that change nothing do not grow the layout.
	typ = old
	for range 100_000 {
		typ, err = Contiguous(typ, 1)
		require.NoError(t, err)
	}
	assert.True(t, typ.Dense())
}

func TestSpanSaturates(t *testing.T) {
	distant, err := Resized(ByName("INT"), 0, 1<<40)
	require.NoError(t, err)
	lo, hi := distant.Span(math.MaxInt)
	assert.Equal(t, []int{0, math.MaxInt}, []int{lo, hi})
	back, err := Resized(ByName("INT"), 0, -1<<40)
	require.NoError(t, err)
	lo, hi = back.Span(math.MaxInt)
	assert.Equal(t, []int{math.MinInt, 4}, []int{lo, hi})
	lo, hi = distant.Span(-1)
	assert.Equal(t, []int{0, 0}, []int{lo, hi})
}

func TestPackShortDestination(t *testing.T) {
	x := int64(1)
	assert.Panics(t, func() { ByName("LONG").Pack(make([]byte, 7), unsafe.Pointer(&x), 1) })
	assert.Zero(t, ByName("LONG").Pack(nil, unsafe.Pointer(&x), -1))
	assert.Zero(t, ByName("LONG").PackAt(make([]byte, 8), unsafe.Pointer(&x), 1, -1))
	assert.Zero(t, ByName("LONG").PackAt(make([]byte, 8), unsafe.Pointer(&x), 1, 9))
}

func TestLargeBlocks(t *testing.T) {
	// Longer than one piece of a copy, and not a multiple of it.
	const n = 2*pieceSize + 12345
	typ, err := Hvector(ByName("BYTE"), 2, n, n+3)
	require.NoError(t, err)
	lo, hi := typ.Span(1)
	mem := newMemory(lo, hi).fill()
	got := make([]byte, 2*n)
	assert.Equal(t, 2*n, typ.Pack(got, mem.at(0), 1))
	assert.True(t, bytes.Equal(mem.bytes[:n], got[:n]))
	assert.True(t, bytes.Equal(mem.bytes[n+3:], got[n:]))
	back := newMemory(lo, hi)
	assert.Equal(t, 2*n-5, typ.Unpack(back.at(0), got[:2*n-5], 1))
	assert.True(t, bytes.Equal(mem.bytes[:n], back.bytes[:n]))
	assert.True(t, bytes.Equal(append(got[n:2*n-5:2*n-5], 0, 0, 0, 0, 0), back.bytes[n+3:]))
}

func TestPackAllocatesNothing(t *testing.T) {
	typ, err := Vector(ByName("DOUBLE"), 4, 1, 2)
	require.NoError(t, err)
	typ, err = Hindexed(typ, []int{1, 2}, []int{0, 100})
	require.NoError(t, err)
	_, hi := typ.Span(3)
	mem := newMemory(0, hi)
	buf := make([]byte, 3*typ.Size())
	src := mem.at(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		typ.Pack(buf, src, 3)
		typ.Unpack(src, buf, 3)
		typ.PackAt(buf[:50], src, 3, 9)
	}))
}

func TestBottom(t *testing.T) {
	// MPI_BOTTOM: the displacements are addresses, of memory outside Go's heap.
	mem, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(mem)) }()
	copy(mem, "abcdefghijkl")
	addr := int(uintptr(unsafe.Pointer(&mem[0])))
	typ, err := Hindexed(ByName("INT"), []int{1, 1}, []int{addr, addr + 8})
	require.NoError(t, err)
	got := make([]byte, 8)
	typ.Pack(got, nil, 1)
	assert.Equal(t, "abcdijkl", string(got))
	typ.Unpack(nil, []byte("ABCDIJ"), 1)
	assert.Equal(t, "ABCDefghIJkl", string(mem[:12]))
}
