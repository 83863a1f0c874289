//go:build cgo

package ofi

import (
	"errors"
	"testing"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/libfabric"
)

// need skips the test if there is no such provider.
func need(t testing.TB, o Options) {
	t.Helper()
	if _, err := libfabric.Open(libfabric.Defaults{}); errors.Is(err, libfabric.ErrMissing) {
		t.Skip(err)
	}
	c, err := choose(o)
	if err != nil {
		t.Skip(err)
	}
	c.Info.Free()
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
		{"tcp sealed", Options{Provider: "tcp;ofi_rxm", Sealed: true}, nil},
		{
			"tcp with acks",
			Options{Provider: "tcp;ofi_rxm", Sealed: true, Restrictions: Restrictions{NoDeliveryComplete: true, LocalMR: true, MaxMsg: 100_000}},
			map[string]string{silent: "without FI_DELIVERY_COMPLETE the provider reports no error of the target"},
		},
		{"verbs", Options{Provider: "verbs;ofi_rxm"}, nil},
		// Not shm: there one endpoint touches the memory of another of the same process
		// when it closes, after that has closed (libfabric 1.17): TestTwoProcesses has it.
	} {
		t.Run(c.name, func(t *testing.T) {
			need(t, c.o)
			fabrictest.RunExcept(t, maker(c.o), c.except)
		})
	}
}
