package verbs

import (
	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
)

// Entry describes the transport to package registry.
var Entry = fabric.Entry{
	Name:  "verbs",
	What:  func() string { return "RDMA devices, by libibverbs" },
	Needs: "an RDMA device and `libibverbs.so.1`",
	OneSided: "RDMA writes and reads between the arrays themselves; small windows have fetch-add and compare-and-swap by the device " +
		"(info `gormapy_native_atomics`: `auto`, `true`, `false`)",
	Device:   true,
	Settings: device.IBSettings,
	Open: func(dir fabric.Directory) (fabric.Transport, error) {
		t, err := New(dir, Options{}.WithSettings())
		if err != nil {
			return nil, err
		}
		return t, nil
	},
	Problem: func() string { return Problem(Options{}.WithSettings()) },
	Between: func() string { return between(Options{}.WithSettings()) },
}
