//go:build !cgo

package ofi

import (
	"gormapy/gocore/libfabric"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is the back end over libfabric.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "ofi" }

// Devices fails: libfabric needs cgo.
func (Backend) Devices() ([]backend.Device, error) {
	_, err := libfabric.Open(libfabric.Defaults{})
	return nil, err
}

// Open fails, too.
func (b Backend) Open(string) (backend.Context, error) {
	_, err := b.Devices()
	return nil, err
}
