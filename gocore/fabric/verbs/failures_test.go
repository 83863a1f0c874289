//go:build cgo

package verbs

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/ibverbs/double"
)

// all reports whether n operations have ended, each once.
func (s *side) all(t testing.TB, n int) bool {
	t.Helper()
	for cookie, list := range s.done {
		require.Len(t, list, 1, "operation %d", cookie)
	}
	return len(s.done) == n
}

// A request fails in the middle of others: those before it are done, its error is the
// device's, those behind it are flushed, and nothing more is posted.
func TestFailedCompletion(t *testing.T) {
	for _, status := range []ibverbs.WCStatus{ibverbs.LocProtErr, ibverbs.RemAccessErr, ibverbs.RetryExcErr, ibverbs.RNRRetryExcErr, ibverbs.GeneralErr} {
		for _, at := range []int{0, 5, 31, 32, 39} {
			t.Run(fmt.Sprintf("%v at %d", status, at), func(t *testing.T) {
				a, b := duo(t)
				_, key, _ := expose(t, b, 4096)
				local, _, _ := expose(t, a, 4096)
				double.Fault(double.Hold, 1)
				for i := range 40 {
					post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, 8, uint64(i)) })
				}
				double.Fault(double.WCAfter, at)
				double.Fault(double.WCStatus, int(status))
				double.Fault(double.Hold, 0)
				poll(t, "all ends", func() bool { return a.all(t, 40) && len(a.broken) > 0 }, a, b)
				for i := range 40 {
					err := a.done[uint64(i)][0]
					if i < at {
						// Without a completion of its own it is not known to have been done when a later one fails
						// before it; the device says which one failed, so it is.
						assert.NoError(t, err, "put %d", i)
						continue
					}
					var failed *fabric.OpError
					require.ErrorAs(t, err, &failed, "put %d", i)
					assert.Equal(t, 1, failed.Peer)
					assert.Equal(t, "put", failed.Op)
					if i == at {
						assert.Equal(t, status.String(), failed.Status)
						assert.Contains(t, failed.Detail, status.Means())
						assert.Contains(t, failed.Detail, fmt.Sprintf("queue pair %d of double0 is in state ERR", a.to.qp.Num()))
					} else {
						assert.Equal(t, "IBV_WC_WR_FLUSH_ERR", failed.Status)
						assert.Contains(t, failed.Detail, status.String())
					}
				}
				_, err := a.to.Put(fabrictest.Pointer(local), key, 8, 99)
				assert.ErrorContains(t, err, status.String())
				assert.ErrorContains(t, a.to.Send(&fabric.Header{}, nil), status.String())
				assert.Len(t, a.broken, 1)
				assert.ErrorContains(t, a.broken[0], status.String())
				// The peer learns of it.
				poll(t, "the peer knows", func() bool { return len(b.broken) == 1 }, b)
				assert.ErrorIs(t, b.broken[0], fabric.ErrPeerGone)
				assert.ErrorContains(t, b.broken[0], status.String())
			})
		}
	}
}

// An operation of several requests fails with the error of its failed request.
func TestFailedPiece(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 4096)
	local, _, _ := expose(t, a, 4096)
	runs := make([]fabric.Run, 10)
	for i := range runs {
		runs[i] = fabric.Run{Addr: key.Addr + uint64(i)*400, N: 300}
	}
	double.Fault(double.WCAfter, 4)
	double.Fault(double.WCStatus, int(ibverbs.RemOpErr))
	post(t, a, func() (bool, error) { return a.to.PutRuns(fabrictest.Pointer(local), key.Key, runs, 1) })
	poll(t, "the end", func() bool { return a.all(t, 1) && len(a.broken) > 0 }, a)
	assert.ErrorContains(t, a.done[1][0], "put to rank 1 failed: IBV_WC_REM_OP_ERR")
}

// The device does not flush its requests: the queue pair is destroyed after a while.
func TestNoFlush(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 4096)
	local := fabrictest.Memory(t, 4096)
	double.Fault(double.NoFlush, 1)
	double.Fault(double.Hold, 1)
	for i := range 20 {
		post(t, a, func() (bool, error) { return a.to.Get(fabrictest.Pointer(local), key, 100, uint64(i)) })
	}
	double.Fault(double.WCAfter, 3)
	double.Fault(double.WCStatus, int(ibverbs.GeneralErr))
	start := time.Now()
	double.Fault(double.Hold, 0)
	poll(t, "the end", func() bool { return a.all(t, 20) && len(a.broken) > 0 }, a)
	assert.GreaterOrEqual(t, time.Since(start), flushPatience)
	assert.Equal(t, a.bounce.Free(), sendBuffers, "buffers are lost")
}

