//go:build cgo

package ibverbs_test

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/ibverbs"
	"gormapy/gocore/ibverbs/double"
)

func software(t testing.TB) *ibverbs.Library {
	t.Helper()
	double.Reset()
	lib, err := double.Library()
	require.NoError(t, err)
	t.Cleanup(double.Reset)
	return lib
}

// end is one end of a connection, with 1 MiB of registered memory.
type end struct {
	t   testing.TB
	ctx *ibverbs.Context
	pd  *ibverbs.PD
	ch  *ibverbs.CompChannel
	cq  *ibverbs.CQ
	qp  *ibverbs.QP
	mr  *ibverbs.MR
	mem []byte
	gid [16]byte
	mtu int
}

const everything = ibverbs.LocalWrite | ibverbs.RemoteWrite | ibverbs.RemoteRead | ibverbs.RemoteAtomic

func newEnd(t testing.TB, lib *ibverbs.Library, device string) *end {
	t.Helper()
	e := &end{t: t}
	var err error
	e.ctx, err = lib.Open(device)
	require.NoError(t, err)
	port, err := e.ctx.Port(1)
	require.NoError(t, err)
	e.mtu = port.ActiveMTU
	e.gid, err = e.ctx.GID(1, 1)
	require.NoError(t, err)
	e.pd, err = e.ctx.AllocPD()
	require.NoError(t, err)
	e.ch, err = e.ctx.CreateCompChannel()
	require.NoError(t, err)
	e.cq, err = e.ctx.CreateCQ(128, e.ch)
	require.NoError(t, err)
	e.qp, err = e.pd.CreateQP(ibverbs.QPOptions{SendCQ: e.cq, RecvCQ: e.cq, MaxSend: 64, MaxRecv: 64, MaxInline: 64})
	require.NoError(t, err)
	e.mem, err = unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	e.mr, err = e.pd.Register(e.at(0), len(e.mem), everything)
	require.NoError(t, err)
	t.Cleanup(e.close)
	return e
}

func (e *end) close() {
	for _, c := range []interface{ Close() error }{e.qp, e.mr, e.cq, e.ch, e.pd, e.ctx} {
		assert.NoError(e.t, c.Close())
		assert.NoError(e.t, c.Close(), "twice")
	}
	_ = unix.Munmap(e.mem)
}

func (e *end) at(off int) uint64 { return uint64(uintptr(unsafe.Pointer(&e.mem[off]))) }

func (e *end) connect(to *end) {
	timers := &ibverbs.Timers{Timeout: 14, Retries: 7, RNRRetry: 7, MinRNR: 1, RDAtomic: 4, DestRDAto: 4}
	remote := &ibverbs.Remote{QPNum: to.qp.Num(), PSN: 7, MTU: to.mtu, GID: to.gid, Global: true, SGIDIndex: 1}
	require.NoError(e.t, e.qp.ToInit(1, everything))
	require.NoError(e.t, e.qp.ToRTR(1, remote, timers))
	require.NoError(e.t, e.qp.ToRTS(7, timers))
	state, err := e.qp.State()
	require.NoError(e.t, err)
	require.Equal(e.t, ibverbs.RTS, state)
}

func pair(t testing.TB, lib *ibverbs.Library, devices []string) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, lib, devices[0]), newEnd(t, lib, devices[len(devices)-1])
	a.connect(b)
	b.connect(a)
	return a, b
}

// next waits for a completion.
func (e *end) next() ibverbs.WC {
	e.t.Helper()
	var wc [1]ibverbs.WC
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); {
		n, err := e.cq.Poll(wc[:])
		require.NoError(e.t, err)
		if n == 1 {
			return wc[0]
		}
	}
	e.t.Fatal("no completion")
	return wc[0]
}

func (e *end) post(wr ibverbs.SendWR) {
	e.t.Helper()
	if wr.Flags&ibverbs.Inline == 0 {
		wr.LKey = e.mr.LKey()
	}
	wr.Flags |= ibverbs.Signaled
	n, err := e.qp.PostSend([]ibverbs.SendWR{wr})
	require.NoError(e.t, err)
	require.Equal(e.t, 1, n)
}

func (e *end) succeeds(op ibverbs.WCOpcode, id uint64) ibverbs.WC {
	e.t.Helper()
	wc := e.next()
	require.Equal(e.t, ibverbs.Success, wc.Status, "%v: %s", wc.Status, wc.Status.Means())
	require.Equal(e.t, op, wc.Opcode)
	require.Equal(e.t, id, wc.ID)
	return wc
}

