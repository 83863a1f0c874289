//go:build cgo

package device

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/ibverbs"
)

// Two ports are taken for connected only if that is known.
func TestNetworkOfPort(t *testing.T) {
	addrs := interfaceAddrs
	t.Cleanup(func() { interfaceAddrs = addrs })
	interfaceAddrs = func() ([]net.Addr, error) {
		var list []net.Addr
		for _, text := range []string{"10.0.0.3/16", "2001::2/64", "fe80::1/64", "127.0.0.1/8"} {
			ip, n, err := net.ParseCIDR(text)
			if err != nil {
				return nil, err
			}
			list = append(list, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return list, nil
	}
	ipv4, ipv6 := gid("IPv4"), gid("IPv6")
	ipv4[11], ipv4[12], ipv4[13], ipv4[14], ipv4[15] = 0xff, 10, 0, 0, 3
	ipv6 = [16]byte{0x20, 0x01, 15: 2}
	far := ipv4
	far[15] = 9
	infiniband := [16]byte{0xfe, 0x80, 7: 5, 15: 77}
	for _, c := range []struct {
		name string
		link int
		gid  GID
		want string
	}{
		{"IPv4", ibverbs.LinkLayerEthernet, GID{0, ipv4, roceV2}, "RoCE 10.0.0.0/16"},
		{"IPv6", ibverbs.LinkLayerEthernet, GID{0, ipv6, roceV2}, "RoCE 2001::/64"},
		{"link-local", ibverbs.LinkLayerEthernet, GID{0, gid("link-local"), roceV2}, ""},
		{"no address of this host", ibverbs.LinkLayerEthernet, GID{0, far, roceV2}, ""},
		{"version 1", ibverbs.LinkLayerEthernet, GID{0, ipv4, "RoCE v1"}, ""},
		{"InfiniBand", 1, GID{0, infiniband, "InfiniBand"}, "InfiniBand fe80:0:0:5::"},
	} {
		p := &OpenPort{Attr: ibverbs.PortAttr{LinkLayer: c.link}, GID: c.gid}
		assert.Equal(t, c.want, p.network(), c.name)
	}
}

// A device without a vendor is software, and has to be named.
func TestNetworkOfDevices(t *testing.T) {
	lib := library(t)
	assert.Empty(t, NetworkIB(lib, IBRequest{}))
	assert.Empty(t, NetworkIB(lib, IBRequest{Device: "none"}))
}
