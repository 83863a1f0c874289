package dtype

import "fmt"

// Undefined leaves the precision or the range of a Fortran type open.
const Undefined = -32766

// digits are the decimal digits that a type of Fortran holds: of its precision and of its
// decimal exponent range, as selected_real_kind counts them. External32 has the same limits
// for its sizes (MPI-4.1, section 19.1.9), so that a type never has to be narrowed.
type digits struct {
	name             string
	precision, reach int
}

var f90Integers = []digits{{"INTEGER1", 0, 2}, {"INTEGER2", 0, 4}, {"INTEGER4", 0, 9}, {"INTEGER8", 0, 18}}

// f90Reals does without REAL2, which external32's limits do not have.
func f90Reals() []digits {
	longDouble := digits{"REAL16", 33, 4931}
	if x87 {
		longDouble.precision = 18
	}
	return []digits{{"REAL4", 6, 37}, {"REAL8", 15, 307}, longDouble}
}

var f90Complexes = map[string]string{"REAL4": "COMPLEX8", "REAL8": "COMPLEX16", "REAL16": "COMPLEX32"}

// F90Integer returns the type of a Fortran integer of r decimal digits.
func F90Integer(r int) (*Type, error) {
	for _, d := range f90Integers {
		if r <= d.reach {
			return unnamed(d.name, "F90_INTEGER", r), nil
		}
	}
	return nil, fmt.Errorf("%w: Create_f90_integer: r is %d; the largest integer here, of 8 bytes, has 18 decimal digits", ErrArg, r)
}

// F90Real returns the type of a Fortran real of p decimal digits and a decimal exponent
// range of r; one of them may be Undefined.
func F90Real(p, r int) (*Type, error) {
	name, err := f90Real("Create_f90_real", p, r)
	if err != nil {
		return nil, err
	}
	return unnamed(name, "F90_REAL", p, r), nil
}

// F90Complex returns the type of a pair of such reals.
func F90Complex(p, r int) (*Type, error) {
	name, err := f90Real("Create_f90_complex", p, r)
	if err != nil {
		return nil, err
	}
	return unnamed(f90Complexes[name], "F90_COMPLEX", p, r), nil
}

func f90Real(call string, p, r int) (string, error) {
	if p == Undefined && r == Undefined {
		return "", fmt.Errorf("%w: %s: p and r are both UNDEFINED; give one of them at least", ErrArg, call)
	}
	reals := f90Reals()
	for _, d := range reals {
		if p <= d.precision && r <= d.reach {
			return d.name, nil
		}
	}
	most := reals[len(reals)-1]
	return "", fmt.Errorf("%w: %s: p is %d and r is %d; the largest real here has a precision of %d decimal digits and an exponent range of %d",
		ErrArg, call, p, r, most.precision, most.reach)
}

// unnamed returns a predefined type that is not in the table.
func unnamed(base, combiner string, ints ...int) *Type {
	t := *ByName(base)
	t.combiner, t.ints = combiner, ints
	t.name = fmt.Sprintf("%s%v", combiner, ints)
	return &t
}