// A peer that does not exist any more.
func TestKilledPeer(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 4096)
	local := fabrictest.Memory(t, 4096)
	double.Kill(b.to.qp.Num())
	require.NoError(t, a.to.Send(&fabric.Header{Kind: fabric.KindEager}, make([]byte, 1000)))
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, 8, 7) })
	poll(t, "the end", func() bool { return a.all(t, 1) && len(a.broken) > 0 }, a)
	assert.ErrorContains(t, a.broken[0], "send to rank 1 failed: IBV_WC_RETRY_EXC_ERR (the peer does not answer")
	assert.ErrorContains(t, a.done[7][0], "put to rank 1 failed: IBV_WC_WR_FLUSH_ERR")
}

// The device takes a part of a list, or nothing of it.
func TestPartialPost(t *testing.T) {
	for _, after := range []int{0, 1, 7, 19} {
		a, b := duo(t)
		mem, key, _ := expose(t, b, 64<<10)
		local := fabrictest.Memory(t, 20*1000)
		fabrictest.Fill(local, uint64(after))
		runs := make([]fabric.Run, 20)
		for i := range runs {
			runs[i] = fabric.Run{Addr: key.Addr + uint64(i*2000), N: 1000}
		}
		double.Fault(double.PostAfter, after)
		double.Fault(double.PostErrno, int(syscall.ENOMEM))
		if after == 0 {
			_, err := a.to.PutRuns(fabrictest.Pointer(local), key.Key, runs, 1)
			require.ErrorIs(t, err, fabric.ErrAgain)
		}
		post(t, a, func() (bool, error) {
			return a.to.PutRuns(fabrictest.Pointer(local), key.Key, append([]fabric.Run{}, runs...), 1)
		})
		clear(runs[1:]) // the caller may reuse them
		poll(t, "the end", func() bool { return a.all(t, 1) }, a)
		require.NoError(t, a.done[1][0])
		for i := range runs {
			require.Equal(t, local[i*1000:i*1000+1000], mem[i*2000:i*2000+1000], "run %d", i)
		}
		assert.Equal(t, 1, len(a.broken)+1)
		a.Poll(a)
		assert.Empty(t, a.to.open)
	}
}

// The device refuses a request for good.
func TestRefusedPost(t *testing.T) {
	for _, after := range []int{0, 3} {
		a, b := duo(t)
		_, key, _ := expose(t, b, 4096)
		local := fabrictest.Memory(t, 4096)
		runs := []fabric.Run{{Addr: key.Addr, N: 500}, {Addr: key.Addr, N: 500}, {Addr: key.Addr, N: 500}, {Addr: key.Addr, N: 500}, {Addr: key.Addr, N: 500}}
		double.Fault(double.PostAfter, after)
		double.Fault(double.PostErrno, int(syscall.EINVAL))
		_, err := a.to.PutRuns(fabrictest.Pointer(local), key.Key, runs, 1)
		if after == 0 {
			assert.ErrorContains(t, err, "ibv_post_send: EINVAL")
		} else {
			require.NoError(t, err)
		}
		poll(t, "the end", func() bool { return len(a.broken) == 1 && (after == 0 || a.all(t, 1)) }, a)
		if after > 0 {
			assert.ErrorContains(t, a.done[1][0], "ibv_post_send: EINVAL")
		}
		assert.Equal(t, a.bounce.Free(), sendBuffers, "buffers are lost")
	}
}

