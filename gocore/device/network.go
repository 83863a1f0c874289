//go:build cgo

package device

import (
	"net"
	"net/netip"
	"slices"

	"gormapy/gocore/ibverbs"
)

// software are the vendors of devices that are programs, Soft-RoCE and siw: slower than the
// sockets beneath them. Older kernels say 0 for Soft-RoCE.
var software = []uint32{0, 0xffffff, 0x626d74}

// interfaceAddrs is replaced by tests.
var interfaceAddrs = net.InterfaceAddrs

// NetworkIB names the network that the devices for r are on. Hosts whose devices have the same
// name for it reach each other. The name is empty if there is no such device, if the devices are
// on several networks, if a network has no name (RoCE without an IP address of this host), and
// for a software device that r does not name.
func NetworkIB(lib *ibverbs.Library, r IBRequest) string {
	names, err := lib.Devices()
	if err != nil {
		return ""
	}
	network := ""
	for _, name := range names {
		if r.Device != "" && r.Device != name {
			continue
		}
		p, err := openIB(lib, name, r)
		if err != nil {
			continue
		}
		found := p.network()
		if r.Device == "" && slices.Contains(software, p.Device.VendorID) {
			found = ""
		}
		_ = p.Context.Close()
		if found == "" || network != "" && network != found {
			return ""
		}
		network = found
	}
	return network
}

// network names the network of a port, see NetworkIB.
func (p *OpenPort) network() string {
	if p.Attr.LinkLayer != ibverbs.LinkLayerEthernet {
		subnet := p.GID.Addr
		clear(subnet[8:]) // the number of the port
		return "InfiniBand " + GIDText(subnet)
	}
	if p.GID.Kind != roceV2 {
		return ""
	}
	addr := netip.AddrFrom16(p.GID.Addr).Unmap()
	if addr.IsLinkLocalUnicast() {
		return ""
	}
	addrs, _ := interfaceAddrs()
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr() == addr {
			return "RoCE " + prefix.Masked().String()
		}
	}
	return ""
}
