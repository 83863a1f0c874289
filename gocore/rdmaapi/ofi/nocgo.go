//go:build !cgo

package ofi

import (
	"gormapy/gocore/libfabric"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is libfabric.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "ofi" }

// Devices says why there is no library.
func (Backend) Devices() ([]backend.Device, error) {
	_, err := libfabric.Open(libfabric.Defaults{})
	return nil, err
}

// Open says so, too.
func (b Backend) Open(string) (backend.Context, error) {
	_, err := b.Devices()
	return nil, err
}
