//go:build cgo

package ofi

import (
	"fmt"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// choose finds a provider for o.
func choose(o Options) (*device.Offer, error) {
	return device.ChooseOFI(device.OFIRequest{
		Provider: o.Provider, Domain: o.Domain, Routable: o.Routable, Address: o.Address,
		NoDeliveryComplete: o.Restrictions.NoDeliveryComplete, NoAtomics: o.Restrictions.NoAtomics,
	})
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
		return nil, fmt.Errorf("open provider %s on %s: %w", c.Info.Provider, c.Info.Domain, err)
	}
	if t.cq.FD >= 0 {
		s, err := newSleeper(t)
		if err != nil {
			_ = t.Close()
			return nil, fmt.Errorf("sleep on the queue of provider %s: %w", c.Info.Provider, err)
		}
		return s, nil
	}
	return t, nil
}

// Problem returns why there can be no transport on this machine, "" if there can.
func Problem(o Options) string {
	c, err := choose(o)
	if err != nil {
		return err.Error()
	}
	c.Info.Free()
	return ""
}

// between names the network of the provider that o would use, see fabric.Entry: that of EFA, which
// other transports do not reach. What the other providers run on, tcp and verbs use, too.
func between(o Options) string {
	if o.Provider == "" {
		o.Provider = efa
	}
	if o.Provider != efa || Problem(o) != "" {
		return ""
	}
	return efa
}

const efa = "efa"
