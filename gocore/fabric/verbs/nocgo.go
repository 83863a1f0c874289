//go:build !cgo

package verbs

import (
	"errors"

	"gormapy/gocore/fabric"
)

// Transport reaches peers through RDMA devices; without cgo there is none.
type Transport struct{ fabric.Transport }

// New makes the transport of a rank.
func New(fabric.Directory, Options) (*Transport, error) {
	return nil, errors.New("verbs: this program was built without cgo")
}

// Problem says why there can be no transport on this machine.
func Problem(Options) string { return "this program was built without cgo" }
