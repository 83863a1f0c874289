//go:build cgo

package verbs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gormapy/gocore/ibverbs"
)

// place is a port of an opened device, and the address used there.
type place struct {
	ctx  *ibverbs.Context
	attr ibverbs.DeviceAttr
	port int
	pa   ibverbs.PortAttr
	// gid is at index of the port's table; kind is its type, as the kernel says it.
	index int
	gid   [16]byte
	kind  string
}

func (p *place) String() string {
	return fmt.Sprintf("%s port %d, GID %d %s (%s), MTU %d", p.ctx.Name(), p.port, p.index, gidText(p.gid), p.kind,
		ibverbs.MTUBytes(p.pa.ActiveMTU))
}

// choose opens the device that o names, or one of those with an active port: the
// ranks of a host are spread over them.
func choose(lib *ibverbs.Library, rank int, o Options) (*place, error) {
	names, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	if o.Device != "" {
		return open(lib, o.Device, o)
	}
	var places []*place
	var why []error
	for _, name := range names {
		p, err := open(lib, name, o)
		if err != nil {
			why = append(why, err)
			continue
		}
		places = append(places, p)
	}
	if len(places) == 0 {
		return nil, errors.Join(why...)
	}
	chosen := places[rank%len(places)]
	for _, p := range places {
		if p != chosen {
			_ = p.ctx.Close()
		}
	}
	return chosen, nil
}

func open(lib *ibverbs.Library, name string, o Options) (*place, error) {
	ctx, err := lib.Open(name)
	if err != nil {
		return nil, err
	}
	p := &place{ctx: ctx}
	port, err := number("GORMAPY_IB_PORT", o.Port, 1)
	gid, bad := number("GORMAPY_IB_GID", o.GID, 0)
	if err = errors.Join(err, bad); err == nil {
		err = p.settle(port, gid)
	}
	if err != nil {
		_ = ctx.Close()
		return nil, err
	}
	return p, nil
}

func (p *place) settle(wanted, gid int) (err error) {
	if p.attr, err = p.ctx.Device(); err != nil {
		return err
	}
	if p.attr.MaxSRQ == 0 {
		return fmt.Errorf("%s has no shared receive queues, which this transport needs (libfabric's may do without)", p.ctx.Name())
	}
	states := []string{}
	for port := 1; port <= p.attr.Ports; port++ {
		if wanted >= 0 && wanted != port {
			continue
		}
		if p.pa, err = p.ctx.Port(port); err != nil {
			return err
		}
		if p.pa.State == ibverbs.PortActive {
			p.port = port
			return p.address(gid)
		}
		states = append(states, fmt.Sprintf("%d is %s", port, ibverbs.PortStateName(p.pa.State)))
	}
	if wanted > p.attr.Ports {
		return fmt.Errorf("%s has no port %d, it has %d", p.ctx.Name(), wanted, p.attr.Ports)
	}
	return fmt.Errorf("%w of %s: port %s", ibverbs.ErrNoPort, p.ctx.Name(), strings.Join(states, ", "))
}

// address chooses the entry of the GID table: RoCE v2 before v1, since only that
// is routed, and an address of IPv4 before others, since the link-local ones do not
// reach beyond the link.
func (p *place) address(wanted int) error {
	best := -1
	for i := range p.pa.GIDs {
		if wanted >= 0 && wanted != i {
			continue
		}
		gid, err := p.ctx.GID(p.port, i)
		if err != nil || gid == [16]byte{} {
			continue
		}
		kind := gidType(p.ctx.Name(), p.port, i, p.pa.LinkLayer)
		score := 0
		if kind == roceV2 {
			score += 4
		}
		if isIPv4(gid) {
			score += 2
		}
		if score > best {
			best, p.index, p.gid, p.kind = score, i, gid, kind
		}
	}
	if best < 0 {
		if wanted >= 0 {
			return fmt.Errorf("port %d of %s has no GID %d", p.port, p.ctx.Name(), wanted)
		}
		return fmt.Errorf("port %d of %s has no GID", p.port, p.ctx.Name())
	}
	return nil
}

const roceV2 = "RoCE v2"

// gidType is what the kernel says of an entry of the table.
func gidType(device string, port, index, link int) string {
	b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index))
	switch text := strings.TrimSpace(string(b)); {
	case link != ibverbs.LinkLayerEthernet:
		return "InfiniBand"
	case err != nil || text == "":
		return "RoCE"
	case text == roceV2:
		return roceV2
	default:
		return "RoCE v1"
	}
}

func isIPv4(gid [16]byte) bool { return [12]byte(gid[:]) == [12]byte{10: 0xff, 11: 0xff} }

func gidText(gid [16]byte) string {
	if isIPv4(gid) {
		return fmt.Sprintf("::ffff:%d.%d.%d.%d", gid[12], gid[13], gid[14], gid[15])
	}
	var parts []string
	for i := 0; i < 16; i += 2 {
		parts = append(parts, fmt.Sprintf("%x", int(gid[i])<<8|int(gid[i+1])))
	}
	return strings.Join(parts, ":")
}
