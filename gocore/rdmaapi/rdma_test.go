package rdmaapi

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/rdmaapi/backend"
)

// end is a queue pair with the objects that it needs.
type end struct {
	t               *testing.T
	ctx, pd, cq, qp int64
	rcq             int64
	buf             []byte
	mr              int64
	addr            uint64
	rkey            uint64
}

func must(t *testing.T, c int64) int64 {
	t.Helper()
	if c < 0 {
		require.Fail(t, ErrorOf(c))
	}
	return c
}

func addrOf[T any](p *T) int64 { return int64(uintptr(unsafe.Pointer(p))) }

func newEnd(t *testing.T, by string, size int) *end {
	t.Helper()
	// Not Go's memory, which the race detector would check: it can't see what orders
	// the accesses of the two sides.
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Munmap(buf) }) //nolint:errcheck // the process ends soon
	e := &end{t: t, buf: buf}
	e.ctx = must(t, Open(by, ""))
	t.Cleanup(func() { Close(e.ctx) })
	e.pd = must(t, AllocPD(e.ctx))
	e.cq = must(t, CreateCQ(e.ctx, 512))
	e.rcq = must(t, CreateCQ(e.ctx, 512))
	e.qp = must(t, CreateQP(e.pd, e.cq, e.rcq, 128, 128, 256))
	e.mr = must(t, Register(e.pd, addrOf(&e.buf[0]), int64(size), int64(backend.AllAccess)))
	m, _, e2 := get[*memory](e.mr, "", "")
	require.Nil(t, e2)
	e.addr, e.rkey = m.region.Addr(), m.region.RKey()
	return e
}

func (e *end) info() []byte {
	b := make([]byte, maxInfo)
	return b[:must(e.t, PairExchange(e.qp, addrOf(&b[0]), int64(len(b))))]
}

func (e *end) connect(info []byte) int64 {
	return PairConnect(e.qp, addrOf(&info[0]), int64(len(info)), int64(5*time.Second/time.Microsecond), 7, 1000)
}

func newPair(t *testing.T, by string, size int) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, by, size), newEnd(t, by, size)
	must(t, a.connect(b.info()))
	must(t, b.connect(a.info()))
	return a, b
}

// wr returns a signalled request of e on memory of to.
func (e *end) wr(op backend.Op, to *end, id, offset, roffset, n int64) WR {
	w := WR{Op: int64(op), Flags: wrSignaled, ID: id, Region: e.mr, Offset: offset, N: n, Raddr: to.addr, Rlen: uint64(len(to.buf)), Roffset: roffset, RKey: to.rkey}
	return w
}

func (e *end) post(wrs ...WR) int64 { return PostSend(e.qp, addrOf(&wrs[0]), int64(len(wrs))) }

func (e *end) recv(id, offset, n int64) int64 {
	r := RR{ID: id, Region: e.mr, Offset: offset, N: n}
	return PostRecv(e.qp, addrOf(&r), 1)
}

func wait(t *testing.T, cq int64, n int) []WC {
	t.Helper()
	var all []WC
	for end := time.Now().Add(10 * time.Second); len(all) < n && time.Now().Before(end); {
		var some [64]WC
		all = append(all, some[:must(t, Poll(cq, addrOf(&some[0]), int64(min(len(some), n-len(all)))))]...)
		if len(all) < n {
			must(t, Wait(cq, 100_000))
		}
	}
	require.Len(t, all, n)
	return all
}

func eachBackend(t *testing.T, f func(t *testing.T, by string)) {
	for _, by := range []string{"tcp", "shm"} {
		t.Run(by, func(t *testing.T) { f(t, by) })
	}
}

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed)
	}
}

func TestEveryOperation(t *testing.T) {
	eachBackend(t, func(t *testing.T, by string) {
		for _, n := range []int64{0, 1, 8, 4096, 8193, 300_000, 3 << 20} {
			a, b := newPair(t, by, 4<<20)
			fill(a.buf, 1)
			must(t, a.post(a.wr(backend.OpWrite, b, 1, 0, 16, n)))
			w := wait(t, a.cq, 1)[0]
			assert.EqualValues(t, 0, w.Status)
			assert.Equal(t, a.buf[:n], b.buf[16:16+n])

			fill(b.buf, 2)
			must(t, a.post(a.wr(backend.OpRead, b, 2, 8, 0, n)))
			w = wait(t, a.cq, 1)[0]
			assert.EqualValues(t, 0, w.Status)
			assert.EqualValues(t, wcRead, w.Opcode)
			assert.Equal(t, b.buf[:n], a.buf[8:8+n])

			must(t, b.recv(77, 64, n+8))
			fill(a.buf, 3)
			must(t, a.post(a.wr(backend.OpSend, b, 3, 0, 0, n)))
			r := wait(t, b.rcq, 1)[0]
			assert.Equal(t, WC{WRID: 77, Opcode: wcRecv, Bytes: n, QPNum: r.QPNum, QP: b.qp, Operation: opRecv, Length: n + 8}, r)
			assert.Equal(t, a.buf[:n], b.buf[64:64+n])
			wait(t, a.cq, 1)

			must(t, b.recv(78, 0, 0))
			imm := a.wr(backend.OpWriteImm, b, 4, 0, 0, n)
			imm.Imm = 0xdeadbeef
			must(t, a.post(imm))
			r = wait(t, b.rcq, 1)[0]
			assert.EqualValues(t, wcRecvRDMA, r.Opcode)
			assert.EqualValues(t, 0xdeadbeef, r.Imm)
			assert.EqualValues(t, n, r.Bytes)
			assert.Equal(t, a.buf[:n], b.buf[:n])
			wait(t, a.cq, 1)

			*(*uint64)(unsafe.Pointer(&b.buf[8])) = 40
			add := a.wr(backend.OpFetchAdd, b, 5, 0, 8, 8)
			add.Operand = 2
			swap := a.wr(backend.OpCompareSwap, b, 6, 16, 8, 8)
			swap.Compare, swap.Operand = 42, 1<<63
			must(t, a.post(add, swap))
			for _, w := range wait(t, a.cq, 2) {
				assert.EqualValues(t, 0, w.Status)
			}
			assert.EqualValues(t, 40, *(*uint64)(unsafe.Pointer(&a.buf[0])))
			assert.EqualValues(t, 42, *(*uint64)(unsafe.Pointer(&a.buf[16])))
			assert.Equal(t, uint64(1)<<63, *(*uint64)(unsafe.Pointer(&b.buf[8])))
		}
	})
}
