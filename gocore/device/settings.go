package device

import (
	"net/netip"

	"gormapy/gocore/settings"
)

// The settings of devices, for MPI and for gormapy.rdma.
var (
	IBDevice = settings.Add(settings.Setting{Name: "GORMAPY_IB_DEV", Reader: settings.ByDevices,
		Meaning: "name of the RDMA device that GORMAPY_FABRIC=verbs and gormapy.rdma use; empty: ranks of a host take turns among those with an active port that are nearest to their cores"})
	IBPort = settings.Add(settings.Setting{Name: "GORMAPY_IB_PORT", Reader: settings.ByDevices,
		Meaning: "number of its port; empty: the first active one that has an address"})
	IBGID = settings.Add(settings.Setting{Name: "GORMAPY_IB_GID", Reader: settings.ByDevices,
		Meaning: "index of the GID on that port; empty: a RoCE v2 one, with an IPv4 address if there is one, link-local last"})
	OFIProvider = settings.Add(settings.Setting{Name: "GORMAPY_OFI_PROV", Reader: settings.ByDevices,
		Meaning: "libfabric's provider for GORMAPY_FABRIC=ofi and gormapy.rdma, such as tcp;ofi_rxm (fi_info lists them); empty: the best of efa, verbs;ofi_rxm and tcp;ofi_rxm that is there"})
)

// IBSettings and OFISettings are the settings of each kind of device.
var (
	IBSettings  = []*settings.Setting{IBDevice, IBPort, IBGID}
	OFISettings = []*settings.Setting{OFIProvider}
)

// IBRequest names a port of an RDMA device, as the settings do. OpenIB chooses what is
// empty.
type IBRequest struct {
	Device string // name, such as mlx5_0
	Port   string // number, from 1
	GID    string // index in the port's table of addresses, from 0

	// SharedReceive demands shared receive queues.
	SharedReceive bool
}

// WithSettings returns r with the settings in its empty fields.
func (r IBRequest) WithSettings() IBRequest {
	r.Device = or(r.Device, IBDevice)
	r.Port = or(r.Port, IBPort)
	r.GID = or(r.GID, IBGID)
	return r
}

// OFIRequest names a provider of libfabric and the features that its user needs.
type OFIRequest struct {
	Provider string // such as "tcp;ofi_rxm"; empty: the best there is
	Domain   string // interface or device, such as "eth0"; empty: any

	// Routable says that peers are on other hosts. Then the address of an offer is the first
	// that there is of: Address, another one of the same interface, one that is neither
	// link-local nor of the loopback.
	Routable bool
	// Address is one of this host by which other hosts are reached. It need not be valid.
	Address netip.Addr
	// Ordered demands messages in order. UnboundMR demands that memory is registered with
	// no endpoint.
	Ordered, UnboundMR bool
	// NoDeliveryComplete and NoAtomics turn these features off if the provider has them.
	NoDeliveryComplete, NoAtomics bool
}

// WithSettings returns r with the settings in its empty fields.
func (r OFIRequest) WithSettings() OFIRequest {
	r.Provider = or(r.Provider, OFIProvider)
	return r
}

func or(given string, s *settings.Setting) string {
	if given != "" {
		return given
	}
	return s.Value()
}
