//go:build cgo

package device

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"gormapy/gocore/ibverbs"
	"gormapy/gocore/sys"
)

// IB is an opened RDMA device with its attributes.
type IB struct {
	Context *ibverbs.Context
	Device  ibverbs.DeviceAttr
	Ports   []PortInfo // from number 1 on
}

// PortInfo is a port of a device with its addresses.
type PortInfo struct {
	Num  int
	Attr ibverbs.PortAttr
	GIDs []GID
}

// GID is an entry of a port's table of addresses.
type GID struct {
	Index int
	Addr  [16]byte
	Kind  string // InfiniBand, RoCE v1, RoCE v2, or RoCE if the kernel does not say
}

const roceV2 = "RoCE v2"

func (g GID) String() string { return GIDText(g.Addr) + " (" + g.Kind + ")" }

// GIDText returns a GID written as an IPv6 address: ::ffff:10.0.0.1, fe80::1.
func GIDText(gid [16]byte) string { return netip.AddrFrom16(gid).String() }

// preference returns the rank of a GID in the order of the package comment.
func (g GID) preference() int {
	n := 0
	if g.Kind == roceV2 {
		n += 4
	}
	switch a := netip.AddrFrom16(g.Addr); {
	case a.Is4In6():
		n += 2
	case !a.IsLinkLocalUnicast():
		n++
	}
	return n
}

// InspectIB queries an opened device. On an error it leaves the device open.
func InspectIB(c *ibverbs.Context) (*IB, error) {
	d := &IB{Context: c}
	var err error
	if d.Device, err = c.Device(); err != nil {
		return nil, err
	}
	for n := 1; n <= d.Device.Ports; n++ {
		p := PortInfo{Num: n}
		if p.Attr, err = c.Port(n); err != nil {
			return nil, err
		}
		for i := range p.Attr.GIDs {
			gid, err := c.GID(n, i)
			if err != nil || gid == [16]byte{} {
				continue
			}
			p.GIDs = append(p.GIDs, GID{i, gid, gidKind(c.Name(), n, i, p.Attr.LinkLayer)})
		}
		d.Ports = append(d.Ports, p)
	}
	return d, nil
}

// gidKind returns the kind of an entry of the table, from the kernel.
func gidKind(device string, port, index, link int) string {
	if link != ibverbs.LinkLayerEthernet {
		return "InfiniBand"
	}
	b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index))
	switch text := strings.TrimSpace(string(b)); {
	case err != nil || text == "":
		return "RoCE"
	case text == roceV2:
		return roceV2
	default:
		return "RoCE v1"
	}
}

// String returns the device's name and the states of its ports.
func (d *IB) String() string {
	var ports []string
	for _, p := range d.Ports {
		ports = append(ports, fmt.Sprintf("port %d is %s", p.Num, ibverbs.PortStateName(p.Attr.State)))
	}
	return d.Context.Name() + ": " + strings.Join(ports, ", ")
}

// OpenPort is a port of an opened device, and the address that is used there.
type OpenPort struct {
	*IB
	Num  int
	Attr ibverbs.PortAttr
	GID  GID // with index -1 if the port has only a LID
}

func (p *OpenPort) String() string {
	address := fmt.Sprintf("LID %d", p.Attr.LID)
	if p.GID.Index >= 0 {
		address = fmt.Sprintf("GID %d %v", p.GID.Index, p.GID)
	}
	return fmt.Sprintf("%s port %d, %s, MTU %d", p.Context.Name(), p.Num, address, ibverbs.MTUBytes(p.Attr.ActiveMTU))
}

// Choose returns the port and address that r asks for. It ignores r.Device.
func (d *IB) Choose(r IBRequest) (*OpenPort, error) {
	port, gid, err := r.numbers()
	if err != nil {
		return nil, err
	}
	name := d.Context.Name()
	if r.SharedReceive && d.Device.MaxSRQ == 0 {
		return nil, fmt.Errorf("%s has no shared receive queues, which this transport needs (libfabric's may do without)", name)
	}
	if port > d.Device.Ports {
		return nil, fmt.Errorf("%s has no port %d, it has %d", name, port, d.Device.Ports)
	}
	err = fmt.Errorf("%w of %v", ibverbs.ErrNoPort, d)
	for i := range d.Ports {
		info := &d.Ports[i]
		if port >= 0 && port != info.Num || info.Attr.State != ibverbs.PortActive {
			continue
		}
		if p, ok := d.address(info, gid); ok {
			return p, nil
		}
		err = fmt.Errorf("port %d of %s has no GID", info.Num, name)
		if gid >= 0 {
			err = fmt.Errorf("port %d of %s has no GID %d", info.Num, name, gid)
		}
	}
	return nil, err
}

// address chooses an entry of a port's table of addresses. If wanted is -1, any will do.
func (d *IB) address(info *PortInfo, wanted int) (*OpenPort, bool) {
	p := &OpenPort{IB: d, Num: info.Num, Attr: info.Attr, GID: GID{Index: -1}}
	best := -1
	for _, g := range info.GIDs {
		if wanted >= 0 && wanted != g.Index {
			continue
		}
		if n := g.preference(); n > best {
			best, p.GID = n, g
		}
	}
	lid := info.Attr.LinkLayer != ibverbs.LinkLayerEthernet && info.Attr.LID != 0
	return p, p.GID.Index >= 0 || wanted < 0 && lid
}