// operations does every kind of work request once, and looks at what came.
func operations(t *testing.T, lib *ibverbs.Library, devices []string) {
	a, b := pair(t, lib, devices)
	word := binary.LittleEndian
	for i := range 4096 {
		a.mem[i] = byte(i*31 + 7)
	}
	a.post(ibverbs.SendWR{ID: 1, Opcode: ibverbs.RDMAWrite, Addr: a.at(0), Len: 4096, RemoteAddr: b.at(0), RKey: b.mr.RKey()})
	a.succeeds(ibverbs.WCRDMAWrite, 1)
	assert.Equal(t, a.mem[:4096], b.mem[:4096])
	a.post(ibverbs.SendWR{ID: 2, Opcode: ibverbs.RDMARead, Addr: a.at(8192), Len: 4096, RemoteAddr: b.at(0), RKey: b.mr.RKey()})
	a.succeeds(ibverbs.WCRDMARead, 2)
	assert.Equal(t, a.mem[:4096], a.mem[8192:12288])
	_, err := b.qp.PostRecv([]ibverbs.RecvWR{{ID: 70}, {ID: 71, Addr: b.at(32768), Len: 256, LKey: b.mr.LKey()}})
	require.NoError(t, err)
	a.post(ibverbs.SendWR{ID: 3, Opcode: ibverbs.RDMAWriteImm, Addr: a.at(0), Len: 64, RemoteAddr: b.at(8192), RKey: b.mr.RKey(), Imm: 0x1234})
	a.succeeds(ibverbs.WCRDMAWrite, 3)
	wc := b.succeeds(ibverbs.WCRecvRDMAWI, 70)
	imm, has := wc.Imm()
	assert.True(t, has)
	assert.Equal(t, uint32(0x1234), imm)
	assert.Equal(t, uint32(64), wc.Bytes)
	assert.Equal(t, b.qp.Num(), wc.QPNum)
	assert.Equal(t, a.mem[:64], b.mem[8192:8256])
	a.post(ibverbs.SendWR{ID: 4, Opcode: ibverbs.SendImm, Addr: a.at(100), Len: 60, Flags: ibverbs.Inline, Imm: 7})
	a.succeeds(ibverbs.WCSend, 4)
	wc = b.succeeds(ibverbs.WCRecv, 71)
	imm, _ = wc.Imm()
	assert.Equal(t, uint32(7), imm)
	assert.Equal(t, a.mem[100:160], b.mem[32768:32828])
	word.PutUint64(b.mem[4096:], 100)
	a.post(ibverbs.SendWR{ID: 5, Opcode: ibverbs.FetchAdd, Addr: a.at(4096), Len: 8, RemoteAddr: b.at(4096), RKey: b.mr.RKey(), Add: 5})
	a.succeeds(ibverbs.WCFetchAdd, 5)
	assert.Equal(t, uint64(100), word.Uint64(a.mem[4096:]))
	a.post(ibverbs.SendWR{ID: 6, Opcode: ibverbs.CompareSwap, Addr: a.at(4096), Len: 8, RemoteAddr: b.at(4096), RKey: b.mr.RKey(), Add: 105, Swap: 9})
	a.succeeds(ibverbs.WCCompSwap, 6)
	assert.Equal(t, uint64(105), word.Uint64(a.mem[4096:]))
	assert.Equal(t, uint64(9), word.Uint64(b.mem[4096:]))

	// A batch is one list; only the last of it completes.
	list := make([]ibverbs.SendWR, 40)
	for i := range list {
		list[i] = ibverbs.SendWR{ID: uint64(100 + i), Opcode: ibverbs.RDMAWrite, Addr: a.at(i * 8), Len: 8, LKey: a.mr.LKey(),
			RemoteAddr: b.at(65536 + i*16), RKey: b.mr.RKey()}
	}
	list[39].Flags = ibverbs.Signaled
	require.NoError(t, b.cq.ReqNotify(false))
	require.NoError(t, a.cq.ReqNotify(false))
	n, err := a.qp.PostSend(list)
	require.NoError(t, err)
	assert.Equal(t, 40, n)
	readable := []unix.PollFd{{Fd: int32(a.ch.FD()), Events: unix.POLLIN}}
	ready, err := unix.Poll(readable, 20000)
	require.NoError(t, err)
	require.Equal(t, 1, ready, "the channel tells")
	got, err := a.ch.Event()
	require.NoError(t, err)
	assert.True(t, got)
	a.succeeds(ibverbs.WCRDMAWrite, 139)
	for i := range list {
		assert.Equal(t, a.mem[i*8:i*8+8], b.mem[65536+i*16:65536+i*16+8])
	}
	got, err = b.ch.Event()
	require.NoError(t, err)
	assert.False(t, got, "the peer has noticed nothing")

	// A wrong key ends the connection.
	a.post(ibverbs.SendWR{ID: 7, Opcode: ibverbs.RDMAWrite, Addr: a.at(0), Len: 8, RemoteAddr: b.at(0), RKey: b.mr.RKey() ^ 0x5a5a00})
	a.post(ibverbs.SendWR{ID: 8, Opcode: ibverbs.RDMAWrite, Addr: a.at(0), Len: 8, RemoteAddr: b.at(0), RKey: b.mr.RKey()})
	wc = a.next()
	assert.Equal(t, ibverbs.RemAccessErr, wc.Status)
	assert.Equal(t, uint64(7), wc.ID)
	wc = a.next()
	assert.Equal(t, ibverbs.WRFlushErr, wc.Status)
	assert.Equal(t, uint64(8), wc.ID)
	state, err := a.qp.State()
	require.NoError(t, err)
	assert.Equal(t, ibverbs.Err, state)
}

