package ofi

import (
	"time"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/settings"
)

// Entry describes the transport to package registry.
var Entry = fabric.Entry{
	Name:     "ofi",
	What:     func() string { return "libfabric's providers" },
	Needs:    "`libfabric.so.1`",
	OneSided: "the same by libfabric's providers",
	Settings: device.OFISettings,
	Open:     func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, fromSettings().between(dir)) },
	Problem:  func() string { return Problem(fromSettings()) },
	Between:  func() string { return between(fromSettings()) },
}

func fromSettings() Options {
	return Options{Provider: device.OFIRequest{}.WithSettings().Provider}
}

// between returns o for the hosts of dir.
func (o Options) between(dir fabric.Directory) Options {
	if dir.Hosts() > 1 {
		// The agents of the nodes are about to reach each other.
		o.Routable, o.Sealed, o.Address = true, true, dir.Address(time.Now().Add(settings.PeerTimeout.Seconds()))
	}
	return o
}