// Messages longer than the device sends, and operations longer than the queue,
// with a device that is slow.
func TestLongOperations(t *testing.T) {
	create := software(t)
	double.Fault(double.MaxMsg, 8192)
	sides := []*side{}
	for _, dir := range fabrictest.Directories(2) {
		tr, err := create(dir)
		require.NoError(t, err)
		s := &side{Transport: tr.(*Transport), done: map[uint64][]error{}}
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		sides = append(sides, s)
	}
	a, b := sides[0], sides[1]
	meet(t, a, b)
	double.Fault(double.Lazy, 7)
	const n = 3<<20 + 5
	mem, key, _ := expose(t, b, n)
	registered, _, _ := expose(t, a, n)
	cookie := uint64(0)
	for i, local := range [][]byte{fabrictest.Memory(t, n), registered} {
		fabrictest.Fill(local, uint64(i))
		cookie++
		post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, n, cookie) })
		assert.ErrorIs(t, a.to.Send(&fabric.Header{}, nil), fabric.ErrAgain, "the queue is taken")
		poll(t, "the put", func() bool { return len(a.done[cookie]) == 1 }, a, b)
		require.NoError(t, a.done[cookie][0])
		require.Empty(t, fabrictest.Check(mem, uint64(i)))
		clear(local)
		cookie++
		runs := []fabric.Run{{Addr: key.Addr, N: 1 << 20}, {Addr: key.Addr + 1<<20, N: n - 1<<20}}
		post(t, a, func() (bool, error) { return a.to.GetRuns(fabrictest.Pointer(local), key.Key, runs, cookie) })
		runs[0], runs[1] = fabric.Run{}, fabric.Run{}
		poll(t, "the get", func() bool { return len(a.done[cookie]) == 1 }, a, b)
		require.NoError(t, a.done[cookie][0])
		require.Empty(t, fabrictest.Check(local, uint64(i)))
	}
	a.Poll(a)
	assert.Zero(t, a.to.open)
	assert.Zero(t, a.working.Load())
	// And one that fails on the way.
	double.Fault(double.WCAfter, 300)
	double.Fault(double.WCStatus, int(ibverbs.RemAccessErr))
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(registered), key, n, 99) })
	poll(t, "the end", func() bool { return len(a.done[99]) > 0 && len(a.broken) > 0 }, a, b)
	assert.Len(t, a.done[99], 1)
	assert.ErrorContains(t, a.done[99][0], "IBV_WC_REM_ACCESS_ERR")
}

// The queue is full: ErrAgain, and nothing is lost.
func TestFullQueue(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 4096)
	local, _, _ := expose(t, a, 4096)
	double.Fault(double.Hold, 1)
	n := 0
	var err error
	for ; err == nil; n++ {
		_, err = a.to.Put(fabrictest.Pointer(local), key, 8, uint64(n))
	}
	n--
	assert.ErrorIs(t, err, fabric.ErrAgain)
	assert.Equal(t, int(a.depth)-1, n)
	assert.ErrorIs(t, a.to.Send(&fabric.Header{}, nil), fabric.ErrAgain)
	for range 100 {
		a.Poll(a)
	}
	assert.Empty(t, a.done)
	double.Fault(double.Hold, 0)
	poll(t, "the end", func() bool { return a.all(t, n) }, a)
	assert.Zero(t, double.Count(double.Empty)-1, "one place is kept for a follower")
}

// Buffers run out: those that hold them are completed early.
func TestNoBuffers(t *testing.T) {
	a, b := duo(t)
	payload, sent := make([]byte, 4000), 0
	for range 2000 {
		switch err := a.to.Send(&fabric.Header{Kind: fabric.KindEager}, payload); {
		case err == nil:
			sent++
		case errors.Is(err, fabric.ErrAgain):
			a.Poll(a)
			b.Poll(b)
		default:
			require.NoError(t, err)
		}
	}
	assert.Greater(t, sent, 1000)
	poll(t, "all messages", func() bool { return len(b.got) == sent }, a, b)
	assert.Empty(t, a.done)
}

