//go:build cgo

package ofi

import (
	"errors"
	"testing"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/libfabric"
)

// need skips the test where the provider is not there.
func need(t testing.TB, o Options) {
	t.Helper()
	if _, err := libfabric.Open(libfabric.Defaults{}); errors.Is(err, libfabric.ErrMissing) {
		t.Skip(err)
	}
	c, err := choose(o)
	if err != nil {
		t.Skip(err)
	}
	c.info.Free()
}

func maker(o Options) fabrictest.Make {
	return func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, o) }
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{
		"tcp":        {Provider: "tcp;ofi_rxm"},
		"tcp as EFA": {Provider: "tcp;ofi_rxm", Restrictions: EFA},
	} {
		t.Run(name, func(t *testing.T) {
			need(t, o)
			fabrictest.Run(t, maker(o))
		})
	}
}
