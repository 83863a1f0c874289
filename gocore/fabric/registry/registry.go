// Package registry lists the transports between ranks. The choices of GORMAPY_FABRIC,
// "python -m gormapy info", the table in docs/transports.md and the networks that
// "make test-fabrics" tests follow from the list.
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

// Entries returns all transports.
func Entries() []fabric.Entry { return entries }

// Open makes the network transport of a name. It returns nil, without an error, for
// shared memory and for auto: the engine has it.
func Open(name string, dir fabric.Directory) (fabric.Transport, error) {
	for _, e := range entries {
		if e.Name != name || !e.Network() {
			continue
		}
		if _, err := tcp.GuardFor(1); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", settings.Fabric.Name, name, err)
		}
		if tcp.TLS.On() && name != tcp.Entry.Name {
			return nil, fmt.Errorf("%s=1, and %s=%s can't encrypt: leave one of them unset", tcp.TLS.Name, settings.Fabric.Name, name)
		}
		t, err := e.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", settings.Fabric.Name, name, err)
		}
		return t, nil
	}
	return nil, nil
}

// Between returns, by the transports' names, the networks on which this host reaches others better
// than by TCP; see fabric.Entry. If what is sent is to be encrypted, there is none.
func Between() map[string]string {
	found := map[string]string{}
	if tcp.TLS.On() || tcp.TLS.Problem() != "" {
		return found
	}
	for _, e := range entries {
		if e.Between == nil {
			continue
		}
		if network := e.Between(); network != "" {
			found[e.Name] = network
		}
	}
	return found
}

// Best returns the transport that GORMAPY_FABRIC=auto takes between hosts: the first of which all
// name the same network, or else tcp.
func Best(hosts []map[string]string) string {
	for _, e := range entries {
		same := e.Between != nil && len(hosts) > 0
		for _, h := range hosts {
			same = same && h[e.Name] != "" && h[e.Name] == hosts[0][e.Name]
		}
		if same {
			return e.Name
		}
	}
	return tcp.Entry.Name
}

// Token returns at most tokenBytes that stand for a choice of GORMAPY_FABRIC, by which the
// ranks of a job compare theirs. It is the name itself if that fits.
func Token(name string) string {
	if len(name) <= tokenBytes {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return fmt.Sprintf("%0*x", tokenBytes, h.Sum32())
}

// tokenBytes is the room for a token in the job's segment.
const tokenBytes = 8

// Named returns the name that a token stands for.
func Named(token string) string {
	for _, name := range settings.Fabric.Choices {
		if Token(name) == token {
			return name
		}
	}
	return token
}
