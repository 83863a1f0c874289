//go:build cgo

package ofi

import (
	"errors"
	"fmt"
	"time"

	"gormapy/gocore/device"
	"gormapy/gocore/libfabric"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is the back end over libfabric.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "ofi" }

const (
	maxMessage = 1<<30 - 1 // what fits into the data of a write with immediate
	queueSize  = 1024
)

// offer is a device: one way to use a provider.
type offer struct {
	*device.Offer
	device backend.Device
}

// wanted returns the request for what a queue pair needs, with the settings.
func wanted() device.OFIRequest {
	return device.OFIRequest{Ordered: true, UnboundMR: true}.WithSettings()
}

// offers asks the library for its offers. Each has to be freed.
func offers() ([]*offer, error) {
	found, err := device.OFIOffers(wanted())
	if err != nil {
		return nil, err
	}
	var all []*offer
	for n, o := range found {
		made := &offer{Offer: o}
		made.describe(fmt.Sprintf("ofi%d", n))
		all = append(all, made)
	}
	return all, nil
}

func (o *offer) describe(name string) {
	i := o.Info
	p := backend.Port{Num: 1, State: "ACTIVE", LinkLayer: "libfabric", MTU: i.MTU, MaxMessage: int64(min(i.MaxMsgSize, maxMessage)), Gbps: float64(i.LinkSpeed) / 1e9}
	if ip := o.IP(); ip.IsValid() {
		p.Addresses = []string{ip.String()}
	}
	o.device = backend.Device{
		Name: name, Backend: "ofi", Detail: fmt.Sprintf("provider %s, domain %s", i.Provider, i.Domain), Ports: []backend.Port{p},
		Limits: backend.Limits{
			MaxQP: 1 << 16, MaxQPWR: queueSize, MaxCQ: 1 << 16, MaxCQE: 1 << 22, MaxMR: 1 << 20, MaxPD: 1 << 10, MaxInline: i.InjectSize,
			Atomics: o.Atomics, Immediate: i.CQDataSize >= 8, Lingers: true,
		},
	}
}

func free(offers []*offer, but *offer) {
	for _, o := range offers {
		if o != but {
			o.Info.Free()
		}
	}
}

// Devices is described with backend.Backend.
func (Backend) Devices() ([]backend.Device, error) {
	all, err := offers()
	if err != nil {
		return nil, err
	}
	defer free(all, nil)
	var devices []backend.Device
	for _, o := range all {
		devices = append(devices, o.device)
	}
	return devices, nil
}

// Choose is described with backend.Chooser.
func (Backend) Choose() (string, error) {
	r := wanted()
	all, err := offers()
	if err != nil || r.Provider == "" {
		free(all, nil)
		return "", nil
	}
	defer free(all, nil)
	for _, o := range all {
		if r.Takes(o.Offer) {
			return o.device.Name, nil
		}
	}
	return "", &backend.Errno{Name: "ENODEV", Text: r.Unavailable().Error()}
}

// Open is described with backend.Backend.
func (Backend) Open(name string) (backend.Context, error) {
	all, err := offers()
	if err != nil {
		return nil, &backend.Errno{Name: "ENODEV", Text: err.Error()}
	}
	for _, o := range all {
		if o.device.Name != name {
			continue
		}
		free(all, o)
		f, err := libfabric.OpenFabric(o.Info)
		if err != nil {
			o.Info.Free()
			return nil, translate(err)
		}
		o.Info.SetSizes(queueSize, queueSize)
		return &context{offer: o, fabric: f}, nil
	}
	free(all, nil)
	return nil, &backend.Errno{Name: "ENODEV", Text: fmt.Sprintf("there is no device %q", name)}
}

// context is an open provider.
type context struct {
	*offer
	fabric *libfabric.Fabric
}

// Device is described with backend.Context.
func (c *context) Device() backend.Device { return c.device }

// CreateCQ is described with backend.Context.
func (c *context) CreateCQ(int) (backend.CQ, error) { return &queue{}, nil }

// Close is described with backend.Context.
func (c *context) Close() error {
	err := c.fabric.Close()
	c.Info.Free()
	return translate(err)
}

// translate returns the Errno for an error of libfabric.
func translate(err error) error {
	if err == nil {
		return nil
	}
	name := "EIO"
	var errno libfabric.Errno
	if errors.As(err, &errno) {
		name = errno.Name()
	}
	return &backend.Errno{Name: name, Text: err.Error()}
}

// drainTime is how long requests under way may take to end before their endpoint is
// closed.
const drainTime = time.Second

const (
	idle     = 20 * time.Millisecond // longest sleep: some work of a provider does not make its descriptor readable
	lately   = time.Second           // for this long after a completion,
	watchful = time.Millisecond      // sleeps are at most this long
)
