//go:build !cgo

package verbs

import (
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is libibverbs.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "verbs" }

// Devices says why there is no library.
func (Backend) Devices() ([]backend.Device, error) {
	_, err := ibverbs.Load()
	return nil, err
}

// Open says so, too.
func (b Backend) Open(string) (backend.Context, error) {
	_, err := b.Devices()
	return nil, err
}