func TestOperations(t *testing.T) {
	lib := software(t)
	before := double.Count(double.Objects)
	t.Cleanup(func() { assert.Equal(t, before, double.Count(double.Objects), "something is left") })
	operations(t, lib, []string{"double0", "double1"})
}

// The same on this machine's devices.
func TestDeviceOperations(t *testing.T) {
	lib, err := ibverbs.Load()
	if err != nil {
		t.Skip(err)
	}
	devices, err := lib.Devices()
	if err != nil {
		t.Skip(err)
	}
	for _, name := range devices {
		ctx, err := lib.Open(name)
		require.NoError(t, err)
		attr, err := ctx.Device()
		require.NoError(t, err)
		port, err := ctx.Port(1)
		require.NoError(t, err)
		t.Logf("%s: %+v %+v", name, attr, port)
		require.NoError(t, ctx.Close())
	}
	operations(t, lib, devices)
}

func TestNoLibrary(t *testing.T) {
	_, err := ibverbs.Open("libno-such-thing.so.9")
	assert.ErrorIs(t, err, ibverbs.ErrNoLibrary)
	assert.ErrorContains(t, err, "libno-such-thing.so.9")
	_, err = ibverbs.Open("libm.so.6")
	assert.ErrorIs(t, err, ibverbs.ErrNoLibrary)
	assert.ErrorContains(t, err, "no function ibv_")
}

func TestNoDevices(t *testing.T) {
	lib := software(t)
	double.Fault(double.NoDevices, int(syscall.ENOSYS))
	_, err := lib.Devices()
	assert.ErrorIs(t, err, ibverbs.ErrNoDriver)
	double.Fault(double.NoDevices, -1)
	_, err = lib.Devices()
	assert.ErrorIs(t, err, ibverbs.ErrNoDevice)
	double.Fault(double.NoDevices, 0)
	_, err = lib.Open("mlx5_0")
	assert.ErrorIs(t, err, ibverbs.ErrNoDevice)
	assert.ErrorContains(t, err, "double0, double1")
}

func TestRegistration(t *testing.T) {
	e := newEnd(t, software(t), "double0")
	double.Fault(double.NoAtomicKeys, int(syscall.EOPNOTSUPP))
	mr, err := e.pd.Register(e.at(0), 4096, everything)
	require.NoError(t, err)
	assert.Equal(t, everything&^ibverbs.RemoteAtomic, mr.Access())
	require.NoError(t, mr.Close())
	double.Fault(double.NoRegions, int(syscall.ENOMEM))
	_, err = e.pd.Register(e.at(0), 4096, everything)
	assert.ErrorIs(t, err, syscall.ENOMEM)
	assert.ErrorContains(t, err, "ibv_reg_mr: ENOMEM")
	assert.ErrorContains(t, err, "4096 bytes")
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit))
	if limit.Cur == unix.RLIM_INFINITY {
		assert.NotContains(t, err.Error(), "ulimit")
	} else {
		assert.ErrorContains(t, err, fmt.Sprintf("may lock %d KiB of memory (ulimit -l)", limit.Cur>>10))
	}
}

// The device takes a part of a list.
func TestPartialPost(t *testing.T) {
	a, b := pair(t, software(t), []string{"double0", "double1"})
	list := make([]ibverbs.SendWR, 8)
	for i := range list {
		list[i] = ibverbs.SendWR{ID: uint64(i), Opcode: ibverbs.RDMAWrite, Flags: ibverbs.Signaled, Addr: a.at(0), Len: 8,
			LKey: a.mr.LKey(), RemoteAddr: b.at(0), RKey: b.mr.RKey()}
	}
	double.Fault(double.PostAfter, 5)
	double.Fault(double.PostErrno, int(syscall.ENOMEM))
	n, err := a.qp.PostSend(list)
	assert.Equal(t, 5, n)
	assert.ErrorIs(t, err, syscall.ENOMEM)
	assert.ErrorContains(t, err, "request 6 of 8")
	for i := range 5 {
		a.succeeds(ibverbs.WCRDMAWrite, uint64(i))
	}
	// A full queue, too, and more than there ever is room for.
	double.Fault(double.Hold, 1)
	for posted := 0; posted < 64; posted += 8 {
		_, err = a.qp.PostSend(list)
		require.NoError(t, err)
	}
	n, err = a.qp.PostSend(list)
	assert.Zero(t, n)
	assert.ErrorIs(t, err, syscall.ENOMEM)
	double.Fault(double.Hold, 0)
	for range 64 {
		a.next()
	}
	n, err = a.qp.PostSend(make([]ibverbs.SendWR, 65))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, syscall.ENOMEM)
}

