// Package registry makes the network transport that the settings ask for, if they
// ask for one.
//
// It may import device, fabric, fabric/ofi, fabric/tcp, fabric/verbs and
// settings.
package registry

import (
	"fmt"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/ofi"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/fabric/verbs"
	"gormapy/gocore/settings"
)

// kind is one network transport.
type kind struct {
	name string
	what string
	open func(dir fabric.Directory) (fabric.Transport, error)
	// problem says why it can't be used here, "" if it can.
	problem func() string
}

var kinds = []kind{
	{"tcp", "sockets between processes, on the loopback interface", func(dir fabric.Directory) (fabric.Transport, error) {
		return tcp.New(dir, tcp.Options{})
	}, func() string { return "" }},
	{"ofi", "libfabric's providers", func(dir fabric.Directory) (fabric.Transport, error) {
		return ofi.New(dir, ofi.Options{Provider: device.OFIProvider.Value()})
	}, func() string {
		return ofi.Problem(ofi.Options{Provider: device.OFIProvider.Value()})
	}},
	{"verbs", "RDMA devices, by libibverbs", func(dir fabric.Directory) (fabric.Transport, error) {
		return verbs.New(dir, verbs.Options{}.WithSettings())
	}, func() string { return verbs.Problem(verbs.Options{}.WithSettings()) }},
}

// Open makes the transport that GORMAPY_FABRIC names. It is nil, without an error,
// if that is shared memory, as it is unless something else is asked for: so far all
// ranks of a job are on one host.
func Open(dir fabric.Directory) (fabric.Transport, error) {
	name := settings.Fabric.Value()
	for _, k := range kinds {
		if k.name == name {
			t, err := k.open(dir)
			if err != nil {
				return nil, fmt.Errorf("GORMAPY_FABRIC=%s: %w", name, err)
			}
			return t, nil
		}
	}
	return nil, nil
}

// Kind describes a network transport to people.
type Kind struct {
	Name, What string
	Problem    string // why it can't be used here, "" if it can
}

// Kinds are all that there are.
func Kinds() []Kind {
	var list []Kind
	for _, k := range kinds {
		list = append(list, Kind{k.name, k.what, k.problem()})
	}
	return list
}
