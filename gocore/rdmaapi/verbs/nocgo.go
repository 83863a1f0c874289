//go:build !cgo

package verbs

import (
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is the back end over libibverbs.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "verbs" }

// Devices fails: libibverbs needs cgo.
func (Backend) Devices() ([]backend.Device, error) {
	_, err := ibverbs.Load()
	return nil, err
}

// Open fails, too.
func (b Backend) Open(string) (backend.Context, error) {
	_, err := b.Devices()
	return nil, err
}
