package dtype

// Kind is the arithmetic kind of a basic element: types that differ only in
// their name (MPI_LONG, MPI_INT64_T, MPI_AINT) have the same kind.
type Kind uint8

// The kinds of basic elements.
const (
	KindNone Kind = iota // elements of several kinds

	Byte  // uninterpreted 8 bits: MPI_BYTE, MPI_PACKED
	Char  // a printable character of 1 byte: MPI_CHAR, MPI_CHARACTER
	Wchar // a wide character of 4 bytes: MPI_WCHAR

	Bool     // C's bool, 1 byte
	Logical1 // Fortran's LOGICAL of 1 byte
	Logical2
	Logical4
	Logical8

	Int8
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64

	Float16
	BFloat16 // the upper half of a Float32
	Float32
	Float64
	LongDouble // C's long double in 16 bytes: 80-bit x87 on x86-64, binary128 elsewhere

	Complex32 // two Float16
	Complex64
	Complex128
	ComplexLongDouble

	// Pairs of a value and an index have the layout of C's struct
	// { value; int }: padding may lie between them and after them.
	FloatInt
	DoubleInt
	LongInt
	TwoInt
	ShortInt
	LongDoubleInt

	// Kinds is the number of kinds, KindNone included.
	Kinds
)

type kindInfo struct {
	name  string
	size  int // bytes of one element in memory, padding included
	align int
	value Kind // pairs: the kind of the value
}

var kindTable = [Kinds]kindInfo{
	KindNone:          {"mixed", 0, 1, KindNone},
	Byte:              {"byte", 1, 1, KindNone},
	Char:              {"char", 1, 1, KindNone},
	Wchar:             {"wchar", 4, 4, KindNone},
	Bool:              {"bool", 1, 1, KindNone},
	Logical1:          {"logical1", 1, 1, KindNone},
	Logical2:          {"logical2", 2, 2, KindNone},
	Logical4:          {"logical4", 4, 4, KindNone},
	Logical8:          {"logical8", 8, 8, KindNone},
	Int8:              {"int8", 1, 1, KindNone},
	Uint8:             {"uint8", 1, 1, KindNone},
	Int16:             {"int16", 2, 2, KindNone},
	Uint16:            {"uint16", 2, 2, KindNone},
	Int32:             {"int32", 4, 4, KindNone},
	Uint32:            {"uint32", 4, 4, KindNone},
	Int64:             {"int64", 8, 8, KindNone},
	Uint64:            {"uint64", 8, 8, KindNone},
	Float16:           {"float16", 2, 2, KindNone},
	BFloat16:          {"bfloat16", 2, 2, KindNone},
	Float32:           {"float32", 4, 4, KindNone},
	Float64:           {"float64", 8, 8, KindNone},
	LongDouble:        {"long double", 16, 16, KindNone},
	Complex32:         {"complex32", 4, 2, KindNone},
	Complex64:         {"complex64", 8, 4, KindNone},
	Complex128:        {"complex128", 16, 8, KindNone},
	ComplexLongDouble: {"complex long double", 32, 16, KindNone},
	FloatInt:          {"float-int", 8, 4, Float32},
	DoubleInt:         {"double-int", 16, 8, Float64},
	LongInt:           {"long-int", 16, 8, Int64},
	TwoInt:            {"int-int", 8, 4, Int32},
	ShortInt:          {"short-int", 8, 4, Int16},
	LongDoubleInt:     {"long double-int", 32, 16, LongDouble},
}

// String returns the kind's name for error texts.
func (k Kind) String() string {
	if k >= Kinds {
		return "unknown"
	}
	return kindTable[k].name
}

// Size returns the bytes that one element takes in memory, padding included,
// so that elements at multiples of Size form an array. It is 0 for KindNone.
func (k Kind) Size() int {
	if k >= Kinds {
		return 0
	}
	return kindTable[k].size
}

// IsPair reports whether an element is a value and an index.
func (k Kind) IsPair() bool { return k < Kinds && kindTable[k].value != KindNone }

// PairValue returns the kind of a pair's value, KindNone if k is no pair.
func (k Kind) PairValue() Kind {
	if k >= Kinds {
		return KindNone
	}
	return kindTable[k].value
}

// PairIndex returns the offset of a pair's index (an Int32).
func (k Kind) PairIndex() int {
	// Only a short is smaller than the int's alignment.
	return max(4, k.PairValue().Size())
}

// Compatible reports whether data that is sent as one kind may be received as the
// other. Programs that declare one side as bytes, or with another sign, do so on
// purpose; a float that is received as an integer is usually a mistake.
func Compatible(a, b Kind) bool {
	x, y := a.family(), b.family()
	return x == y || x == familyAny || y == familyAny
}

type family uint8

const (
	familyAny family = iota // bytes, characters, logicals, mixtures: compatible with all
	familyInteger
	familyFloat
	familyComplex
	familyPair
)

// IsHalf reports whether k is a floating-point number of two bytes.
func (k Kind) IsHalf() bool { return k == Float16 || k == BFloat16 }

func (k Kind) family() family {
	switch {
	case k >= Int16 && k <= Uint64:
		return familyInteger
	case k >= Float16 && k <= LongDouble:
		return familyFloat
	case k >= Complex32 && k <= ComplexLongDouble:
		return familyComplex
	case k.IsPair():
		return familyPair
	}
	return familyAny // integers of one byte are bytes
}
