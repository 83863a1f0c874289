//go:build cgo

package ofi

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"gormapy/gocore/libfabric"
	"gormapy/gocore/rdmaapi/backend"
)

// Backend is libfabric.
type Backend struct{}

// Name is described with backend.Backend.
func (Backend) Name() string { return "ofi" }

// providers are those that are offered, the fastest networks first.
var providers = []string{"efa", "verbs;ofi_rxm", "tcp;ofi_rxm", "shm"}

const (
	maxMessage = 1<<30 - 1 // what fits into the data of a write with immediate
	queueSize  = 1024
)

// offer is one way to use a provider.
type offer struct {
	info     *libfabric.Info
	atomics  bool
	delivery bool // FI_DELIVERY_COMPLETE
	device   backend.Device
}

// offers asks the library. Each has to be freed.
func offers() ([]*offer, error) {
	if _, err := libfabric.Open(libfabric.Defaults{}); err != nil {
		return nil, err
	}
	var loop, other []*offer
	for _, name := range providers {
		seen := map[string]bool{}
		// A write that is complete when the peer has it fails when the peer refuses it.
		for _, h := range []libfabric.Hints{
			{Caps: libfabric.CapAtomic, TxFlags: libfabric.DeliveryComplete},
			{TxFlags: libfabric.DeliveryComplete},
			{Caps: libfabric.CapAtomic},
			{},
		} {
			atomics, delivery := h.Caps != 0, h.TxFlags != 0
			h.Provider = name
			h.Caps |= libfabric.CapMsg | libfabric.CapRMA
			h.Order = libfabric.OrderSAS
			infos, err := libfabric.GetInfo(h)
			if errors.Is(err, libfabric.ErrNoProvider) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("ask libfabric for provider %s: %w", name, err)
			}
			for _, i := range infos {
				if seen[i.Domain] || !strings.EqualFold(i.Provider, name) || i.MRMode&libfabric.MREndpoint != 0 {
					i.Free()
					continue
				}
				seen[i.Domain] = true
				o := &offer{info: i, atomics: atomics, delivery: delivery}
				if ip := addressOf(i); ip != nil && ip.IsLoopback() {
					loop = append(loop, o)
				} else {
					other = append(other, o)
				}
			}
		}
	}
	all := append(loop, other...)
	for n, o := range all {
		o.describe(fmt.Sprintf("ofi%d", n))
	}
	if len(all) == 0 {
		there := strings.Join(libfabric.Providers(), ", ")
		if there == "" {
			there = "none"
		}
		return nil, fmt.Errorf("libfabric has none of the providers %s here; it has: %s", strings.Join(providers, ", "), there)
	}
	return all, nil
}

// addressOf is the address of an offer by IP, nil for others.
func addressOf(i *libfabric.Info) net.IP {
	const sockaddrIn, sockaddrIn6 = 2, 3
	switch a := i.SourceAddress; {
	case i.AddressFormat == sockaddrIn && len(a) >= 8:
		return net.IP(a[4:8])
	case i.AddressFormat == sockaddrIn6 && len(a) >= 24:
		return net.IP(a[8:24])
	}
	return nil
}

func (o *offer) describe(name string) {
	i := o.info
	p := backend.Port{Num: 1, State: "ACTIVE", LinkLayer: "libfabric", MTU: i.MTU, MaxMessage: int64(min(i.MaxMsgSize, maxMessage)), Gbps: float64(i.LinkSpeed) / 1e9}
	if ip := addressOf(i); ip != nil {
		p.Addresses = []string{ip.String()}
	}
	o.device = backend.Device{
		Name: name, Backend: "ofi", Detail: fmt.Sprintf("provider %s, domain %s", i.Provider, i.Domain), Ports: []backend.Port{p},
		Limits: backend.Limits{
			MaxQP: 1 << 16, MaxQPWR: queueSize, MaxCQ: 1 << 16, MaxCQE: 1 << 22, MaxMR: 1 << 20, MaxPD: 1 << 10, MaxInline: i.InjectSize,
			Atomics: o.atomics, Immediate: i.CQDataSize >= 8, Lingers: true,
		},
	}
}

func free(offers []*offer, but *offer) {
	for _, o := range offers {
		if o != but {
			o.info.Free()
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
		f, err := libfabric.OpenFabric(o.info)
		if err != nil {
			o.info.Free()
			return nil, translate(err)
		}
		o.info.SetSizes(queueSize, queueSize)
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
	c.info.Free()
	return translate(err)
}

// translate makes an Errno of an error of libfabric.
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

// drainTime is how long what is under way may take to end before its endpoint is
// closed.
const drainTime = time.Second

const (
	idle     = 20 * time.Millisecond // longest sleep: not all that a provider has to do makes its descriptor readable
	lately   = time.Second           // after something came, this long
	watchful = time.Millisecond      // sleeps are this short
)
