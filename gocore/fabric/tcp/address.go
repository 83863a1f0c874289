package tcp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// Options select the addresses to listen on, and how what is sent is guarded. The zero value is
// the loopback interface, in clear.
type Options struct {
	Address   string // an IP address of this host
	Interface string // or a network interface, by name
	Hosts     bool   // or, if neither is given, all interfaces, for peers on other hosts
	// Patience, if not 0, is how long a connection may be without an acknowledgement of the
	// peer's kernel before it has broken. A kernel acknowledges also for a process that is
	// stopped.
	Patience time.Duration
	Guard    Guard // the same for all ranks
	// Connections, if more than 1, is how many connections two ranks have at most, for long
	// messages; with Measure only if it was measured that several carry more than one.
	Connections int
	Measure     bool
}

// addresses returns the addresses to listen on, the preferred one first.
func addresses(o Options) ([]netip.Addr, error) {
	switch {
	case o.Address != "" && o.Interface != "":
		return nil, fmt.Errorf("listen on address %s and on interface %s: choose one", o.Address, o.Interface)
	case o.Address != "":
		a, err := netip.ParseAddr(o.Address)
		if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
			return nil, fmt.Errorf("listen on %q: an IP address of this host is needed, such as 127.0.0.1", o.Address)
		}
		return []netip.Addr{a.Unmap()}, nil
	case o.Interface != "":
		return ofInterface(o.Interface)
	case o.Hosts:
		return []netip.Addr{netip.IPv6Unspecified(), netip.IPv4Unspecified()}, nil
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
}

// published returns the addresses at which peers reach a socket that listens at an address,
// in the order in which they should try them. Those of all hosts' addresses that lead
// nowhere, or to another host that has the same one (docker0), do no harm: a peer goes on to the
// next one, and uses none whose server can't prove that it is this rank.
func published(at netip.Addr) ([]netip.Addr, error) {
	if !at.IsUnspecified() {
		return []netip.Addr{at}, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	slices.SortStableFunc(all, func(a, b net.Interface) int { return rank(a.Name) - rank(b.Name) })
	var list []netip.Addr
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		own, _ := addressesOf(&i)
		list = append(list, own...)
	}
	if at.Is4() {
		list = slices.DeleteFunc(list, netip.Addr.Is6)
	}
	if len(list) == 0 { // the other nodes may be containers with this network
		list = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return list[:min(len(list), maxAddresses)], nil
}

// rank orders interfaces: those of hardware, then tunnels, then bridges and pairs that
// containers and virtual machines of one host use.
func rank(name string) int {
	for _, prefix := range []string{"docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "lxc", "lxd", "podman", "vmnet", "vboxnet"} {
		if strings.HasPrefix(name, prefix) {
			return 2
		}
	}
	for _, prefix := range []string{"tun", "tap", "wg", "ppp", "tailscale", "zt", "ipsec"} {
		if strings.HasPrefix(name, prefix) {
			return 1
		}
	}
	return 0
}

func names(all []net.Interface) string {
	var list []string
	for _, i := range all {
		list = append(list, i.Name)
	}
	return fmt.Sprintf("there are %q", list)
}

func ofInterface(name string) ([]netip.Addr, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		all, _ := net.Interfaces()
		host, _ := os.Hostname()
		return nil, fmt.Errorf("listen on interface %q of host %s: %s", name, host, names(all))
	}
	list, err := addressesOf(i)
	if err != nil {
		return nil, fmt.Errorf("listen on interface %s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("listen on interface %s: it has no address", name)
	}
	return list, nil
}

// addressesOf returns the addresses of an interface, those of IPv4 first.
func addressesOf(i *net.Interface) ([]netip.Addr, error) {
	list, err := i.Addrs()
	if err != nil {
		return nil, err
	}
	var four, six []netip.Addr
	for _, entry := range list {
		p, err := netip.ParsePrefix(entry.String())
		if err != nil || p.Addr().IsLinkLocalUnicast() {
			continue // a link-local address means nothing without its link
		}
		if a := p.Addr().Unmap(); a.Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	return append(four, six...), nil
}
