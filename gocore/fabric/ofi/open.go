//go:build cgo

package ofi

import (
	"errors"
	"fmt"
	"strings"

	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// preferred are the providers that are taken without being asked for. The others
// are slower ways to the same networks (sockets, udp), or reach one host (shm).
var preferred = []string{"efa", "verbs;ofi_rxm", "tcp;ofi_rxm"}

// wishes are asked for in turn: first what only costs more here without it.
var wishes = []libfabric.Hints{
	{Caps: libfabric.CapAtomic, Order: libfabric.OrderSAS, TxFlags: libfabric.DeliveryComplete},
	{Order: libfabric.OrderSAS, TxFlags: libfabric.DeliveryComplete},
	{TxFlags: libfabric.DeliveryComplete},
	{Caps: libfabric.CapAtomic, Order: libfabric.OrderSAS},
	{Order: libfabric.OrderSAS},
	{},
}

// choice is a provider's offer and what was asked for.
type choice struct {
	info                     *libfabric.Info
	delivery, order, atomics bool
}

func choose(o Options) (*choice, error) {
	names := preferred
	if o.Provider != "" {
		names = []string{o.Provider}
	}
	for _, name := range names {
		c, err := chooseOf(name, o)
		if err != nil || c != nil {
			return c, err
		}
	}
	what := "any of " + strings.Join(preferred, ", ")
	if o.Provider != "" {
		what = "provider " + o.Provider
	}
	if o.Domain != "" {
		what += " on " + o.Domain
	}
	there := strings.Join(libfabric.Providers(), ", ")
	if there == "" {
		there = "none"
	}
	return nil, fmt.Errorf("libfabric has no %s with reliable datagrams, messages and RMA; it has %s", what, there)
}

// chooseOf is nil if the provider is not there.
func chooseOf(name string, o Options) (*choice, error) {
	for _, h := range wishes {
		if o.Restrictions.NoDelivery && h.TxFlags != 0 || o.Restrictions.NoAtomics && h.Caps != 0 {
			continue
		}
		c := &choice{delivery: h.TxFlags != 0, order: h.Order != 0, atomics: h.Caps != 0}
		h.Provider, h.Domain = name, o.Domain
		h.Caps |= libfabric.CapMsg | libfabric.CapRMA
		infos, err := libfabric.GetInfo(h)
		if errors.Is(err, libfabric.ErrNoProvider) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask libfabric for provider %s: %w", name, err)
		}
		c.info = pick(infos, name, o)
		for _, i := range infos {
			if i != c.info {
				i.Free()
			}
		}
		if c.info != nil {
			return c, nil
		}
	}
	return nil, nil
}

// pick takes one of a provider's offers. The library orders them by speed, and
// then interfaces as they come.
func pick(infos []*libfabric.Info, name string, o Options) *libfabric.Info {
	var best *libfabric.Info
	for _, i := range infos {
		if !strings.EqualFold(i.Provider, name) {
			continue // it adds layers and other providers of a similar name
		}
		if best == nil {
			best = i
		}
		if o.Domain == "" && !o.Everywhere && loopback(i) {
			return i
		}
	}
	if best == nil && len(infos) > 0 && !strings.Contains(name, ";") {
		// "verbs" is taken for "verbs;ofi_rxm" by the library itself.
		for _, i := range infos {
			if strings.HasPrefix(strings.ToLower(i.Provider), strings.ToLower(name)+";") {
				return i
			}
		}
	}
	return best
}

// loopback reports whether the offer's address is 127.0.0.1: a sockaddr_in of that
// address, in the network's byte order.
func loopback(i *libfabric.Info) bool {
	const sockaddrIn = 2 // FI_SOCKADDR_IN
	a := i.SourceAddress
	return i.AddressFormat == sockaddrIn && len(a) >= 8 && a[4] == 127
}

// New makes the transport of the rank that dir belongs to.
func New(dir fabric.Directory, o Options) (fabric.Transport, error) {
	if _, err := libfabric.Open(libfabric.Defaults{Universe: max(2, dir.Size())}); err != nil {
		return nil, err
	}
	c, err := choose(o)
	if err != nil {
		return nil, err
	}
	t, err := newTransport(dir, o, c)
	if err != nil {
		return nil, fmt.Errorf("open provider %s on %s: %w", c.info.Provider, c.info.Domain, err)
	}
	if t.cq.FD >= 0 {
		s, err := newSleeper(t)
		if err != nil {
			_ = t.Close()
			return nil, fmt.Errorf("sleep on the queue of provider %s: %w", c.info.Provider, err)
		}
		return s, nil
	}
	return t, nil
}

// Problem says why there can be no transport on this machine, nothing if there can.
func Problem(o Options) string {
	_, err := libfabric.Open(libfabric.Defaults{})
	if err == nil {
		var c *choice
		if c, err = choose(o); err == nil {
			c.info.Free()
			return ""
		}
	}
	return err.Error()
}
