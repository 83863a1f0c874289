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
	const silent = "wrong key"
	for _, c := range []struct {
		name   string
		o      Options
		except map[string]string
	}{
		{"tcp", Options{Provider: "tcp;ofi_rxm"}, nil},
		{"tcp as EFA", Options{Provider: "tcp;ofi_rxm", Restrictions: EFA}, nil},
		{
			"tcp with acks",
			Options{Provider: "tcp;ofi_rxm", Restrictions: Restrictions{NoDelivery: true, LocalMR: true, MaxMsg: 100_000}},
			map[string]string{silent: "without FI_DELIVERY_COMPLETE the provider reports no error of the target"},
		},
		{"verbs", Options{Provider: "verbs;ofi_rxm"}, nil},
		{"shm", Options{Provider: "shm"}, map[string]string{
			silent:        "the shm provider never answers a wrong key (libfabric 1.17)",
			"closed peer": "endpoints of one process share memory in the shm provider, so one may not use the other after its end",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			need(t, c.o)
			fabrictest.RunExcept(t, maker(c.o), c.except)
		})
	}
}
