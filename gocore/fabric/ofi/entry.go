package ofi

import (
	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
)

// Entry describes the transport to package registry.
var Entry = fabric.Entry{
	Name:     "ofi",
	What:     func() string { return "libfabric's providers" },
	Needs:    "`libfabric.so.1`",
	OneSided: "the same by libfabric's providers",
	Settings: device.OFISettings,
	Open:     func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, fromSettings()) },
	Problem:  func() string { return Problem(fromSettings()) },
	Between:  func() string { return between(fromSettings()) },
}

func fromSettings() Options {
	return Options{Provider: device.OFIRequest{}.WithSettings().Provider}
}
