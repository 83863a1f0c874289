package dtype

import (
	"errors"
	"fmt"
)

// The classes of errors. The text of an error names the argument, its
// value and the allowed values.
var (
	// ErrCount is for a negative count or block length.
	ErrCount = errors.New("invalid count")
	// ErrArg is for any other argument that cannot be used, and for a type
	// whose size or bounds do not fit in 64 bits.
	ErrArg = errors.New("invalid argument")
	// ErrType is for a missing (null) datatype.
	ErrType = errors.New("invalid datatype")
	// ErrConversion is for a value that external32, or the memory of this machine,
	// can't hold.
	ErrConversion = errors.New("conversion error")
)

func negative(call, arg string, v int) error {
	return fmt.Errorf("%w: %s: %s is %d; it must not be negative", ErrCount, call, arg, v)
}

func missing(call, arg string) error {
	return fmt.Errorf("%w: %s: %s is the null datatype; pass a predefined or constructed one", ErrType, call, arg)
}

func tooLarge(call string) error {
	return fmt.Errorf("%w: %s: the size or the bounds of the new type do not fit in 64 bits; use smaller counts, strides or displacements", ErrArg, call)
}
