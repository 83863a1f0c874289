package dtype

import "strings"

type named struct {
	name string
	kind Kind
	code string // NumPy's type character
}

// predefinedTable has the predefined types. A type's place in it is its ID, which is the
// same in every process of a job: new types are added at the end.
//
// It leaves out MPI_INTEGER16 and MPI_LOGICAL16, which C, Go and NumPy do not have.
var predefinedTable = []named{
	{"MPI_BYTE", Byte, "B"},
	{"MPI_PACKED", Byte, "B"},
	{"MPI_CHAR", Char, "c"},
	{"MPI_SIGNED_CHAR", Int8, "b"},
	{"MPI_UNSIGNED_CHAR", Uint8, "B"},
	{"MPI_WCHAR", Wchar, "U"},
	{"MPI_SHORT", Int16, "h"},
	{"MPI_UNSIGNED_SHORT", Uint16, "H"},
	{"MPI_INT", Int32, "i"},
	{"MPI_UNSIGNED", Uint32, "I"},
	{"MPI_LONG", Int64, "l"},
	{"MPI_UNSIGNED_LONG", Uint64, "L"},
	{"MPI_LONG_LONG", Int64, "q"},
	{"MPI_UNSIGNED_LONG_LONG", Uint64, "Q"},
	{"MPI_FLOAT", Float32, "f"},
	{"MPI_DOUBLE", Float64, "d"},
	{"MPI_LONG_DOUBLE", LongDouble, "g"},
	{"MPI_C_BOOL", Bool, "?"},
	{"MPI_INT8_T", Int8, "b"},
	{"MPI_INT16_T", Int16, "h"},
	{"MPI_INT32_T", Int32, "i"},
	{"MPI_INT64_T", Int64, "l"},
	{"MPI_UINT8_T", Uint8, "B"},
	{"MPI_UINT16_T", Uint16, "H"},
	{"MPI_UINT32_T", Uint32, "I"},
	{"MPI_UINT64_T", Uint64, "L"},
	{"MPI_AINT", Int64, "p"},
	{"MPI_COUNT", Int64, "p"},
	{"MPI_OFFSET", Int64, "p"},
	{"MPI_C_COMPLEX", Complex64, "F"},
	{"MPI_C_DOUBLE_COMPLEX", Complex128, "D"},
	{"MPI_C_LONG_DOUBLE_COMPLEX", ComplexLongDouble, "G"},
	{"MPI_CXX_BOOL", Bool, "?"},
	{"MPI_CXX_FLOAT_COMPLEX", Complex64, "F"},
	{"MPI_CXX_DOUBLE_COMPLEX", Complex128, "D"},
	{"MPI_CXX_LONG_DOUBLE_COMPLEX", ComplexLongDouble, "G"},
	{"MPI_FLOAT_INT", FloatInt, ""},
	{"MPI_DOUBLE_INT", DoubleInt, ""},
	{"MPI_LONG_INT", LongInt, ""},
	{"MPI_2INT", TwoInt, ""},
	{"MPI_SHORT_INT", ShortInt, ""},
	{"MPI_LONG_DOUBLE_INT", LongDoubleInt, ""},
	{"MPI_CHARACTER", Char, "c"},
	{"MPI_LOGICAL", Logical4, "i"},
	{"MPI_INTEGER", Int32, "i"},
	{"MPI_REAL", Float32, "f"},
	{"MPI_DOUBLE_PRECISION", Float64, "d"},
	{"MPI_COMPLEX", Complex64, "F"},
	{"MPI_DOUBLE_COMPLEX", Complex128, "D"},
	{"MPI_LOGICAL1", Logical1, "?"},
	{"MPI_LOGICAL2", Logical2, "h"},
	{"MPI_LOGICAL4", Logical4, "i"},
	{"MPI_LOGICAL8", Logical8, "l"},
	{"MPI_INTEGER1", Int8, "b"},
	{"MPI_INTEGER2", Int16, "h"},
	{"MPI_INTEGER4", Int32, "i"},
	{"MPI_INTEGER8", Int64, "l"},
	{"MPI_REAL2", Float16, "e"},
	{"MPI_REAL4", Float32, "f"},
	{"MPI_REAL8", Float64, "d"},
	// gfortran's 16-byte real is binary128, but NumPy's type of 16 bytes, to which the
	// type character refers, is the long double.
	{"MPI_REAL16", LongDouble, "g"},
	{"MPI_COMPLEX4", Complex32, "E"},
	{"MPI_COMPLEX8", Complex64, "F"},
	{"MPI_COMPLEX16", Complex128, "D"},
	{"MPI_COMPLEX32", ComplexLongDouble, "G"},
	{"MPI_FLOAT16_T", Float16, "e"},
	// NumPy has no type character for it.
	{"MPI_BFLOAT16_T", BFloat16, ""},
}