// What is closed says so; what is in use is not closed.
func TestClosed(t *testing.T) {
	e := newEnd(t, software(t), "double0")
	assert.ErrorIs(t, e.cq.Close(), syscall.EBUSY)
	assert.ErrorIs(t, e.pd.Close(), syscall.EBUSY)
	require.NoError(t, e.qp.Close())
	_, err := e.qp.PostSend(make([]ibverbs.SendWR, 1))
	assert.ErrorIs(t, err, syscall.EBADF)
	_, err = e.qp.PostRecv(make([]ibverbs.RecvWR, 1))
	assert.ErrorIs(t, err, syscall.EBADF)
	assert.ErrorIs(t, e.qp.ToErr(), syscall.EBADF)
	_, err = e.qp.State()
	assert.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, e.cq.Close())
	_, err = e.cq.Poll(make([]ibverbs.WC, 1))
	assert.ErrorIs(t, err, syscall.EBADF)
	assert.ErrorIs(t, e.cq.ReqNotify(false), syscall.EBADF)
	_, err = e.pd.CreateQP(ibverbs.QPOptions{SendCQ: e.cq, RecvCQ: e.cq, MaxSend: 1})
	assert.ErrorIs(t, err, syscall.EBADF)
	_, err = e.pd.CreateQP(ibverbs.QPOptions{})
	assert.ErrorIs(t, err, syscall.EINVAL)
	require.NoError(t, e.ch.Close())
	_, err = e.ch.Event()
	assert.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, e.mr.Close())
	require.NoError(t, e.pd.Close())
	_, err = e.pd.Register(e.at(0), 8, 0)
	assert.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, e.ctx.Close())
	_, err = e.ctx.Device()
	assert.ErrorIs(t, err, syscall.EBADF)
}

func TestNames(t *testing.T) {
	assert.Equal(t, "IBV_WC_RETRY_EXC_ERR", ibverbs.RetryExcErr.String())
	assert.Equal(t, "IBV_WC_TM_RNDV_INCOMPLETE", ibverbs.WCStatus(23).String())
	assert.Equal(t, "IBV_WC_status_99", ibverbs.WCStatus(99).String())
	assert.Equal(t, "IBV_WR_ATOMIC_FETCH_AND_ADD", ibverbs.FetchAdd.String())
	assert.Equal(t, "IBV_WC_RECV_RDMA_WITH_IMM", ibverbs.WCRecvRDMAWI.String())
	assert.Equal(t, "IBV_EVENT_GID_CHANGE", ibverbs.EventName(18))
	assert.Equal(t, 4096, ibverbs.MTUBytes(5))
}

// Posting and polling allocate nothing.
// raceDetector says whether this test runs under it.
var raceDetector bool

func TestPostAndPollAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	a, b := pair(t, software(t), []string{"double0", "double1"})
	list := make([]ibverbs.SendWR, 16)
	for i := range list {
		list[i] = ibverbs.SendWR{Opcode: ibverbs.RDMAWrite, Addr: a.at(0), Len: 8, LKey: a.mr.LKey(), RemoteAddr: b.at(0), RKey: b.mr.RKey()}
	}
	list[15].Flags = ibverbs.Signaled
	recvs := []ibverbs.RecvWR{{Addr: b.at(0), Len: 8, LKey: b.mr.LKey()}}
	wcs := make([]ibverbs.WC, 16)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := a.qp.PostSend(list); err != nil {
			t.Error(err)
		}
		if n, err := a.cq.Poll(wcs); n != 1 || err != nil {
			t.Error(n, err)
		}
		if err := a.cq.ReqNotify(false); err != nil {
			t.Error(err)
		}
		_, _ = b.qp.PostRecv(recvs)
	}))
}

func BenchmarkPostPoll(b *testing.B) {
	x, y := pair(b, software(b), []string{"double0", "double1"})
	list := []ibverbs.SendWR{{Opcode: ibverbs.RDMAWrite, Flags: ibverbs.Signaled, Addr: x.at(0), Len: 8, LKey: x.mr.LKey(),
		RemoteAddr: y.at(0), RKey: y.mr.RKey()}}
	wcs := make([]ibverbs.WC, 16)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = x.qp.PostSend(list)
		_, _ = x.cq.Poll(wcs)
	}
}
