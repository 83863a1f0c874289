package dtype

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPredefinedTable(t *testing.T) {
	// Name, size, extent, type character and string, as MPI libraries and
	// mpi4py have them on 64-bit Linux.
	for _, c := range []struct {
		name         string
		size, extent int
		char, str    string
	}{
		{"BYTE", 1, 1, "B", "u1"}, {"PACKED", 1, 1, "B", "u1"}, {"CHAR", 1, 1, "c", "S1"}, {"CHARACTER", 1, 1, "c", "S1"},
		{"SIGNED_CHAR", 1, 1, "b", "i1"}, {"UNSIGNED_CHAR", 1, 1, "B", "u1"}, {"WCHAR", 4, 4, "U", "U1"},
		{"SHORT", 2, 2, "h", "i2"}, {"UNSIGNED_SHORT", 2, 2, "H", "u2"}, {"INT", 4, 4, "i", "i4"}, {"SIGNED_INT", 4, 4, "i", "i4"},
		{"UNSIGNED", 4, 4, "I", "u4"}, {"UNSIGNED_INT", 4, 4, "I", "u4"}, {"LONG", 8, 8, "l", "i8"}, {"UNSIGNED_LONG", 8, 8, "L", "u8"},
		{"LONG_LONG", 8, 8, "q", "i8"}, {"UNSIGNED_LONG_LONG", 8, 8, "Q", "u8"},
		{"FLOAT", 4, 4, "f", "f4"}, {"DOUBLE", 8, 8, "d", "f8"}, {"LONG_DOUBLE", 16, 16, "g", "f16"},
		{"C_BOOL", 1, 1, "?", "b1"}, {"BOOL", 1, 1, "?", "b1"}, {"CXX_BOOL", 1, 1, "?", "b1"},
		{"INT8_T", 1, 1, "b", "i1"}, {"INT16_T", 2, 2, "h", "i2"}, {"INT32_T", 4, 4, "i", "i4"}, {"INT64_T", 8, 8, "l", "i8"},
		{"UINT8_T", 1, 1, "B", "u1"}, {"UINT16_T", 2, 2, "H", "u2"}, {"UINT32_T", 4, 4, "I", "u4"}, {"UINT64_T", 8, 8, "L", "u8"},
		{"AINT", 8, 8, "p", "i8"}, {"COUNT", 8, 8, "p", "i8"}, {"OFFSET", 8, 8, "p", "i8"},
		{"C_COMPLEX", 8, 8, "F", "c8"}, {"C_FLOAT_COMPLEX", 8, 8, "F", "c8"}, {"C_DOUBLE_COMPLEX", 16, 16, "D", "c16"},
		{"C_LONG_DOUBLE_COMPLEX", 32, 32, "G", "c32"}, {"CXX_FLOAT_COMPLEX", 8, 8, "F", "c8"},
		{"CXX_DOUBLE_COMPLEX", 16, 16, "D", "c16"}, {"CXX_LONG_DOUBLE_COMPLEX", 32, 32, "G", "c32"},
		{"SHORT_INT", 6, 8, "", ""}, {"2INT", 8, 8, "", ""}, {"TWOINT", 8, 8, "", ""}, {"INT_INT", 8, 8, "", ""},
		{"LONG_INT", 12, 16, "", ""}, {"FLOAT_INT", 8, 8, "", ""}, {"DOUBLE_INT", 12, 16, "", ""}, {"LONG_DOUBLE_INT", 20, 32, "", ""},
		{"LOGICAL", 4, 4, "i", "i4"}, {"INTEGER", 4, 4, "i", "i4"}, {"REAL", 4, 4, "f", "f4"}, {"DOUBLE_PRECISION", 8, 8, "d", "f8"},
		{"COMPLEX", 8, 8, "F", "c8"}, {"DOUBLE_COMPLEX", 16, 16, "D", "c16"},
		{"LOGICAL1", 1, 1, "?", "b1"}, {"LOGICAL2", 2, 2, "h", "i2"}, {"LOGICAL4", 4, 4, "i", "i4"}, {"LOGICAL8", 8, 8, "l", "i8"},
		{"INTEGER1", 1, 1, "b", "i1"}, {"INTEGER2", 2, 2, "h", "i2"}, {"INTEGER4", 4, 4, "i", "i4"}, {"INTEGER8", 8, 8, "l", "i8"},
		{"REAL2", 2, 2, "e", "f2"}, {"REAL4", 4, 4, "f", "f4"}, {"REAL8", 8, 8, "d", "f8"}, {"REAL16", 16, 16, "g", "f16"},
		{"COMPLEX4", 4, 4, "E", "c4"}, {"COMPLEX8", 8, 8, "F", "c8"}, {"COMPLEX16", 16, 16, "D", "c16"}, {"COMPLEX32", 32, 32, "G", "c32"},
		{"FLOAT16_T", 2, 2, "e", "f2"}, {"FLOAT32_T", 4, 4, "f", "f4"}, {"FLOAT64_T", 8, 8, "d", "f8"},
		{"BFLOAT16_T", 2, 2, "", ""},
	} {
		typ := ByName(c.name)
		require.NotNil(t, typ, c.name)
		assert.Same(t, typ, ByName("MPI_"+c.name))
		assert.Equal(t, []int{c.size, c.extent, 0}, []int{typ.Size(), typ.Extent(), typ.LB()}, c.name)
		assert.Equal(t, c.char, TypeChar(typ), c.name)
		assert.Equal(t, c.str, TypeStr(typ), c.name)
	}
	for _, name := range []string{"", "NOPE", "DATATYPE_NULL", "INTEGER16", "LOGICAL16"} {
		assert.Nil(t, ByName(name), name)
	}
}

