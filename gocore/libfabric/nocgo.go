//go:build !cgo

package libfabric

import "errors"

// ErrMissing is the error of Open: this program was built without cgo, and libfabric is a
// C library.
var ErrMissing = errors.New("libfabric can't be used: built without cgo")

// Library is the opened library.
type Library struct{}

// Defaults are settings of libfabric.
type Defaults struct{ Universe int }

// Open fails: libfabric needs cgo.
func Open(Defaults) (*Library, error) { return nil, ErrMissing }
