package dtype

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// externalTable has the sizes of the standard's table of external32 (MPI-4.1, section
// 14.5.2), and of the pairs, which it leaves out: the scalars of each type, in bytes in
// external32. What follows a colon are the bytes in memory, where they differ.
var externalTable = map[string]string{
	"MPI_PACKED": "1", "MPI_BYTE": "1", "MPI_CHAR": "1", "MPI_UNSIGNED_CHAR": "1", "MPI_SIGNED_CHAR": "1", "MPI_WCHAR": "2:4",
	"MPI_SHORT": "2", "MPI_UNSIGNED_SHORT": "2", "MPI_INT": "4", "MPI_LONG": "4:8", "MPI_UNSIGNED": "4", "MPI_UNSIGNED_LONG": "4:8",
	"MPI_LONG_LONG": "8", "MPI_UNSIGNED_LONG_LONG": "8", "MPI_FLOAT": "4", "MPI_DOUBLE": "8", "MPI_LONG_DOUBLE": "16",
	"MPI_C_BOOL": "1", "MPI_INT8_T": "1", "MPI_INT16_T": "2", "MPI_INT32_T": "4", "MPI_INT64_T": "8",
	"MPI_UINT8_T": "1", "MPI_UINT16_T": "2", "MPI_UINT32_T": "4", "MPI_UINT64_T": "8", "MPI_AINT": "8", "MPI_COUNT": "8", "MPI_OFFSET": "8",
	"MPI_C_COMPLEX": "4 4", "MPI_C_DOUBLE_COMPLEX": "8 8", "MPI_C_LONG_DOUBLE_COMPLEX": "16 16",
	"MPI_CHARACTER": "1", "MPI_LOGICAL": "4", "MPI_INTEGER": "4", "MPI_REAL": "4", "MPI_DOUBLE_PRECISION": "8",
	"MPI_COMPLEX": "4 4", "MPI_DOUBLE_COMPLEX": "8 8",
	"MPI_CXX_BOOL": "1", "MPI_CXX_FLOAT_COMPLEX": "4 4", "MPI_CXX_DOUBLE_COMPLEX": "8 8", "MPI_CXX_LONG_DOUBLE_COMPLEX": "16 16",
	"MPI_LOGICAL1": "1", "MPI_LOGICAL2": "2", "MPI_LOGICAL4": "4", "MPI_LOGICAL8": "8",
	"MPI_INTEGER1": "1", "MPI_INTEGER2": "2", "MPI_INTEGER4": "4", "MPI_INTEGER8": "8",
	"MPI_REAL2": "2", "MPI_REAL4": "4", "MPI_REAL8": "8", "MPI_REAL16": "16", "MPI_FLOAT16_T": "2", "MPI_BFLOAT16_T": "2",
	"MPI_COMPLEX4": "2 2", "MPI_COMPLEX8": "4 4", "MPI_COMPLEX16": "8 8", "MPI_COMPLEX32": "16 16",
	"MPI_FLOAT_INT": "4 4", "MPI_DOUBLE_INT": "8 4", "MPI_LONG_INT": "4:8 4", "MPI_2INT": "4 4", "MPI_SHORT_INT": "2 4", "MPI_LONG_DOUBLE_INT": "16 4",
}

type scalar struct{ external, memory int }

// scalarsOf returns the scalars of an item in type-map order, by the table and by the
// arguments of the constructors.
func scalarsOf(t *Type) (all []scalar) {
	combiner, ints, _, types := t.Envelope()
	if combiner == "NAMED" {
		for _, field := range strings.Fields(externalTable[t.Name()]) {
			external, memory, differs := strings.Cut(field, ":")
			s := scalar{int(external[0] - '0'), 0}
			if external == "16" {
				s.external = 16
			}
			if s.memory = s.external; differs {
				s.memory = int(memory[0] - '0')
			}
			all = append(all, s)
		}
		return all
	}
	times := func(n int, old *Type) {
		one := scalarsOf(old)
		for range n {
			all = append(all, one...)
		}
	}
	sum := func(v []int) (n int) {
		for _, x := range v {
			n += x
		}
		return n
	}
	switch combiner {
	case "DUP", "RESIZED":
		times(1, types[0])
	case "CONTIGUOUS":
		times(ints[0], types[0])
	case "VECTOR", "HVECTOR":
		times(ints[0]*ints[1], types[0])
	case "INDEXED", "HINDEXED":
		times(sum(ints[1:1+ints[0]]), types[0])
	case "INDEXED_BLOCK", "HINDEXED_BLOCK":
		times(ints[0]*ints[1], types[0])
	case "STRUCT":
		for i, old := range types {
			times(ints[1+i], old)
		}
	case "SUBARRAY":
		n := 1
		for _, x := range ints[1+ints[0] : 1+2*ints[0]] {
			n *= x
		}
		times(n, types[0])
	default:
		if types[0].Elems() > 0 {
			times(t.Elems()/types[0].Elems(), types[0])
		}
	}
	return all
}

