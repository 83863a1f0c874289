// Package registry is the list of the transports between ranks. The choices of
// GORMAPY_FABRIC, "python -m gormapy info", the table in docs/transports.md and the
// networks that "make test-fabrics" tests are made of it.
//
// To add a transport, write a package fabric/NAME with a variable Entry, and name it
// in entries; "go test ./gocore/fabric/registry -update" writes the table.
//
// It may import fabric, fabric/ofi, fabric/shm, fabric/tcp, fabric/verbs and
// settings.
package registry

import (
	"fmt"
	"hash/fnv"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/ofi"
	"gormapy/gocore/fabric/shm"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/fabric/verbs"
	"gormapy/gocore/settings"
)

var entries = []fabric.Entry{
	shm.Entry,
	tcp.Entry,
	verbs.Entry,
	ofi.Entry,
}

func init() {
	for _, e := range entries {
		settings.Fabric.Choices = append(settings.Fabric.Choices, e.Name)
	}
}

// Entries are all that there are.
func Entries() []fabric.Entry { return entries }

// Open makes the transport that GORMAPY_FABRIC names. It is nil, without an error,
// if that is shared memory, as it is unless something else is asked for: so far all
// ranks of a job are on one host.
func Open(dir fabric.Directory) (fabric.Transport, error) {
	name := settings.Fabric.Value()
	for _, e := range entries {
		if e.Name != name || !e.Network() {
			continue
		}
		t, err := e.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", settings.Fabric.Name, name, err)
		}
		return t, nil
	}
	return nil, nil
}

// Token stands for a choice of GORMAPY_FABRIC where the ranks of a job compare theirs,
// in tokenBytes: the name itself if it fits.
func Token(name string) string {
	if len(name) <= tokenBytes {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return fmt.Sprintf("%0*x", tokenBytes, h.Sum32())
}

// tokenBytes is the room for it in the job's segment.
const tokenBytes = 8

// Named is the name that a token stands for.
func Named(token string) string {
	for _, name := range settings.Fabric.Choices {
		if Token(name) == token {
			return name
		}
	}
	return token
}
