//go:build !cgo

package pmix

import (
	"errors"

	"gormapy/gocore/boot/store"
)

// Connect fails: libpmix is a C library.
func Connect(string) (store.Store, error) {
	return nil, errors.New("libpmix can't be used: built without cgo")
}
