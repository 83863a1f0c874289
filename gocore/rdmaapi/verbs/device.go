//go:build cgo

package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gormapy/gocore/ibverbs"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is libibverbs.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "verbs" }

// Devices is described with backend.Backend.
func (Backend) Devices() ([]backend.Device, error) {
	lib, err := ibverbs.Load()
	if err != nil {
		return nil, err
	}
	names, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	var devices []backend.Device
	for _, name := range names {
		c, err := lib.Open(name)
		if err != nil {
			return nil, err
		}
		d, _, err := describe(c)
		c.Close() //nolint:errcheck // it was only looked at
		if err != nil {
			return nil, err
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// place is how peers reach a port.
type place struct {
	port  int
	attr  ibverbs.PortAttr
	gid   [16]byte
	index int // of the GID
}

// describe asks for all of a device, and where on it queue pairs are made.
func describe(c *ibverbs.Context) (backend.Device, place, error) {
	a, err := c.Device()
	if err != nil {
		return backend.Device{}, place{}, err
	}
	d := backend.Device{
		Name: c.Name(), Backend: "verbs", Detail: fmt.Sprintf("vendor %#04x, firmware %s", a.VendorID, a.Firmware), GUID: fmt.Sprintf("%016x", a.NodeGUID),
		Limits: backend.Limits{
			MaxQP: a.MaxQP, MaxQPWR: a.MaxQPWR, MaxCQ: a.MaxCQ, MaxCQE: a.MaxCQE, MaxMR: a.MaxMR, MaxMRSize: int64(min(a.MaxMRSize, 1<<62)), MaxPD: a.MaxPD,
			MaxQPRdAtomic: a.MaxRDAtomic, Atomics: a.AtomicCap != ibverbs.AtomicNone, Immediate: true,
		},
	}
	var chosen place
	for n := 1; n <= a.Ports; n++ {
		attr, err := c.Port(n)
		if err != nil {
			return d, chosen, err
		}
		p := backend.Port{Num: n, State: ibverbs.PortStateName(attr.State), LinkLayer: "InfiniBand", MTU: ibverbs.MTUBytes(attr.ActiveMTU), MaxMessage: int64(attr.MaxMsg)}
		if attr.LinkLayer == ibverbs.LinkLayerEthernet {
			p.LinkLayer = "Ethernet"
		}
		at := place{port: n, attr: attr, index: -1}
		best := -1
		for i := range attr.GIDs {
			gid, err := c.GID(n, i)
			if err != nil || gid == [16]byte{} {
				continue
			}
			kind := gidKind(d.Name, n, i)
			p.Addresses = append(p.Addresses, strings.TrimSpace(net.IP(gid[:]).String()+" "+kind))
			if r := rank(gid, kind); r > best {
				best, at.gid, at.index = r, gid, i
			}
		}
		d.Ports = append(d.Ports, p)
		if chosen.port == 0 && attr.State == ibverbs.PortActive && (at.index >= 0 || attr.LinkLayer != ibverbs.LinkLayerEthernet) {
			chosen = at
		}
	}
	return d, chosen, nil
}

// gidKind is what the kernel says of a GID: "IB/RoCE v1", "RoCE v2".
func gidKind(device string, port, index int) string {
	b, err := os.ReadFile(filepath.Join("/sys/class/infiniband", device, "ports", strconv.Itoa(port), "gid_attrs/types", strconv.Itoa(index)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// rank prefers RoCE v2 with an IPv4 address, which can be routed.
func rank(gid [16]byte, kind string) int {
	r := 0
	if kind == "RoCE v2" {
		r += 4
	}
	switch {
	case bytes.Equal(gid[:12], []byte{10: 0xff, 11: 0xff}):
		r += 2
	case gid[0] != 0xfe: // not link-local
		r++
	}
	return r
}

// Open is described with backend.Backend.
func (Backend) Open(name string) (backend.Context, error) {
	lib, err := ibverbs.Load()
	if err != nil {
		return nil, &backend.Errno{Name: "ENODEV", Text: err.Error()}
	}
	c, err := lib.Open(name)
	if err != nil {
		return nil, translate(err)
	}
	d, at, err := describe(c)
	if err == nil && at.port == 0 {
		err = &backend.Errno{Name: "ENODEV", Text: fmt.Sprintf("device %s has no port that is active and has an address: see python -m gormapy.rdma devices", name)}
	}
	if err != nil {
		c.Close() //nolint:errcheck // there is another error to report
		return nil, translate(err)
	}
	return &context{c, d, at}, nil
}

// translate makes an Errno of an error of libibverbs.
func translate(err error) error {
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
	c  *ibverbs.Context
	d  backend.Device
	at place
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
