package agent

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// findAddress records the address of this node, as soon as a link has one, see the package
// comment.
func (a *Agent) findAddress() {
	if a.seg.Address().IsValid() {
		return
	}
	for _, l := range a.links {
		if here, ok := localEnd(a.net.Describe(l.peer)); ok && !l.over {
			a.seg.SetAddress(onInterface(here, addressesOf(a.iface)))
			return
		}
	}
}

// localEnd returns the address of this host in the description of a connection: that of
// 10.0.0.1:33531 to 10.0.0.2:53162 is 10.0.0.1.
func localEnd(described string) (netip.Addr, bool) {
	here, _, connected := strings.Cut(described, " to ")
	at, err := netip.ParseAddrPort(here)
	return at.Addr().Unmap(), connected && err == nil
}

// onInterface returns the address of a link's end, or, if it is not one of the interface that
// the agent was told to use, one of these: the kernel chooses where a connection to another host
// begins. list is empty if the agent was told none.
func onInterface(here netip.Addr, list []netip.Addr) netip.Addr {
	if slices.Contains(list, here) {
		return here
	}
	for _, a := range list {
		if a.Is4() == here.Is4() && !a.IsLinkLocalUnicast() {
			return a
		}
	}
	return here
}

// addressesOf returns the addresses of a network interface.
func addressesOf(name string) (list []netip.Addr) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil // none was given, or it has just gone
	}
	entries, _ := i.Addrs()
	for _, entry := range entries {
		if p, err := netip.ParsePrefix(entry.String()); err == nil {
			list = append(list, p.Addr().Unmap())
		}
	}
	return list
}
