package dtype

import "fmt"

// InFile returns the type that a sequence of the same constructors makes where the predefined
// types have their sizes in external32 and no alignment: the layout of t in a file that is
// written in external32 (MPI-4.1, section 14.5.1). Displacements that were given in bytes
// stay as they are, those in extents are scaled.
func (t *Type) InFile() (*Type, error) {
	p := t.portable
	p.fileOnce.Do(func() { p.file, p.fileErr = t.inFile() })
	return p.file, p.fileErr
}

func (t *Type) inFile() (*Type, error) {
	if t.id != 0 {
		return Contiguous(ByName("BYTE"), t.ExternalSize())
	}
	types := make([]*Type, len(t.types))
	for i, old := range t.types {
		var err error
		if types[i], err = old.InFile(); err != nil {
			return nil, err
		}
	}
	return construct(t.combiner, t.ints, t.addrs, types)
}

// construct calls a constructor with the arguments that Envelope returns.
func construct(combiner string, ints, addrs []int, types []*Type) (*Type, error) {
	counted := func(list int) []int {
		n := ints[0]
		return ints[1+list*n : 1+(list+1)*n]
	}
	switch combiner {
	case "DUP":
		return Dup(types[0])
	case "CONTIGUOUS":
		return Contiguous(types[0], ints[0])
	case "VECTOR":
		return Vector(types[0], ints[0], ints[1], ints[2])
	case "HVECTOR":
		return Hvector(types[0], ints[0], ints[1], addrs[0])
	case "INDEXED":
		return Indexed(types[0], counted(0), counted(1))
	case "HINDEXED":
		return Hindexed(types[0], counted(0), addrs)
	case "INDEXED_BLOCK":
		return IndexedBlock(types[0], ints[1], ints[2:])
	case "HINDEXED_BLOCK":
		return HindexedBlock(types[0], ints[1], addrs)
	case "STRUCT":
		return Struct(counted(0), addrs, types)
	case "RESIZED":
		return Resized(types[0], addrs[0], addrs[1])
	case "SUBARRAY":
		return Subarray(types[0], counted(0), counted(1), counted(2), ints[len(ints)-1] == OrderC)
	case "DARRAY":
		n := ints[2]
		list := func(i int) []int { return ints[3+i*n : 3+(i+1)*n] }
		return Darray(types[0], ints[0], ints[1], list(0), list(1), list(2), list(3), ints[len(ints)-1] == OrderC)
	}
	return nil, fmt.Errorf("%w: a type that %s made has no form in a file", ErrArg, combiner)
}
