//go:build cgo

package verbs

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/ibverbs/double"
)

// counter is a sink that only counts, so that any allocation is the transport's.
type counter struct{ completed, delivered, failed int }

func (c *counter) Deliver(int, *fabric.Header, []byte)           { c.delivered++ }
func (c *counter) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }
func (c *counter) Broken(int, error)                             { c.failed++ }
func (c *counter) Completed(_ uint64, err error) {
	c.completed++
	if err != nil {
		c.failed++
	}
}

// 64 puts and their end: one write each, no message, one extra request, and
// nothing allocated.
func TestSixtyFourPuts(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 64*64)
	plain := fabrictest.Memory(t, 64*64)
	registered, _, _ := expose(t, a, 64*1024)
	for _, local := range []unsafe.Pointer{fabrictest.Pointer(plain), fabrictest.Pointer(registered)} {
		for _, n := range []int{8, 64} {
			c := &counter{}
			round := func() {
				c.completed = 0
				for i := range 64 {
					_, err := a.to.Put(unsafe.Add(local, i*n), fabric.RemoteKey{Addr: key.Addr + uint64(i*n), Key: key.Key}, n, uint64(i))
					if err != nil {
						c.failed++
					}
				}
				for range 1000 {
					if a.Transport.Poll(c); c.completed == 64 {
						return
					}
				}
				c.failed++
			}
			double.Reset()
			round()
			assert.Zero(t, c.failed)
			assert.Equal(t, 64, double.Count(double.Writes), "one write for each put")
			assert.LessOrEqual(t, double.Count(double.Empty), 1, "extra requests")
			assert.LessOrEqual(t, double.Count(double.Doorbells), 65)
			assert.Zero(t, double.Count(double.Sends)+double.Count(double.Reads))
			assert.LessOrEqual(t, double.Count(double.Signaled), 4)
			assert.Zero(t, testing.AllocsPerRun(20, round))
			assert.Zero(t, c.failed)
		}
	}
}

// A batch of runs is one doorbell.
func TestRunsAreOneDoorbell(t *testing.T) {
	a, b := duo(t)
	mem, key, _ := expose(t, b, 64<<10)
	local, _, _ := expose(t, a, 64<<10)
	fabrictest.Fill(local, 5)
	runs := make([]fabric.Run, maxRuns)
	for i := range runs {
		runs[i] = fabric.Run{Addr: key.Addr + uint64(i*1000), N: 600}
	}
	double.Reset()
	post(t, a, func() (bool, error) { return a.to.PutRuns(fabrictest.Pointer(local), key.Key, runs, 1) })
	poll(t, "the put", func() bool { return len(a.done[1]) == 1 }, a)
	require.NoError(t, a.done[1][0])
	assert.Equal(t, maxRuns, double.Count(double.Writes))
	assert.Equal(t, 1, double.Count(double.Doorbells))
	assert.Zero(t, double.Count(double.Empty))
	for i := range runs {
		assert.Equal(t, local[i*600:i*600+600], mem[i*1000:i*1000+600])
	}
}

// Messages and gets allocate nothing either, and an idle poll asks the device once.
func TestPollingAllocatesNothing(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 8192)
	local := fabrictest.Memory(t, 8192)
	c, d := &counter{}, &counter{}
	payload := make([]byte, 4000)
	h := &fabric.Header{Kind: fabric.KindEager}
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		for range 10 {
			_ = a.to.Send(h, payload[:8])
			_ = a.to.Send(h, payload)
			_, _ = a.to.Get(fabrictest.Pointer(local), key, 4000, 1)
			_, _ = a.to.FetchAdd(fabrictest.Pointer(local), key, 1, 1)
		}
		for c.completed < 20 {
			a.Transport.Poll(c)
			b.Transport.Poll(d)
		}
		c.completed = 0
	}))
	assert.Zero(t, c.failed+d.failed)
	assert.Equal(t, 51*20, d.delivered)
	double.Reset()
	for range 10 {
		a.Transport.Poll(c)
	}
	assert.Equal(t, 10, double.Count(double.Polls))
	assert.Zero(t, double.Count(double.Doorbells))
}

func BenchmarkPutAndFlush(b *testing.B) {
	x, y := duo(b)
	_, key, _ := expose(b, y, 64)
	local := fabrictest.Memory(b, 64)
	c := &counter{}
	b.ReportAllocs()
	for b.Loop() {
		c.completed = 0
		_, _ = x.to.Put(fabrictest.Pointer(local), key, 8, 1)
		for c.completed == 0 {
			x.Transport.Poll(c)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	x, y := duo(b)
	c, h, payload := &counter{}, &fabric.Header{Kind: fabric.KindEager}, make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		c.delivered = 0
		for x.to.Send(h, payload) != nil {
			x.Transport.Poll(c)
		}
		for c.delivered == 0 {
			y.Transport.Poll(c)
		}
	}
}

func BenchmarkEmptyPoll(b *testing.B) {
	x, _ := duo(b)
	c := &counter{}
	b.ReportAllocs()
	for b.Loop() {
		x.Transport.Poll(c)
	}
}
