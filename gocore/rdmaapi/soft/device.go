package soft

import (
	"fmt"
	"net"
	"strings"

	"gormapy/gocore/rdmaapi/backend"
)

// Backend is tcp or shm.
type Backend struct{ kind string }

// TCP and SHM are the two back ends of this package.
var (
	TCP = Backend{"tcp"}
	SHM = Backend{"shm"}
)

// Name implements backend.Backend.
func (b Backend) Name() string { return b.kind }

var limits = backend.Limits{
	MaxQP: 1 << 20, MaxQPWR: 1 << 16, MaxCQ: 1 << 20, MaxCQE: 1 << 22, MaxMR: 1 << 24, MaxMRSize: 1 << 46, MaxPD: 1 << 20,
	MaxInline: 4096, MaxQPRdAtomic: 1 << 16, Atomics: true, Immediate: true,
}

// Devices returns, for tcp, a device for each network interface that has an address,
// the loopback interface first; for shm there is one device.
func (b Backend) Devices() ([]backend.Device, error) {
	if b.kind == "shm" {
		return []backend.Device{{
			Name: "shm0", Backend: "shm", Detail: "software, processes on this host", Limits: limits,
			Ports: []backend.Port{{
				Num: 1, State: "ACTIVE", LinkLayer: "memory", MTU: segment, MaxMessage: maxMessage, Addresses: []string{"local"},
			}},
		}}, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var loop, other []backend.Device
	for _, i := range all {
		addrs := addresses(i)
		if len(addrs) == 0 {
			continue
		}
		state := "DOWN"
		if i.Flags&net.FlagUp != 0 {
			state = "ACTIVE"
		}
		d := backend.Device{
			Backend: "tcp", Detail: "software, interface " + i.Name, GUID: i.HardwareAddr.String(), Limits: limits,
			Ports: []backend.Port{{
				Num: 1, State: state, LinkLayer: "TCP", MTU: i.MTU, MaxMessage: maxMessage, Addresses: addrs,
			}},
		}
		if i.Flags&net.FlagLoopback != 0 {
			loop = append(loop, d)
		} else {
			other = append(other, d)
		}
	}
	devices := append(loop, other...)
	for i := range devices {
		devices[i].Name = fmt.Sprintf("tcp%d", i)
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("no network interface has an address: is the loopback interface up?")
	}
	return devices, nil
}

// addresses returns the addresses of an interface that peers can dial, without
// link-local ones.
func addresses(i net.Interface) []string {
	addrs, err := i.Addrs()
	if err != nil {
		return nil
	}
	var v4, v6 []string
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		if ip.IP.To4() != nil {
			v4 = append(v4, ip.IP.String())
		} else {
			v6 = append(v6, ip.IP.String())
		}
	}
	return append(v4, v6...)
}

// Open implements backend.Backend.
func (b Backend) Open(name string) (backend.Context, error) {
	devices, err := b.Devices()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range devices {
		if d.Name == name {
			return open(b.kind, d)
		}
		names = append(names, d.Name)
	}
	return nil, &backend.Errno{Name: "ENODEV", Text: fmt.Sprintf("there is no device %q; there are: %s", name, strings.Join(names, ", "))}
}