func TestPredefinedIDs(t *testing.T) {
	for i, typ := range Predefined() {
		assert.Equal(t, i+1, typ.ID())
		assert.Same(t, typ, ByID(i+1))
		assert.Same(t, typ, ByName(typ.Name()))
		assert.True(t, typ.IsPredefined())
		assert.Equal(t, 1, typ.Elems())
		assert.Equal(t, typ.ElemSize(), typ.Extent())
	}
	assert.Nil(t, ByID(0))
	assert.Nil(t, ByID(len(Predefined())+1))
	// If the ID of a type changed, a process of another version would see another type.
	assert.Equal(t, []int{1, 9, 16}, []int{ByName("BYTE").ID(), ByName("INT").ID(), ByName("DOUBLE").ID()})
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		format   string
		itemsize int
		want     string
	}{
		{"", 1, "BYTE"}, {"", 0, "BYTE"}, {"B", 1, "UNSIGNED_CHAR"}, {"b", 1, "SIGNED_CHAR"}, {"?", 1, "C_BOOL"}, {"c", 1, "CHAR"},
		{"h", 2, "SHORT"}, {"H", 2, "UNSIGNED_SHORT"}, {"i", 4, "INT"}, {"I", 4, "UNSIGNED"}, {"l", 8, "LONG"}, {"L", 8, "UNSIGNED_LONG"},
		{"q", 8, "LONG_LONG"}, {"Q", 8, "UNSIGNED_LONG_LONG"}, {"n", 8, "COUNT"}, {"N", 8, "UNSIGNED_LONG"}, {"P", 8, "UNSIGNED_LONG"},
		{"e", 2, "FLOAT16_T"}, {"f", 4, "FLOAT"}, {"d", 8, "DOUBLE"}, {"g", 16, "LONG_DOUBLE"},
		{"Zf", 8, "C_FLOAT_COMPLEX"}, {"Zd", 16, "C_DOUBLE_COMPLEX"}, {"Zg", 32, "C_LONG_DOUBLE_COMPLEX"},
		{"<d", 8, "DOUBLE"}, {"@d", 8, "DOUBLE"}, {"=d", 8, "DOUBLE"}, {"<i8", 8, "INT64_T"}, {"|u1", 1, "UINT8_T"}, {"<c16", 16, "C_DOUBLE_COMPLEX"},
		{"<l", 4, "INT"}, {"<L", 4, "UNSIGNED"}, {"<l", 8, "LONG"}, {"=l", 4, "INT"},
		{">B", 1, "UNSIGNED_CHAR"}, {"w", 4, "WCHAR"}, {"1w", 4, "WCHAR"}, {"1s", 1, "CHAR"}, {"M8", 8, "INT64_T"},
	} {
		assert.Same(t, ByName(c.want), FromFormat(c.format, c.itemsize), "%q", c.format)
	}
	for _, c := range []struct {
		format   string
		itemsize int
	}{
		{"", 3}, {"@", 1}, {">d", 8}, {"!i", 4}, {"O", 8}, {"5s", 5}, {"T{i:a:d:b:}", 16}, {"d", 4}, {"S", 5}, {"x", 1}, {"V", 1}, {"<l", 3}, {"é", 1},
	} {
		assert.Nil(t, FromFormat(c.format, c.itemsize), "%q", c.format)
	}
	assert.Same(t, ByName("INT32_T"), FromCode("i4"))
	assert.Nil(t, FromCode("<i4"))
	assert.Empty(t, TypeChar(nil))
	derived, err := Contiguous(ByName("INT"), 2)
	require.NoError(t, err)
	assert.Empty(t, TypeStr(derived))
}

// Every code resolves to a type, and a type with a character of its own is found by
// it.
func TestCodesResolve(t *testing.T) {
	for code := range codes {
		assert.NotNil(t, FromCode(code), code)
	}
	for _, typ := range Predefined() {
		if c := TypeChar(typ); c != "" {
			found := FromCode(c)
			require.NotNil(t, found, c)
			assert.Equal(t, typ.Size(), found.Size())
			assert.NotEmpty(t, TypeStr(typ))
		}
	}
}

func TestKindNames(t *testing.T) {
	for k := KindNone; k < Kinds; k++ {
		assert.NotEmpty(t, k.String())
		if k != KindNone {
			assert.Positive(t, k.Size())
			assert.NotNil(t, byKind[k])
		}
	}
	assert.Equal(t, "unknown", Kind(200).String())
	assert.Zero(t, Kind(200).Size())
	assert.Equal(t, KindNone, Kind(200).PairValue())
	assert.Equal(t, []int{4, 8, 8, 4, 4, 16}, []int{
		FloatInt.PairIndex(), DoubleInt.PairIndex(), LongInt.PairIndex(), TwoInt.PairIndex(), ShortInt.PairIndex(), LongDoubleInt.PairIndex()})
}
