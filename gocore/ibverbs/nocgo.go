//go:build !cgo

package ibverbs

import "fmt"

// Library is libibverbs. A program that was built without cgo has none.
type Library struct{}

// Load fails: libibverbs needs cgo.
func Load() (*Library, error) {
	return nil, fmt.Errorf("%w: this program was built without cgo", ErrNoLibrary)
}
