//go:build cgo

package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"gormapy/gocore/device"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is the back end over libibverbs.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "verbs" }

// Devices is described with backend.Backend. A device that can't be opened or
// queried is left out, unless there is no other.
func (Backend) Devices() ([]backend.Device, error) {
	lib, err := ibverbs.Load()
	if err != nil {
		return nil, err
	}
	return devices(lib)
}

func devices(lib *ibverbs.Library) (list []backend.Device, why error) {
	names, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := lib.Open(name)
		if err != nil {
			why = err
			continue
		}
		d, err := device.InspectIB(c)
		if err == nil {
			list = append(list, describe(d))
		} else {
			why = err
		}
		c.Close() //nolint:errcheck // it was only looked at
	}
	if len(list) > 0 {
		why = nil
	}
	return list, why
}

// describe returns the description of a device.
func describe(d *device.IB) backend.Device {
	a := d.Device
	described := backend.Device{
		Name: d.Context.Name(), Backend: "verbs", Detail: fmt.Sprintf("vendor %#04x, firmware %s", a.VendorID, a.Firmware), GUID: fmt.Sprintf("%016x", a.NodeGUID),
		Limits: backend.Limits{
			MaxQP: a.MaxQP, MaxQPWR: a.MaxQPWR, MaxCQ: a.MaxCQ, MaxCQE: a.MaxCQE, MaxMR: a.MaxMR, MaxMRSize: int64(min(a.MaxMRSize, 1<<62)), MaxPD: a.MaxPD,
			MaxQPRdAtomic: a.MaxRDAtomic, Atomics: a.AtomicCap != ibverbs.AtomicNone, Immediate: true,
		},
	}
	for _, port := range d.Ports {
		attr := &port.Attr
		p := backend.Port{Num: port.Num, State: ibverbs.PortStateName(attr.State), LinkLayer: "InfiniBand", MTU: ibverbs.MTUBytes(attr.ActiveMTU), MaxMessage: int64(attr.MaxMsg)}
		if attr.LinkLayer == ibverbs.LinkLayerEthernet {
			p.LinkLayer = "Ethernet"
		}
		for _, g := range port.GIDs {
			p.Addresses = append(p.Addresses, g.String())
		}
		described.Ports = append(described.Ports, p)
	}
	return described
}

// Choose is described with backend.Chooser.
func (Backend) Choose() (string, error) {
	lib, err := ibverbs.Load()
	if err != nil {
		return "", nil
	}
	return choose(lib)
}

func choose(lib *ibverbs.Library) (string, error) {
	r := device.IBRequest{}.WithSettings()
	at, err := device.OpenIB(lib, r, 0)
	if err != nil {
		if r == (device.IBRequest{}) {
			return "", nil
		}
		return "", missing(err)
	}
	at.Context.Close() //nolint:errcheck // it was only looked at
	return at.Context.Name(), nil
}

// Open is described with backend.Backend. The settings choose port and GID.
func (Backend) Open(name string) (backend.Context, error) {
	lib, err := ibverbs.Load()
	if err != nil {
		return nil, missing(err)
	}
	return open(lib, name)
}

func open(lib *ibverbs.Library, name string) (backend.Context, error) {
	at, err := device.OpenIB(lib, device.IBRequest{Device: name}.WithSettings(), 0)
	if err != nil {
		return nil, missing(err)
	}
	return &context{at.Context, describe(at.IB), at}, nil
}

// missing returns the error for a device that can't be used.
func missing(err error) error {
	var failed *ibverbs.Error
	if errors.As(err, &failed) {
		return translate(err)
	}
	return &backend.Errno{Name: "ENODEV", Text: err.Error()}
}

// translate returns the Errno for an error of libibverbs.
func translate(err error) error {
	if err == nil { // before errors.As, which would allocate
		return nil
	}
	var e *ibverbs.Error
	if !errors.As(err, &e) {
		return err
	}
	var errno syscall.Errno
	name := "EIO"
	if errors.As(err, &errno) {
		if n := unix.ErrnoName(errno); n != "" {
			name = n
		}
	}
	return &backend.Errno{Name: name, Text: err.Error()}
}

type context struct {
	c    *ibverbs.Context
	d    backend.Device
	port *device.OpenPort
}

// Device is described with backend.Context.
func (c *context) Device() backend.Device { return c.d }

// AllocPD is described with backend.Context.
func (c *context) AllocPD() (backend.PD, error) {
	pd, err := c.c.AllocPD()
	if err != nil {
		return nil, translate(err)
	}
	return &domain{c, pd}, nil
}

// Close is described with backend.Context.
func (c *context) Close() error { return translate(c.c.Close()) }
