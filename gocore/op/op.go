package op

import "gormapy/gocore/dtype"

// Op is a predefined reduction.
type Op int

// The operations. The values go over the wire: the order must not change.
const (
	OpNull Op = iota
	Max
	Min
	Sum
	Prod
	Land
	Band
	Lor
	Bor
	Lxor
	Bxor
	Maxloc
	Minloc
	Replace
	NoOp

	ops
)

var names = [ops]string{
	"MPI_OP_NULL", "MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND", "MPI_BAND", "MPI_LOR",
	"MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC", "MPI_REPLACE", "MPI_NO_OP",
}

// String returns the operation's MPI name.
func (o Op) String() string {
	if o < 0 || o >= ops {
		return "unknown operation"
	}
	return names[o]
}

// Commutative reports whether the order of the operands does not matter.
func (o Op) Commutative() bool { return o > OpNull && o < Replace }

// Valid reports whether the operation is defined on elements of kind k (MPI-4.1
// section 6.9.2, and 12.3.4 for REPLACE and NO_OP, which take every kind).
// Apply and AtomicApply may only be called if it is.
func (o Op) Valid(k dtype.Kind) bool {
	if k == dtype.KindNone || k >= dtype.Kinds {
		return false
	}
	switch o {
	case Replace, NoOp:
		return true
	case Max, Min:
		return isInteger(k) || isFloat(k)
	case Sum, Prod:
		return isInteger(k) || isFloat(k) || isComplex(k)
	case Land, Lor, Lxor:
		return isInteger(k) || isLogical(k)
	case Band, Bor, Bxor:
		return isInteger(k) || k == dtype.Byte
	case Maxloc, Minloc:
		return k.IsPair()
	}
	return false
}

// Whole reports whether Apply, for all operations but REPLACE, updates elements of
// kind k that are aligned to their size by one store of the processor each, which may
// be that of a vector: processors store its aligned parts of 8 bytes whole. Pairs and
// complex numbers may be stored one field after the other.
func Whole(k dtype.Kind) bool { return k.Size() <= 8 && !k.IsPair() && !isComplex(k) }

func isInteger(k dtype.Kind) bool { return k >= dtype.Int8 && k <= dtype.Uint64 }
func isFloat(k dtype.Kind) bool   { return k >= dtype.Float16 && k <= dtype.LongDouble }
func isComplex(k dtype.Kind) bool { return k >= dtype.Complex32 && k <= dtype.ComplexLongDouble }
func isLogical(k dtype.Kind) bool { return k >= dtype.Bool && k <= dtype.Logical8 }
