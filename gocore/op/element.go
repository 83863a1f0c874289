package op

type unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

type ordered interface {
	~int8 | ~int16 | ~int32 | ~int64 | unsigned | ~float32 | ~float64
}

type number interface {
	ordered | ~complex64 | ~complex128
}

// The loops are unrolled by hand: the compiler neither unrolls nor vectorises,
// and the conversion to an array pointer is one bounds check for four elements.

func sum[T number](a, b []T) {
	for len(a) >= 4 && len(b) >= 4 {
		x, y := (*[4]T)(a), (*[4]T)(b)
		x[0] += y[0]
		x[1] += y[1]
		x[2] += y[2]
		x[3] += y[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		a[i] += b[i]
	}
}

func prod[T number](a, b []T) {
	for len(a) >= 4 && len(b) >= 4 {
		x, y := (*[4]T)(a), (*[4]T)(b)
		x[0] *= y[0]
		x[1] *= y[1]
		x[2] *= y[2]
		x[3] *= y[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		a[i] *= b[i]
	}
}

func and[T unsigned](a, b []T) {
	b = b[:len(a)]
	for i := range a {
		a[i] &= b[i]
	}
}

func or[T unsigned](a, b []T) {
	b = b[:len(a)]
	for i := range a {
		a[i] |= b[i]
	}
}

func xor[T unsigned](a, b []T) {
	b = b[:len(a)]
	for i := range a {
		a[i] ^= b[i]
	}
}

// maximum and minimum keep a where the elements do not compare (NaN).

func maximum[T ordered](a, b []T) {
	b = b[:len(a)]
	for i, x := range a {
		if b[i] > x {
			a[i] = b[i]
		}
	}
}

func minimum[T ordered](a, b []T) {
	b = b[:len(a)]
	for i, x := range a {
		if b[i] < x {
			a[i] = b[i]
		}
	}
}

func add[T number](a, b T) T      { return a + b }
func multiply[T number](a, b T) T { return a * b }

func larger[T ordered](a, b T) T {
	if b > a {
		return b
	}
	return a
}

func smaller[T ordered](a, b T) T {
	if b < a {
		return b
	}
	return a
}

func truth[T unsigned](b bool) T {
	if b {
		return 1
	}
	return 0
}

func land[T unsigned](a, b T) T { return truth[T](a != 0 && b != 0) }
func lor[T unsigned](a, b T) T  { return truth[T](a|b != 0) }
func lxor[T unsigned](a, b T) T { return truth[T]((a != 0) != (b != 0)) }

// pair has the layout of C's struct { T v; int i; }.
type pair[T ordered] struct {
	v T
	i int32
}

// maxloc and minloc take the lower index where the values are equal.

func (a pair[T]) maxloc(b pair[T]) pair[T] {
	if b.v > a.v || b.v == a.v && b.i < a.i {
		return b
	}
	return a
}

func (a pair[T]) minloc(b pair[T]) pair[T] {
	if b.v < a.v || b.v == a.v && b.i < a.i {
		return b
	}
	return a
}
