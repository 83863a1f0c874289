//go:build !cgo

package verbs

import (
	"errors"

	"gormapy/gocore/fabric"
)

// Transport is the transport over RDMA devices. Without cgo there is none.
type Transport struct{ fabric.Transport }

// New fails: libibverbs needs cgo.
func New(fabric.Directory, Options) (*Transport, error) {
	return nil, errors.New("verbs: this program was built without cgo")
}

func between(Options) string { return "" }

// Problem returns why there can be no transport on this machine.
func Problem(Options) string { return "this program was built without cgo" }
