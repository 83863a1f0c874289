//go:build cgo

package ofi

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/rdmaapi/backend"
)

// A failure is reported even if the request that failed was not signalled, and requests
// behind it end while the endpoint is closed.
func TestAFailureIsNeverSilent(t *testing.T) {
	q := &queue{}
	p := &pair{send: q, recv: q, next: 2}
	p.sq = []*op{
		{done: true, result: backend.Completion{Cookie: 1, Status: backend.RetryExcErr}},
		{SendWR: backend.SendWR{Signaled: true}, done: true, result: backend.Completion{Cookie: 2}},
	}
	p.deliver()
	var out [4]backend.Completion
	require.Equal(t, 2, q.take(out[:]))
	assert.Equal(t, backend.RetryExcErr, out[0].Status)
	assert.Equal(t, backend.Success, out[1].Status)
}

// A request fails if its region has been closed before it is posted, and the provider
// does not see it.
func TestMemoryThatWasClosedMeanwhile(t *testing.T) {
	devices, err := Backend{}.Devices()
	if err != nil {
		t.Skip(err)
	}
	c, err := Backend{}.Open(devices[0].Name)
	require.NoError(t, err)
	d, err := c.AllocPD()
	require.NoError(t, err)
	q, err := c.CreateCQ(16)
	require.NoError(t, err)
	p, err := d.CreateQP(backend.QPInit{Send: q, Recv: q, MaxSend: 4, MaxRecv: 4})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, p.Close())
		assert.NoError(t, d.Close())
		assert.NoError(t, c.Close())
	})
	info, err := p.Info()
	require.NoError(t, err)
	require.NoError(t, p.Connect(info, backend.Connection{Timeout: time.Second}))
	mem, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer unix.Munmap(mem) //nolint:errcheck // the process ends soon
	r, err := d.Register(unsafe.Pointer(&mem[0]), len(mem), backend.AllAccess)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	n, err := p.PostSend([]backend.SendWR{{Cookie: 5, Op: backend.OpSend, Region: r, Local: unsafe.Pointer(&mem[0]), N: len(mem)}})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	var out [2]backend.Completion
	require.Eventually(t, func() bool {
		n, err := q.Poll(out[:1])
		return err == nil && n == 1
	}, 5*time.Second, time.Millisecond)
	assert.EqualValues(t, 5, out[0].Cookie)
	assert.Equal(t, backend.LocProtErr, out[0].Status)
	assert.Equal(t, backend.StateErr, p.State())
}

// TestQueuePairsOfADomain: there can be several, each with registered operands of
// atomics.
func TestQueuePairsOfADomain(t *testing.T) {
	devices, err := Backend{}.Devices()
	if err != nil {
		t.Skip(err)
	}
	seen := map[string]bool{}
	for _, device := range devices {
		provider, _, _ := strings.Cut(device.Detail, ", domain")
		if seen[provider] || !device.Limits.Atomics {
			continue
		}
		seen[provider] = true
		t.Run(provider, func(t *testing.T) {
			c, err := Backend{}.Open(device.Name)
			require.NoError(t, err)
			d, err := c.AllocPD()
			require.NoError(t, err)
			q, err := c.CreateCQ(16)
			require.NoError(t, err)
			var pairs [3]backend.QP
			for i := range pairs {
				pairs[i], err = d.CreateQP(backend.QPInit{Send: q, Recv: q, MaxSend: 4, MaxRecv: 4})
				require.NoError(t, err, "queue pair %d", i)
			}
			mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			require.NoError(t, err)
			defer unix.Munmap(mem) //nolint:errcheck // the process ends soon
			r, err := d.Register(unsafe.Pointer(&mem[0]), len(mem), backend.AllAccess)
			require.NoError(t, err)
			for i, p := range pairs[:2] {
				info, err := pairs[1-i].Info()
				require.NoError(t, err)
				require.NoError(t, p.Connect(info, backend.Connection{Timeout: 30 * time.Second}))
			}
			mem[64] = 37
			n, err := pairs[0].PostSend([]backend.SendWR{{
				Cookie: 5, Op: backend.OpFetchAdd, Signaled: true, Region: r, Local: unsafe.Pointer(&mem[0]), N: 8,
				Raddr: r.Addr() + 64, RKey: r.RKey(), Operand: 5,
			}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			var out [1]backend.Completion
			require.Eventually(t, func() bool {
				n, err := q.Poll(out[:])
				return err == nil && n == 1
			}, 40*time.Second, time.Millisecond)
			assert.Equal(t, backend.Success, out[0].Status, out[0].Detail)
			assert.EqualValues(t, []byte{37, 42}, []byte{mem[0], mem[64]})
			for _, p := range pairs {
				assert.NoError(t, p.Close())
			}
			assert.NoError(t, r.Close())
			assert.NoError(t, d.Close())
			assert.NoError(t, c.Close())
		})
	}
}