// numbers returns the port and the GID index that r asks for, -1 for any.
func (r IBRequest) numbers() (port, gid int, err error) {
	if port, err = number(IBPort.Name, r.Port, 1); err == nil {
		gid, err = number(IBGID.Name, r.GID, 0)
	}
	return port, gid, err
}

// number returns a setting's value as a number from lowest on, -1 if it is empty.
func number(name, value string, lowest int) (int, error) {
	if value == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < lowest || n > 65535 {
		return 0, fmt.Errorf("%s=%q is not a number from %d", name, value, lowest)
	}
	return n, nil
}

// OpenIB opens the device that r asks for. If r names none, it chooses among the nearest of those
// with a port for r. number is that of the process among those of its host that choose.
func OpenIB(lib *ibverbs.Library, r IBRequest, number int) (*OpenPort, error) {
	if _, _, err := r.numbers(); err != nil {
		return nil, err
	}
	names, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	wanted := names
	if r.Device != "" {
		wanted = []string{r.Device}
		if !slices.Contains(names, r.Device) {
			return nil, r.unavailable(names, fmt.Errorf("%w of that name", ibverbs.ErrNoDevice))
		}
	}
	var ports []*OpenPort
	var why []error
	for _, name := range wanted {
		p, err := openIB(lib, name, r)
		if err != nil {
			why = append(why, err)
			continue
		}
		ports = append(ports, p)
	}
	if len(ports) == 0 {
		return nil, r.unavailable(names, joined(why))
	}
	var usable []string
	for _, p := range ports {
		usable = append(usable, p.Context.Name())
	}
	near, turn := nearest(sysfs, usable, sys.Allowed(), number)
	chosen := ports[slices.Index(usable, near[turn])]
	for _, p := range ports {
		if p != chosen {
			_ = p.Context.Close()
		}
	}
	return chosen, nil
}

func openIB(lib *ibverbs.Library, name string, r IBRequest) (p *OpenPort, err error) {
	c, err := lib.Open(name)
	if err != nil {
		return nil, err
	}
	d, err := InspectIB(c)
	if err == nil {
		p, err = d.Choose(r)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return p, nil
}

// joined does what errors.Join does, in one line of text.
func joined(errs []error) error {
	list := make([]any, len(errs))
	for i, err := range errs {
		list[i] = err
	}
	return fmt.Errorf(strings.TrimSuffix(strings.Repeat("%w, ", len(errs)), ", "), list...)
}

func (r IBRequest) unavailable(found []string, why error) error {
	asked := "an RDMA device with an active port"
	if r.Device != "" {
		asked = fmt.Sprintf("RDMA device %q", r.Device)
	}
	if r.Port != "" {
		asked += ", port " + r.Port
	}
	if r.GID != "" {
		asked += ", GID " + r.GID
	}
	return &Unavailable{
		Asked: asked, Found: found, Err: why,
		Advice: fmt.Sprintf("%s, %s and %s name a device, a port and a GID; python -m gormapy.rdma devices lists them", IBDevice.Name, IBPort.Name, IBGID.Name),
	}
}

// Depth returns how many reads and atomics a queue pair of the device may have under way,
// and answers at a time.
func (d *IB) Depth() int {
	return max(1, min(maxDepth, d.Device.MaxInitAtomic, d.Device.MaxRDAtomic))
}

const maxDepth = 16

// Retries is how often a request that the peer does not acknowledge is sent again. The
// maximum, 7, makes Soft-RoCE retry for ever.
const Retries = 6

// QPAccess returns the accesses of peers through a queue pair: all that the device can do.
func (d *IB) QPAccess() ibverbs.Access {
	if d.Device.AtomicCap == ibverbs.AtomicNone {
		return AllAccess &^ ibverbs.RemoteAtomic
	}
	return AllAccess
}

// Peer returns how to reach the peer with this address from p. mtu is the peer's.
func (p *OpenPort) Peer(lid uint16, gid [16]byte, mtu int) ibverbs.Remote {
	return ibverbs.Remote{
		LID: lid, GID: gid, MTU: min(mtu, p.Attr.ActiveMTU), SGIDIndex: max(p.GID.Index, 0),
		// On InfiniBand only peers without a LID need a GID.
		Global: p.Attr.LinkLayer == ibverbs.LinkLayerEthernet || lid == 0,
	}
}

// Register registers n bytes at addr, see the package comment.
func (d *IB) Register(pd *ibverbs.PD, addr uintptr, n int, access Access) (*ibverbs.MR, error) {
	mr, err := pd.Register(uint64(addr), n, access)
	if err == nil || !d.Device.OnDemand {
		return mr, err
	}
	if !d.Device.OnDemandAtomic {
		access &^= ibverbs.RemoteAtomic
	}
	if paged, again := pd.Register(uint64(addr), n, access|ibverbs.OnDemand); again == nil {
		return paged, nil
	}
	return nil, err
}
