//go:build !cgo

package ibverbs

import "fmt"

// Library is libibverbs; there is none in a program that was built without cgo.
type Library struct{}

// Load opens libibverbs.
func Load() (*Library, error) {
	return nil, fmt.Errorf("%w: this program was built without cgo", ErrNoLibrary)
}