// randomData returns the external32 form of scalars with random values, and the packed data.
func randomData(r *rand.Rand, scalars []scalar) (external, packed []byte) {
	for _, s := range scalars {
		b := make([]byte, s.external)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		m := slices.Clone(b)
		slices.Reverse(m)
		switch {
		case s.external == 16 && x87:
			b[0] = b[0]&0xbf | 0x20 // an exponent of a normal number
			// What an x87 significand does not have.
			b[9] &= 0xfe
			copy(b[10:], make([]byte, 6))
			hi, lo := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
			m = binary.LittleEndian.AppendUint64(nil, 1<<63|hi<<16>>1|lo>>49)
			m = binary.LittleEndian.AppendUint64(m, hi>>48)
		case s.memory == 4 && s.external == 2:
			m = append(m, 0, 0)
		case s.memory > s.external:
			// Signed or not is not in the table: a positive number.
			b[0] &= 0x7f
			m[3] &= 0x7f
			m = append(m, 0, 0, 0, 0)
		}
		external, packed = append(external, b...), append(packed, m...)
	}
	return external, packed
}

func TestSizesOfExternal32(t *testing.T) {
	for _, typ := range Predefined() {
		require.Contains(t, externalTable, typ.Name())
		external, memory := 0, 0
		for _, s := range scalarsOf(typ) {
			external, memory = external+s.external, memory+s.memory
		}
		assert.Equal(t, external, typ.ExternalSize(), typ.Name())
		assert.Equal(t, memory, typ.Size(), typ.Name())
	}
}

func packExternal(t testing.TB, typ *Type, src unsafe.Pointer, count int) []byte {
	t.Helper()
	b := make([]byte, typ.ExternalTotal(count))
	require.NoError(t, typ.Exceeds(src, count))
	require.NoError(t, typ.PackExternal(b, src, count, 0))
	return b
}

func TestExternal32OfRandomTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 32))
	for range 4000 {
		typ, m := randomType(t, r, 3)
		count := r.IntN(4)
		what := describe(typ)
		one := scalarsOf(typ)
		var all []scalar
		for range count {
			all = append(all, one...)
		}
		external, packed := randomData(r, all)
		require.Equal(t, len(external), typ.ExternalTotal(count), what)
		require.Equal(t, len(packed), typ.Size()*count, what)
		if overlaps(m.bytes(count)) {
			continue
		}
		lo, hi := typ.Span(count)
		want, got := newMemory(lo, hi).fill(), newMemory(lo, hi).fill()
		typ.Unpack(want.at(0), packed, count)
		require.NoError(t, typ.UnpackExternal(got.at(0), external, count, 0), what)
		require.Equal(t, want.bytes, got.bytes, what)
		require.True(t, bytes.Equal(external, packExternal(t, typ, got.at(0), count)), what)

		// In pieces that end anywhere.
		again, in := newMemory(lo, hi).fill(), typ.Assemble(nil, count)
		in.dst = again.at(0)
		for _, p := range randomPieces(r, len(external)) {
			b := make([]byte, p.to-p.from)
			require.NoError(t, typ.PackExternal(b, want.at(0), count, p.from), what)
			require.Equal(t, external[p.from:p.to], b, what)
			require.NoError(t, in.Store(b, p.from), what)
		}
		require.Equal(t, want.bytes, again.bytes, what)
		require.Empty(t, in.split)

		checkWhole(t, typ, count, all)
	}
}

type extract struct{ from, to int }

func randomPieces(r *rand.Rand, n int) (all []extract) {
	for at := 0; at < n; {
		p := extract{at, min(at+1+r.IntN(20), n)}
		all = append(all, p)
		at = p.to
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func checkWhole(t *testing.T, typ *Type, count int, all []scalar) {
	t.Helper()
	external, memory, next := 0, 0, 0
	for i := range typ.ExternalTotal(count) + 2 {
		for next < len(all) && external+all[next].external <= i {
			external, memory = external+all[next].external, memory+all[next].memory
			next++
		}
		e, m := typ.Whole(count, i)
		require.Equal(t, []int{external, memory}, []int{e, m}, "%d of %s", i, describe(typ))
	}
}

// Long arrays are converted in words and in pieces.
func TestExternal32OfLongArrays(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 32))
	for _, typ := range Predefined() {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 1000, 3*convertPiece/typ.Size() + 5} {
			external, packed := randomData(r, slices.Repeat(scalarsOf(typ), n))
			mem := newMemory(typ.Span(n))
			want := newMemory(typ.Span(n))
			typ.Unpack(want.at(0), packed, n)
			require.NoError(t, typ.UnpackExternal(mem.at(0), external, n, 0))
			require.True(t, bytes.Equal(want.bytes, mem.bytes), "%d of %s", n, typ.Name())
			require.True(t, bytes.Equal(external, packExternal(t, typ, mem.at(0), n)), "%d of %s", n, typ.Name())
		}
	}
}

func TestValuesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []int64
		text   string
	}{
		{"LONG", []int64{1, 1 << 31}, "the value 2147483648 of item 1"},
		{"LONG", []int64{-1<<31 - 1}, "the value -2147483649 of item 0"},
		{"UNSIGNED_LONG", []int64{1, 2, 1 << 32}, "the value 4294967296 of item 2"},
		{"UNSIGNED_LONG", []int64{-1}, "the value 18446744073709551615 of item 0"},
		{"LONG_INT", []int64{5, 0, 1 << 40, 0}, "the value 1099511627776 of item 1"},
		{"WCHAR", []int64{0x1f600 << 32}, "the character U+1F600 of item 1"},
	} {
		typ := ByName(c.name)
		count := len(c.values) * 8 / typ.Extent()
		src := unsafe.Pointer(&c.values[0])
		err := typ.Exceeds(src, count)
		require.ErrorIs(t, err, ErrConversion)
		require.ErrorContains(t, err, c.text)
		b := make([]byte, typ.ExternalTotal(count))
		require.ErrorContains(t, typ.PackExternal(b, src, count, 0), c.text)
	}
	for name, values := range map[string][]int64{"LONG": {1<<31 - 1, -1 << 31}, "UNSIGNED_LONG": {1<<32 - 1}, "WCHAR": {0xffff<<32 | 0xffff}} {
		require.NoError(t, ByName(name).Exceeds(unsafe.Pointer(&values[0]), len(values)))
	}
}

// The expected values are those of GCC's conversions between long double and __float128.
func TestLongDoublesAreBinary128(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("long double is binary128 here")
	}
	typ := ByName("LONG_DOUBLE")
	for _, c := range []struct {
		sig, top uint64
		want     string
	}{
		{0, 0, "00000000000000000000000000000000"},
		{0, 0x8000, "80000000000000000000000000000000"},
		{1 << 63, 0x3fff, "3fff0000000000000000000000000000"},
		{1 << 63, 0xc000, "c0000000000000000000000000000000"},
		{0xaaaaaaaaaaaaaaab, 0x3ffd, "3ffd5555555555555556000000000000"},
		{0xffffffffffffffff, 0x7ffe, "7ffefffffffffffffffe000000000000"},
		{1, 0, "00000000000000000002000000000000"},
		{1 << 63, 1, "00010000000000000000000000000000"},
		{1 << 63, 0x7fff, "7fff0000000000000000000000000000"},
		{1 << 63, 0xffff, "ffff0000000000000000000000000000"},
		{3 << 62, 0x7fff, "7fff8000000000000000000000000000"},
	} {
		v := [2]uint64{c.sig, c.top}
		got := packExternal(t, typ, unsafe.Pointer(&v), 1)
		require.Equal(t, c.want, hex.EncodeToString(got))
		var back [2]uint64
		require.NoError(t, typ.UnpackExternal(unsafe.Pointer(&back), got, 1, 0))
		require.Equal(t, v, back)
	}
	// Encodings that are no numbers to the processor, and a denormal with an integer bit.
	for top, want := range map[uint64]string{0x7fff: "7fff4000", 0x3fff: "7fff4000"} {
		v := [2]uint64{1 << 61, top}
		got := hex.EncodeToString(packExternal(t, typ, unsafe.Pointer(&v), 1))
		require.True(t, strings.HasPrefix(got, "7fff8"), "%s, not %s", got, want)
	}
	v := [2]uint64{1<<63 | 1<<62, 0}
	require.Equal(t, "00018000000000000000000000000000", hex.EncodeToString(packExternal(t, typ, unsafe.Pointer(&v), 1)))

	// Rounding to nearest even.
	for from, want := range map[string][2]uint64{
		"3fff0000000000000001000000000000": {1 << 63, 0x3fff},
		"3fff0000000000000001000000000001": {1<<63 | 1, 0x3fff},
		"3fff0000000000000003000000000000": {1<<63 | 2, 0x3fff},
		"3fffffffffffffffffffffffffffffff": {1 << 63, 0x4000},
		"0000ffffffffffffffffffffffffffff": {1 << 63, 1},
		"7fff0000000000000000000000000001": {3 << 62, 0x7fff},
	} {
		b, err := hex.DecodeString(from)
		require.NoError(t, err)
		var got [2]uint64
		require.NoError(t, typ.UnpackExternal(unsafe.Pointer(&got), b, 1, 0))
		require.Equal(t, want, got, from)
	}
	b, err := hex.DecodeString("3fff0000000000000000000000000000" + "7ffeffffffffffffffffffffffffffff")
	require.NoError(t, err)
	var got [2][2]uint64
	require.ErrorIs(t, typ.UnpackExternal(unsafe.Pointer(&got), b, 2, 0), ErrConversion)
	require.Zero(t, got, "nothing is written")
}