// Registration is refused.
func TestRefusedRegistration(t *testing.T) {
	a, b := duo(t)
	mem, key, _ := expose(t, b, 1<<20)
	local := fabrictest.Memory(t, 1<<20)
	double.Fault(double.NoRegions, int(syscall.ENOMEM))
	_, err := a.Register(fabrictest.Pointer(local), 4096)
	assert.ErrorContains(t, err, "ulimit -l")
	_, err = a.to.Put(fabrictest.Pointer(local), key, 1<<20, 1)
	var failed *fabric.OpError
	require.ErrorAs(t, err, &failed)
	assert.ErrorContains(t, err, "put to rank 1 failed: the local memory can't be registered (ibv_reg_mr: ENOMEM")
	assert.NotErrorIs(t, err, fabric.ErrAgain)
	fabrictest.Fill(local[:5000], 3)
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, 5000, 2) })
	poll(t, "a small put still works", func() bool { return len(a.done[2]) == 1 }, a)
	require.NoError(t, a.done[2][0])
	assert.Empty(t, fabrictest.Check(mem[:5000], 3))
	double.Fault(double.NoRegions, 0)
	double.Fault(double.NoAtomicKeys, int(syscall.EOPNOTSUPP))
	r, err := a.Register(fabrictest.Pointer(local), 4096)
	require.NoError(t, err, "without atomics")
	require.NoError(t, r.Close())
	double.Fault(double.ODP, 1)
	double.Fault(double.NoAtomicKeys, 0)
	a.port.Device.OnDemand = true
	r, err = a.Register(fabrictest.Pointer(local), 4096)
	require.NoError(t, err, "on demand")
	assert.NotZero(t, r.(*region).mr.Access()&ibverbs.OnDemand)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
}

// Memory that an operation uses stays registered until it ends.
func TestRegionInUse(t *testing.T) {
	a, b := duo(t)
	mem, key, _ := expose(t, b, 1<<20)
	local, _, region := expose(t, a, 1<<20)
	fabrictest.Fill(local, 8)
	double.Fault(double.Hold, 1)
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, 1<<20, 1) })
	regions := double.Count(double.Regions)
	require.NoError(t, region.Close())
	assert.Equal(t, regions, double.Count(double.Regions))
	double.Fault(double.Hold, 0)
	poll(t, "the put", func() bool { return len(a.done[1]) == 1 }, a)
	require.NoError(t, a.done[1][0])
	assert.Empty(t, fabrictest.Check(mem, 8))
	assert.Equal(t, regions-1, double.Count(double.Regions))
}

// A put's memory is deregistered when it has ended.
func TestTemporaryRegions(t *testing.T) {
	a, b := duo(t)
	_, key, _ := expose(t, b, 1<<20)
	local := fabrictest.Memory(t, 1<<20)
	before := double.Count(double.Regions)
	for i := range 10 {
		post(t, a, func() (bool, error) { return a.to.Get(fabrictest.Pointer(local), key, 1<<20, uint64(i)) })
	}
	poll(t, "the gets", func() bool { return a.all(t, 10) }, a)
	assert.Equal(t, before, double.Count(double.Regions))
}

// Closing waits for what was sent, but not for ever, and frees everything.
func TestClose(t *testing.T) {
	a, b := duo(t)
	for range 100 {
		require.NoError(t, a.to.Send(&fabric.Header{Kind: fabric.KindEager}, []byte("last words")))
	}
	require.NoError(t, a.Close())
	_, err := a.Connect(1)
	assert.Error(t, err)
	assert.Error(t, a.to.Send(&fabric.Header{}, nil))
	assert.Zero(t, a.Poll(a))
	poll(t, "Broken", func() bool { return len(b.broken) == 1 }, b)
	assert.Len(t, b.got, 100, "what was sent before comes first")
	assert.ErrorIs(t, b.broken[0], fabric.ErrPeerGone)

	a, b = duo(t)
	_, key, _ := expose(t, b, 1<<20)
	local := fabrictest.Memory(t, 1<<20)
	double.Fault(double.Hold, 1)
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, 1<<20, 1) })
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	double.Fault(double.Hold, 0)
}