// aliases are other names of the same types, without MPI_.
var aliases = map[string]string{
	"UNSIGNED_INT":     "UNSIGNED",
	"SIGNED_SHORT":     "SHORT",
	"SIGNED_INT":       "INT",
	"SIGNED_LONG":      "LONG",
	"SIGNED_LONG_LONG": "LONG_LONG",
	"LONG_LONG_INT":    "LONG_LONG",
	"BOOL":             "C_BOOL",
	"SINT8_T":          "INT8_T",
	"SINT16_T":         "INT16_T",
	"SINT32_T":         "INT32_T",
	"SINT64_T":         "INT64_T",
	"FLOAT32_T":        "FLOAT",
	"FLOAT64_T":        "DOUBLE",
	"C_FLOAT_COMPLEX":  "C_COMPLEX",
	"INT_INT":          "2INT",
	"TWOINT":           "2INT",
	"F_BOOL":           "LOGICAL",
	"F_INT":            "INTEGER",
	"F_FLOAT":          "REAL",
	"F_DOUBLE":         "DOUBLE_PRECISION",
	"F_COMPLEX":        "COMPLEX",
	"F_FLOAT_COMPLEX":  "COMPLEX",
	"F_DOUBLE_COMPLEX": "DOUBLE_COMPLEX",
}

var (
	predefined = makePredefined()
	byName     = indexNames()
	byKind     = indexKinds()
)

func makePredefined() []*Type {
	types := make([]*Type, len(predefinedTable))
	for i, n := range predefinedTable {
		types[i] = newPredefined(i+1, n)
	}
	return types
}

func newPredefined(id int, n named) *Type {
	k := n.kind
	t := &Type{
		id: id, name: n.name, code: n.code, kind: k, combiner: "NAMED",
		elems: 1, align: kindTable[k].align, ub: k.Size(),
		body:     piece{0, newBlock(k.Size())},
		elements: piece{0, newBlock(k.Size())},
		portable: new(portable),
	}
	if k.IsPair() {
		var a arith
		t.body = concat(&a, []piece{{0, newBlock(k.PairValue().Size())}, {k.PairIndex(), newBlock(4)}})
	}
	t.size = t.body.size()
	t.dense = t.size == t.Extent()
	return t
}

func indexNames() map[string]*Type {
	m := make(map[string]*Type, len(predefined)+len(aliases))
	for _, t := range predefined {
		m[strings.TrimPrefix(t.name, "MPI_")] = t
	}
	for alias, name := range aliases {
		m[alias] = m[name]
	}
	return m
}

func indexKinds() (first [Kinds]*Type) {
	for _, t := range predefined {
		if first[t.kind] == nil {
			first[t.kind] = t
		}
	}
	return first
}

// Predefined returns all predefined types: the one with ID i is at i-1.
func Predefined() []*Type { return append([]*Type(nil), predefined...) }

// ByID returns the predefined type with that ID, nil if there is none.
func ByID(id int) *Type {
	if id < 1 || id > len(predefined) {
		return nil
	}
	return predefined[id-1]
}

// ByName returns the predefined type of a name or an alias, with or without
// MPI_ before it ("MPI_INT", "TWOINT"), nil if there is none.
func ByName(name string) *Type { return byName[strings.TrimPrefix(name, "MPI_")] }

// pairType returns the predefined type of a kind of pairs.
func pairType(k Kind) *Type { return byKind[k] }