func TestTypesInFiles(t *testing.T) {
	long, double := ByName("LONG"), ByName("DOUBLE")
	for name, c := range map[string]struct {
		make         func() (*Type, error)
		size, extent int
		runs         []extract
	}{
		"predefined": {func() (*Type, error) { return long, nil }, 4, 4, []extract{{0, 4}}},
		"vector":     {func() (*Type, error) { return Vector(long, 2, 1, 3) }, 8, 16, []extract{{0, 4}, {12, 4}}},
		"in bytes":   {func() (*Type, error) { return Hvector(long, 2, 1, 24) }, 8, 28, []extract{{0, 4}, {24, 4}}},
		"indexed":    {func() (*Type, error) { return Indexed(long, []int{1, 2}, []int{1, 4}) }, 12, 20, []extract{{4, 4}, {16, 8}}},
		"blocks":     {func() (*Type, error) { return IndexedBlock(long, 2, []int{0, 4}) }, 16, 24, []extract{{0, 8}, {16, 8}}},
		"hblocks":    {func() (*Type, error) { return HindexedBlock(long, 2, []int{0, 40}) }, 16, 48, []extract{{0, 8}, {40, 8}}},
		"hindexed":   {func() (*Type, error) { return Hindexed(long, []int{1, 1}, []int{0, 40}) }, 8, 44, []extract{{0, 4}, {40, 4}}},
		"no alignment": {func() (*Type, error) {
			return Struct([]int{1, 1}, []int{0, 8}, []*Type{double, ByName("SHORT")})
		}, 10, 10, []extract{{0, 10}}},
		"pair":     {func() (*Type, error) { return Contiguous(ByName("SHORT_INT"), 2) }, 12, 12, []extract{{0, 12}}},
		"resized":  {func() (*Type, error) { return Resized(long, 0, 32) }, 4, 32, []extract{{0, 4}}},
		"subarray": {func() (*Type, error) { return Subarray(long, []int{2, 4}, []int{2, 1}, []int{0, 2}, true) }, 8, 32, []extract{{8, 4}, {24, 4}}},
		"darray": {func() (*Type, error) {
			return Darray(long, 2, 1, []int{4}, []int{DistributeCyclic}, []int{DistributeDefault}, []int{2}, true)
		}, 8, 16, []extract{{4, 4}, {12, 4}}},
		"dup of f90": {func() (*Type, error) {
			f, err := F90Real(10, 20)
			require.NoError(t, err)
			return Dup(f)
		}, 8, 8, []extract{{0, 8}}},
	} {
		typ, err := c.make()
		require.NoError(t, err, name)
		f, err := typ.InFile()
		require.NoError(t, err, name)
		require.Equal(t, []int{c.size, c.extent}, []int{f.Size(), f.Extent()}, name)
		var runs []extract
		f.Runs(1, func(off, n int) bool { runs = append(runs, extract{off, n}); return true })
		require.Equal(t, c.runs, runs, name)
		require.Equal(t, f.Size(), typ.ExternalSize(), name)
	}
}

func TestExternal32OfMemoryThatFaults(t *testing.T) {
	page := syscall.Getpagesize()
	b, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	// The last element ends where the memory does: nothing behind it is touched.
	require.NoError(t, syscall.Mprotect(b[page:], syscall.PROT_NONE))
	for _, name := range []string{"INT", "LONG", "WCHAR", "SHORT", "LONG_DOUBLE", "SHORT_INT", "DOUBLE_COMPLEX"} {
		typ := ByName(name)
		for _, n := range []int{1, 3, page / typ.Extent()} {
			p := unsafe.Pointer(&b[page-n*typ.Extent()])
			external := packExternal(t, typ, p, n)
			require.NoError(t, typ.UnpackExternal(p, external, n, 0))
		}
	}
}

func BenchmarkExternal32(b *testing.B) {
	const size = 1 << 20
	for _, name := range []string{"BYTE", "SHORT", "INT", "DOUBLE", "LONG", "LONG_DOUBLE", "DOUBLE_INT"} {
		typ := ByName(name)
		n := size / typ.Extent()
		mem := newMemory(typ.Span(n))
		out := make([]byte, typ.ExternalTotal(n))
		b.Run("pack/"+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				_ = typ.PackExternal(out, mem.at(0), n, 0)
			}
		})
		b.Run("unpack/"+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				_ = typ.UnpackExternal(mem.at(0), out, n, 0)
			}
		})
	}
}
