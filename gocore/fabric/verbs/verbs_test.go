//go:build cgo

package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/ibverbs/double"
)

// software makes transports over the double.
func software(t testing.TB) fabrictest.Make {
	t.Helper()
	double.Reset()
	t.Cleanup(double.Reset)
	lib, err := double.Library()
	require.NoError(t, err)
	return func(dir fabric.Directory) (fabric.Transport, error) { return newTransport(lib, dir, Options{}) }
}

// The transport's tests over the double, which does its work when it is posted, or little
// by little.
func TestContract(t *testing.T) {
	t.Run("prompt", func(t *testing.T) { fabrictest.Run(t, software(t)) })
	t.Run("lazy", func(t *testing.T) {
		create := software(t)
		double.Fault(double.Lazy, 3)
		fabrictest.Run(t, create)
	})
}

// The same on this machine's devices.
func TestDeviceContract(t *testing.T) {
	if _, err := ibverbs.Load(); err != nil {
		t.Skip(err)
	}
	if why := Problem(Options{}); why != "" {
		t.Skip(why)
	}
	fabrictest.Run(t, func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, Options{}) })
}