// Choice of the device, and what can be wrong with it.
func TestChoice(t *testing.T) {
	lib, err := double.Library()
	require.NoError(t, err)
	t.Cleanup(double.Reset)
	before := double.Count(double.Objects)
	dir := func(rank int) fabric.Directory { return fabrictest.Directories(4)[rank] }
	for rank, device := range []string{"double0", "double1", "double0", "double1"} {
		tr, err := newTransport(lib, dir(rank), Options{})
		require.NoError(t, err)
		assert.Contains(t, tr.Describe(0), device+" port 1, GID 1 ::ffff:10.0.0.")
		require.NoError(t, tr.Close())
	}
	tr, err := newTransport(lib, dir(0), Options{Device: "double1", Port: "1", GID: "0"})
	require.NoError(t, err)
	assert.Contains(t, tr.Describe(0), "double1 port 1, GID 0 fe80::1")
	require.NoError(t, tr.Close())
	double.Fault(double.NoAtomics, 1)
	double.Fault(double.MaxInline, -1)
	tr, err = newTransport(lib, dir(0), Options{})
	require.NoError(t, err)
	assert.False(t, tr.Caps().Atomics)
	ep, err := tr.Connect(0)
	require.NoError(t, err, "without inline")
	_, err = ep.FetchAdd(nil, fabric.RemoteKey{}, 1, 1)
	assert.ErrorIs(t, err, fabric.ErrUnsupported)
	require.NoError(t, tr.Close())
	for o, texts := range map[Options][]string{
		{Device: "mlx5_0"}: {`asked for RDMA device "mlx5_0": there is no RDMA device of that name; there is double0, double1; GORMAPY_IB_DEV`},
		{Port: "2"}:        {"asked for an RDMA device with an active port, port 2: double0 has no port 2, it has 1, double1 has no port 2"},
		{Port: "first"}:    {`GORMAPY_IB_PORT="first" is not a number from 1`},
		{GID: "-1"}:        {`GORMAPY_IB_GID="-1" is not a number from 0`},
		{Device: "double0", GID: "5"}: {
			`asked for RDMA device "double0", GID 5: port 1 of double0 has no GID 5; there is double0, double1; `,
			"GORMAPY_IB_GID name a device, a port and a GID; python -m gormapy.rdma devices lists them",
		},
	} {
		_, err := newTransport(lib, dir(0), o)
		for _, text := range texts {
			assert.ErrorContains(t, err, text)
		}
	}
	double.Fault(double.Down, 1)
	_, err = newTransport(lib, dir(0), Options{})
	assert.ErrorIs(t, err, ibverbs.ErrNoPort)
	assert.ErrorContains(t, err, "double1: port 1 is DOWN")
	double.Reset()
	double.Fault(double.NoRegions, int(syscall.ENOMEM))
	_, err = newTransport(lib, dir(0), Options{})
	assert.ErrorContains(t, err, "receive buffers")
	assert.Equal(t, before, double.Count(double.Objects), "something is left")
}

// An unpublished region is for peers only: its address may be other memory by now.
func TestHiddenRegion(t *testing.T) {
	a, b := duo(t)
	mem, key, unpublished := expose(t, b, 1<<16)
	unpublished.(fabric.Unpublisher).Unpublish()
	b.mu.Lock()
	assert.Nil(t, b.regions.Find(uint64(uintptr(fabrictest.Pointer(mem))), 64))
	b.mu.Unlock()
	local := fabrictest.Memory(t, 1<<16)
	fabrictest.Fill(local, 4)
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), key, 1<<16, 1) })
	poll(t, "the put", func() bool { return len(a.done[1]) == 1 }, a)
	require.NoError(t, a.done[1][0])
	assert.Empty(t, fabrictest.Check(mem, 4))
	regions := double.Count(double.Regions)
	require.NoError(t, unpublished.Close())
	assert.Equal(t, regions-1, double.Count(double.Regions))
}

// Peers can read memory that was registered to be sent, but not change it.
func TestWhatIsSentIsNotWritten(t *testing.T) {
	a, b := duo(t)
	local, _, _ := expose(t, a, 4096)
	mem := fabrictest.Memory(t, 4096)
	fabrictest.Fill(mem, 3)
	r, err := fabric.RegisterReadOnly(b.Transport, fabrictest.Pointer(mem), len(mem))
	require.NoError(t, err)
	post(t, a, func() (bool, error) { return a.to.Get(fabrictest.Pointer(local), r.Key(), 4096, 1) })
	poll(t, "the get", func() bool { return len(a.done[1]) == 1 }, a, b)
	require.NoError(t, a.done[1][0])
	require.Empty(t, fabrictest.Check(local, 3))
	clear(local)
	post(t, a, func() (bool, error) { return a.to.Put(fabrictest.Pointer(local), r.Key(), 4096, 2) })
	poll(t, "the put", func() bool { return len(a.done[2]) == 1 }, a, b)
	assert.ErrorContains(t, a.done[2][0], "IBV_WC_REM_ACCESS_ERR")
	assert.Empty(t, fabrictest.Check(mem, 3))
}
