//go:build cgo

package verbs

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/device"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/ibverbs/double"
	"gormapy/gocore/rdmaapi/backend"
)

func library(t *testing.T) *ibverbs.Library {
	t.Helper()
	double.Reset()
	t.Cleanup(func() {
		assert.Zero(t, double.Count(double.Objects), "something is left open")
		double.Reset()
	})
	lib, err := double.Library()
	require.NoError(t, err)
	return lib
}

func TestDevices(t *testing.T) {
	list, err := devices(library(t))
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, "double1", list[1].Name)
	require.Len(t, list[1].Ports, 1)
	assert.Equal(t, "ACTIVE", list[1].Ports[0].State)
	assert.Equal(t, []string{"fe80::1 (RoCE)", "::ffff:10.0.0.2 (RoCE)"}, list[1].Ports[0].Addresses)
}

// The settings name the device if the program does not, and port and GID.
func TestSettings(t *testing.T) {
	lib := library(t)
	name, err := choose(lib)
	require.NoError(t, err)
	assert.Equal(t, "double0", name)
	t.Setenv(device.IBDevice.Name, "double1")
	name, err = choose(lib)
	require.NoError(t, err)
	assert.Equal(t, "double1", name)
	t.Setenv(device.IBGID.Name, "0")
	c, err := open(lib, "double0")
	require.NoError(t, err, "the program names another device")
	assert.Equal(t, "double0", c.Device().Name)
	assert.Equal(t, 0, c.(*context).port.GID.Index)
	require.NoError(t, c.Close())
	t.Setenv(device.IBPort.Name, "2")
	var refused *backend.Errno
	_, err = open(lib, "double0")
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "ENODEV", refused.Name)
	assert.ErrorContains(t, err, `asked for RDMA device "double0", port 2, GID 0: double0 has no port 2, it has 1; there is double0, double1; GORMAPY_IB_DEV`)
	_, err = choose(lib)
	assert.ErrorContains(t, err, `asked for RDMA device "double1", port 2`, "never silently another one")
	t.Setenv(device.IBDevice.Name, "")
	t.Setenv(device.IBPort.Name, "")
	t.Setenv(device.IBGID.Name, "")
	double.Fault(double.Down, 1)
	name, err = choose(lib)
	assert.NoError(t, err, "nothing was asked for")
	assert.Empty(t, name)
}

// Two queue pairs, with memory that the device pages on demand.
func TestWriteOnDemand(t *testing.T) {
	lib := library(t)
	c, err := open(lib, "double1")
	require.NoError(t, err)
	pd, err := c.AllocPD()
	require.NoError(t, err)
	cq, err := c.CreateCQ(16)
	require.NoError(t, err)
	mem, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer unix.Munmap(mem) //nolint:errcheck // the process ends soon
	double.Fault(double.ODP, 1)
	_, err = pd.Register(unsafe.Pointer(&mem[0]), 8192, backend.AllAccess)
	assert.Error(t, err, "the device does not say that it can")
	c.(*context).port.Device.OnDemand = true
	r, err := pd.Register(unsafe.Pointer(&mem[0]), 8192, backend.AllAccess)
	require.NoError(t, err)
	assert.Zero(t, r.Access()&^backend.AllAccess, "on demand is no access")
	var pairs [2]backend.QP
	for i := range pairs {
		pairs[i], err = pd.CreateQP(backend.QPInit{Send: cq, Recv: cq, MaxSend: 4, MaxRecv: 4})
		require.NoError(t, err)
	}
	for i, p := range pairs {
		info, err := pairs[1-i].Info()
		require.NoError(t, err)
		require.NoError(t, p.Connect(info, backend.Connection{Timeout: time.Second, RNRRetry: 7}))
	}
	mem[0] = 42
	_, err = pairs[0].PostSend([]backend.SendWR{{
		Cookie: 3, Op: backend.OpWrite, Signaled: true, Region: r, Local: unsafe.Pointer(&mem[0]), N: 1, Raddr: r.Addr() + 4096, RKey: r.RKey(),
	}})
	require.NoError(t, err)
	var out [1]backend.Completion
	require.Eventually(t, func() bool { n, err := cq.Poll(out[:]); return n == 1 && err == nil }, 10*time.Second, time.Millisecond)
	assert.Equal(t, backend.Success, out[0].Status)
	assert.EqualValues(t, 42, mem[4096])
	for _, p := range pairs {
		require.NoError(t, p.Close())
	}
	require.NoError(t, r.Close())
	require.NoError(t, cq.Close())
	require.NoError(t, pd.Close())
	require.NoError(t, c.Close())
}
