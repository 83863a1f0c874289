//go:build cgo

package device

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/ibverbs"
	"gormapy/gocore/ibverbs/double"
)

func library(t *testing.T) *ibverbs.Library {
	t.Helper()
	double.Reset()
	t.Cleanup(double.Reset)
	lib, err := double.Library()
	require.NoError(t, err)
	return lib
}

func gid(text string) (g [16]byte) {
	switch text {
	case "link-local":
		g[0], g[1], g[15] = 0xfe, 0x80, 1
	case "IPv6":
		g[0], g[1], g[15] = 0x20, 0x01, 2
	case "IPv4":
		g[10], g[11], g[12], g[15] = 0xff, 0xff, 10, 3
	}
	return g
}

// The one rule for ports and addresses, on ports that the double does not have.
func TestPortAndAddress(t *testing.T) {
	c, err := library(t).Open("double0")
	require.NoError(t, err)
	defer c.Close()
	table := func(entries ...string) (gids []GID) {
		for i := 0; i < len(entries); i += 2 {
			gids = append(gids, GID{i / 2, gid(entries[i]), entries[i+1]})
		}
		return gids
	}
	const down, active, ethernet, infiniband = 1, ibverbs.PortActive, ibverbs.LinkLayerEthernet, 1
	port := func(state, link int, lid uint16, gids []GID) PortInfo {
		return PortInfo{Attr: ibverbs.PortAttr{State: state, LinkLayer: link, LID: lid}, GIDs: gids}
	}
	some := table("link-local", "RoCE v2")
	for _, x := range []struct {
		name    string
		request IBRequest
		ports   []PortInfo
		port    int
		gid     int
		problem string
	}{
		{name: "link-local last", ports: []PortInfo{port(active, ethernet, 0, table("link-local", "RoCE v2", "IPv6", "RoCE v2"))}, port: 1, gid: 1},
		{name: "IPv4 before IPv6", ports: []PortInfo{port(active, ethernet, 0, table("IPv6", "RoCE v2", "IPv4", "RoCE v2", "IPv6", "RoCE v2"))}, port: 1, gid: 1},
		{name: "v2 before all", ports: []PortInfo{port(active, ethernet, 0, table("IPv4", "RoCE v1", "link-local", "RoCE v2"))}, port: 1, gid: 1},
		{name: "the lowest", ports: []PortInfo{port(active, ethernet, 0, table("IPv4", "RoCE v2", "IPv4", "RoCE v2"))}, port: 1, gid: 0},
		{name: "active", ports: []PortInfo{port(down, ethernet, 0, some), port(active, ethernet, 0, some)}, port: 2, gid: 0},
		{name: "with an address", ports: []PortInfo{port(active, ethernet, 0, nil), port(active, ethernet, 0, some)}, port: 2, gid: 0},
		{name: "no address", ports: []PortInfo{port(active, ethernet, 5, nil)}, problem: "port 1 of double0 has no GID"},
		{name: "a LID is one", ports: []PortInfo{port(active, infiniband, 5, nil)}, port: 1, gid: -1},
		{name: "LID 0 is none", ports: []PortInfo{port(active, infiniband, 0, nil)}, problem: "port 1 of double0 has no GID"},
		{name: "named port", request: IBRequest{Port: "2"}, ports: []PortInfo{port(active, ethernet, 0, some), port(active, ethernet, 0, some)}, port: 2, gid: 0},
		{name: "named port is down", request: IBRequest{Port: "2"}, ports: []PortInfo{port(active, ethernet, 0, some), port(down, ethernet, 0, some)}, problem: "port 2 is DOWN"},
		{name: "named GID", request: IBRequest{GID: "0"}, ports: []PortInfo{port(active, ethernet, 0, table("link-local", "RoCE v1", "IPv4", "RoCE v2"))}, port: 1, gid: 0},
		{name: "GID that is not there", request: IBRequest{GID: "7"}, ports: []PortInfo{port(active, infiniband, 5, nil)}, problem: "port 1 of double0 has no GID 7"},
		{name: "port that is not there", request: IBRequest{Port: "3"}, ports: []PortInfo{port(active, ethernet, 0, some)}, problem: "double0 has no port 3, it has 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := &IB{Context: c, Device: ibverbs.DeviceAttr{Ports: len(x.ports), MaxSRQ: 1}, Ports: x.ports}
			for i := range d.Ports {
				d.Ports[i].Num = i + 1
			}
			p, err := d.Choose(x.request)
			if x.problem != "" {
				require.ErrorContains(t, err, x.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []int{x.port, x.gid}, []int{p.Num, p.GID.Index})
			remote := p.Peer(9, gid("IPv4"), 3)
			assert.Equal(t, p.Attr.LinkLayer == ethernet, remote.Global)
			assert.True(t, p.Peer(0, gid("IPv4"), 3).Global, "nobody has LID 0")
		})
	}
	_, err = (&IB{Context: c}).Choose(IBRequest{SharedReceive: true})
	assert.ErrorContains(t, err, "no shared receive queues")
}

func TestTurns(t *testing.T) {
	lib := library(t)
	for turn, name := range []string{"double0", "double1", "double0"} {
		p, err := OpenIB(lib, IBRequest{}, turn)
		require.NoError(t, err)
		assert.Equal(t, name, p.Context.Name())
		require.NoError(t, p.Context.Close())
	}
	assert.Zero(t, double.Count(double.Objects))
}

