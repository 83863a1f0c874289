//go:build cgo

package device

import (
	"net"
	"net/netip"
	"slices"
)

// # Addresses of offers
//
// A provider over IP addresses makes an offer for each address of the host, and an endpoint is
// bound to one of them.

// IP returns the IP address of an offer, no valid one if it has another kind of address.
func (o *Offer) IP() netip.Addr {
	const sockaddrIn, sockaddrIn6 = 2, 3 // FI_SOCKADDR_IN and FI_SOCKADDR_IN6
	var a netip.Addr
	switch b := o.Info.SourceAddress; {
	case o.Info.AddressFormat == sockaddrIn && len(b) >= 8:
		a, _ = netip.AddrFromSlice(b[4:8])
	case o.Info.AddressFormat == sockaddrIn6 && len(b) >= 24:
		a, _ = netip.AddrFromSlice(b[8:24])
	}
	return a.Unmap()
}

// order puts those offers first whose addresses are best for r. Others stay as they are.
func (r OFIRequest) order(offers []*Offer) {
	var beside []netip.Addr
	if r.Routable && r.Address.IsValid() {
		beside = besides(r.Address)
	}
	slices.SortStableFunc(offers, func(a, b *Offer) int { return r.preference(a.IP(), beside) - r.preference(b.IP(), beside) })
}

// preference returns the place of an offer with address a in the order of OFIRequest.Routable.
// beside are the addresses of the interface of r.Address.
func (r OFIRequest) preference(a netip.Addr, beside []netip.Addr) int {
	switch {
	case !r.Routable && r.Domain != "" || !a.IsValid():
		return 2
	case !r.Routable && a.IsLoopback():
		return 0
	case !r.Routable:
		return 2
	case a == r.Address:
		return 0
	case a.IsLinkLocalUnicast():
		return 3
	case a.IsLoopback():
		return 4
	case slices.Contains(beside, a):
		return 1
	}
	return 2
}

// besides returns the addresses of the interface that has address a.
func besides(a netip.Addr) []netip.Addr {
	all, err := net.Interfaces()
	if err != nil {
		return nil // only a preference depends on it
	}
	for i := range all {
		if list := addressesOf(&all[i]); slices.Contains(list, a) {
			return list
		}
	}
	return nil
}

func addressesOf(i *net.Interface) (list []netip.Addr) {
	entries, _ := i.Addrs() // it fails if the interface has just been removed
	for _, entry := range entries {
		if p, err := netip.ParsePrefix(entry.String()); err == nil {
			list = append(list, p.Addr().Unmap())
		}
	}
	return list
}
