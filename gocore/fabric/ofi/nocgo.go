//go:build !cgo

package ofi

import (
	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// New fails: libfabric needs cgo.
func New(fabric.Directory, Options) (fabric.Transport, error) {
	_, err := libfabric.Open(libfabric.Defaults{})
	return nil, err
}

func between(Options) string { return "" }

// Problem returns why there can be no transport on this machine.
func Problem(Options) string { return libfabric.ErrMissing.Error() }