// Errors say what was asked for, what there is, and what to do.
func TestUnavailableDevice(t *testing.T) {
	lib := library(t)
	_, err := OpenIB(lib, IBRequest{Device: "mlx5_0", Port: "2"}, 0)
	assert.EqualError(t, err, `asked for RDMA device "mlx5_0", port 2: there is no RDMA device of that name; there is double0, double1; `+
		`GORMAPY_IB_DEV, GORMAPY_IB_PORT and GORMAPY_IB_GID name a device, a port and a GID; python -m gormapy.rdma devices lists them`)
	assert.ErrorIs(t, err, ibverbs.ErrNoDevice)
	_, err = OpenIB(lib, IBRequest{Port: "first"}, 0)
	assert.EqualError(t, err, `GORMAPY_IB_PORT="first" is not a number from 1`)
	double.Fault(double.Down, 1)
	_, err = OpenIB(lib, IBRequest{}, 0)
	assert.ErrorIs(t, err, ibverbs.ErrNoPort)
	assert.ErrorContains(t, err, "no RDMA port is active of double0: port 1 is DOWN, no RDMA port is active of double1: port 1 is DOWN; there is double0, double1; ")
	assert.NotContains(t, err.Error(), "\n")
	assert.Zero(t, double.Count(double.Objects), "a device is left open")
}

func TestSettingsFillWhatIsEmpty(t *testing.T) {
	t.Setenv(IBDevice.Name, "double1")
	t.Setenv(IBPort.Name, "1")
	t.Setenv(IBGID.Name, "0")
	t.Setenv(OFIProvider.Name, "shm")
	assert.Equal(t, IBRequest{Device: "double1", Port: "1", GID: "0"}, IBRequest{}.WithSettings())
	assert.Equal(t, IBRequest{Device: "double0", Port: "1", GID: "1"}, IBRequest{Device: "double0", GID: "1"}.WithSettings())
	assert.Equal(t, OFIRequest{Provider: "shm"}, OFIRequest{}.WithSettings())
	assert.Equal(t, OFIRequest{Provider: "tcp"}, OFIRequest{Provider: "tcp"}.WithSettings())
}

// A registration that the device refuses is tried again in a form that the device can do.
func TestRegisterIB(t *testing.T) {
	p, err := OpenIB(library(t), IBRequest{}, 0)
	require.NoError(t, err)
	defer p.Context.Close()
	pd, err := p.Context.AllocPD()
	require.NoError(t, err)
	defer pd.Close()
	register := func(addr uintptr, n int) (*ibverbs.MR, error) { return p.Register(pd, addr, n, AllAccess) }
	s, err := NewSlab(4, 64, "cells", register)
	require.NoError(t, err)
	assert.EqualValues(t, AllAccess, s.MR.Access())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())

	double.Fault(double.NoAtomicKeys, int(syscall.EOPNOTSUPP))
	s, err = NewSlab(4, 64, "cells", register)
	require.NoError(t, err)
	assert.EqualValues(t, AllAccess&^ibverbs.RemoteAtomic, s.MR.Access())
	require.NoError(t, s.Close())
	double.Fault(double.NoAtomicKeys, 0)

	double.Fault(double.ODP, 1)
	_, err = NewSlab(4, 64, "cells", register)
	assert.ErrorContains(t, err, "register cells: ibv_reg_mr")
	p.Device.OnDemand = true
	s, err = NewSlab(4, 64, "cells", register)
	require.NoError(t, err)
	assert.NotZero(t, s.MR.Access()&ibverbs.OnDemand)
	require.NoError(t, s.Close())
	assert.Zero(t, double.Count(double.Regions))
}

// flagsOf returns the kernel's flags of the mapping at addr (VmFlags of proc(5)).
func flagsOf(t *testing.T, addr uint64) []string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= addr && addr < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return strings.Fields(flags)
		}
	}
	require.Fail(t, "it is not mapped", "%#x", addr)
	return nil
}

func TestSlab(t *testing.T) {
	m, err := Map[*ibverbs.MR](4096, "frames", nil)
	require.NoError(t, err)
	a, b := m.Cut(0, 3, 64), m.Cut(3*64, 2, 128)
	seen := map[uint64]bool{}
	for range 3 {
		i := a.Take()
		require.GreaterOrEqual(t, i, int32(0))
		assert.Len(t, a.Bytes(i), 64)
		assert.EqualValues(t, a.Addr(i), uintptr(a.At(i)))
		seen[a.Addr(i)] = true
	}
	assert.Len(t, seen, 3)
	assert.EqualValues(t, -1, a.Take())
	assert.Zero(t, a.Free())
	a.Give(2)
	assert.EqualValues(t, 2, a.Take())
	assert.Equal(t, a.Addr(2)+64, b.Addr(0), "one lies behind the other")
	assert.Panics(t, func() { m.Cut(4096-64, 2, 64) })

	assert.Contains(t, flagsOf(t, a.Addr(0)), "dc", "a child of fork gets it (no MADV_DONTFORK)")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, m.Unmap())
}
