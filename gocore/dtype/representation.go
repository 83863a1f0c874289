package dtype

// representation says how external32 has a scalar: how many bytes it takes there and in
// memory, and how one becomes the other. External32 is big-endian, all machines that
// gormapy runs on are little-endian.
type representation uint8

const (
	asBytes representation = iota // one byte, as it is
	swap2
	swap4
	swap8
	swap16
	signed8to4   // MPI_LONG
	unsigned8to4 // MPI_UNSIGNED_LONG
	wide4to2     // MPI_WCHAR
	x87toQuad    // a long double of x86 in IEEE 754's binary128
	representations
)

type representationInfo struct {
	memory, external int // bytes
	// pack converts the scalars that src has, unpack those of dst.
	pack, unpack func(dst, src []byte)
	// A value that the other side can't hold: the index of the first that src has, -1 if
	// there is none. Nil: there are no such values.
	tooLarge, tooPrecise func(src []byte) int
}

var representationTable = [representations]representationInfo{
	asBytes:      {1, 1, copyBytes, copyBytes, nil, nil},
	swap2:        {2, 2, swapPairs, swapPairs, nil, nil},
	swap4:        {4, 4, swapFours, swapFours, nil, nil},
	swap8:        {8, 8, swapEights, swapEights, nil, nil},
	swap16:       {16, 16, swapSixteens, swapSixteens, nil, nil},
	signed8to4:   {8, 4, narrowSigned, widenSigned, firstBeyond31, nil},
	unsigned8to4: {8, 4, narrowUnsigned, widenUnsigned, firstBeyond32, nil},
	wide4to2:     {4, 2, narrowWide, widenWide, firstBeyond16, nil},
	x87toQuad:    {16, 16, packX87, unpackX87, nil, firstBeyondX87},
}

// longDouble is the representation of C's long double.
func longDouble() representation {
	if x87 {
		return x87toQuad
	}
	return swap16
}

// scalars returns the representation of the scalars of a predefined type, and their
// number, by the table of external32's sizes (MPI-4.1, section 14.5.2). For pairs it is
// that of the value, which an index of 4 bytes follows.
//
// The table has no pair types; they are a struct of what they consist of. It has no
// logicals but MPI_LOGICAL; others have their own size, as integers do.
func (t *Type) scalars() (rep representation, n int) {
	switch t.name {
	case "MPI_LONG", "MPI_LONG_INT":
		return signed8to4, 1
	case "MPI_UNSIGNED_LONG":
		return unsigned8to4, 1
	}
	k := t.kind
	if k.IsPair() {
		k = k.PairValue()
	}
	switch k {
	case Wchar:
		return wide4to2, 1
	case LongDouble:
		return longDouble(), 1
	case ComplexLongDouble:
		return longDouble(), 2
	case Complex32:
		return swap2, 2
	case Complex64:
		return swap4, 2
	case Complex128:
		return swap8, 2
	}
	switch k.Size() {
	case 1:
		return asBytes, 1
	case 2:
		return swap2, 1
	case 4:
		return swap4, 1
	}
	return swap8, 1
}
