package ofi

import "net/netip"

// Options choose a provider and how to use it.
type Options struct {
	// Provider is libfabric's name, such as "tcp;ofi_rxm", "shm", "verbs;ofi_rxm"
	// or "efa". Empty: package device chooses.
	Provider string
	// Domain is the interface or device, such as "eth0". Empty: the provider's
	// first one, for sockets that of the loopback, which other hosts can't reach.
	Domain string
	// Routable and Address are those of device.OFIRequest, for peers on other hosts.
	Routable bool
	Address  netip.Addr
	// Sealed authenticates every frame, because others may see what hosts send. It has to be the
	// same for all ranks.
	Sealed bool
	// Restrictions turn off features of the provider, so that a test runs by the rules
	// of another one.
	Restrictions Restrictions
}

// Restrictions turn off features that a provider may have.
type Restrictions struct {
	NoInject           bool
	NoWait             bool // no descriptor to sleep on
	NoAtomics          bool
	NoDeliveryComplete bool // no FI_DELIVERY_COMPLETE: puts are acknowledged by the target
	NoOrder            bool // sends may arrive in any order
	LocalMR            bool // local memory has to be registered
	MaxMsg             int  // longest request
}

// EFA has the rules of the EFA provider as fi_efa(7) states them.
var EFA = Restrictions{NoInject: true, NoWait: true, NoAtomics: true, NoOrder: true, LocalMR: true}
