package soft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/rdmaapi/backend"
)

var connection = backend.Connection{Timeout: 10 * time.Second, RNRRetry: 7, RNRTimer: time.Millisecond}

// side is a queue pair with memory between guards, which must not be written.
type side struct {
	ctx    *context
	qp     *qp
	memory []byte
	region *region
}

const (
	guard = 4096
	room  = 64 << 10
)

// mapped returns memory that is not Go's: the race detector does not check it, and
// could not see what orders the accesses of the two sides.
func mapped(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Munmap(b) }) //nolint:errcheck // the process ends soon
	return b
}

func newSide(t testing.TB, b Backend) *side {
	t.Helper()
	devices, err := b.Devices()
	require.NoError(t, err)
	c, err := b.Open(devices[0].Name)
	require.NoError(t, err)
	s := &side{ctx: c.(*context), memory: mapped(t, guard+room+guard)}
	t.Cleanup(func() { s.ctx.Close() })
	d, err := c.AllocPD()
	require.NoError(t, err)
	cq, err := c.CreateCQ(1024)
	require.NoError(t, err)
	q, err := d.CreateQP(backend.QPInit{Send: cq, Recv: cq, MaxSend: 128, MaxRecv: 128})
	require.NoError(t, err)
	r, err := d.Register(unsafe.Pointer(&s.memory[guard]), room, backend.AllAccess)
	require.NoError(t, err)
	s.qp, s.region = q.(*qp), r.(*region)
	for i := range guard {
		s.memory[i], s.memory[guard+room+i] = 0xa5, 0xa5
	}
	return s
}

func (s *side) info(t testing.TB) info {
	b, err := s.qp.Info()
	require.NoError(t, err)
	i, err := parseInfo(b)
	require.NoError(t, err)
	return i
}

func (s *side) connect(t testing.TB, to *side) {
	require.NoError(t, s.qp.Connect(to.info(t).bytes(), connection))
}

func (s *side) post(t testing.TB, op backend.Op, n int, to *side) {
	n, err := s.qp.PostSend([]backend.SendWR{{Op: op, Signaled: true, Region: s.region, Local: unsafe.Pointer(&s.memory[guard]), N: n, Raddr: to.region.Addr(), RKey: to.region.RKey()}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func (s *side) wait(t testing.TB, n int) []backend.Completion {
	t.Helper()
	all := make([]backend.Completion, 0, n)
	for end := time.Now().Add(20 * time.Second); len(all) < n && time.Now().Before(end); {
		var some [64]backend.Completion
		got, err := s.qp.sendCQ.Poll(some[:min(64, n-len(all))])
		require.NoError(t, err)
		if all = append(all, some[:got]...); len(all) < n {
			require.NoError(t, s.qp.sendCQ.Wait(50*time.Millisecond))
		}
	}
	require.Len(t, all, n)
	return all
}

func (s *side) checkGuards(t testing.TB) {
	t.Helper()
	for i := range guard {
		if s.memory[i] != 0xa5 || s.memory[guard+room+i] != 0xa5 {
			t.Fatalf("memory outside of the region was written, %d bytes from it", i)
		}
	}
}

func both(t *testing.T, f func(t *testing.T, b Backend)) {
	for _, b := range []Backend{TCP, SHM} {
		t.Run(b.kind, func(t *testing.T) { f(t, b) })
	}
}

// linked connects a to a peer that the test simulates, and returns the peer's socket
// after the handshake.
func linked(t testing.TB, b Backend) (a *side, peer *side, conn net.Conn) {
	t.Helper()
	a, peer = newSide(t, b), newSide(t, b)
	for bytes.Compare(peer.qp.secret, a.qp.secret) > 0 { // the peer has to dial
		require.NoError(t, peer.qp.Reset())
	}
	a.connect(t, peer)
	l, err := dial(peer.qp, peer.qp.secret, a.info(t), func(net.Conn) bool { return true })
	require.NoError(t, err)
	l.process.close()
	t.Cleanup(func() { l.conn.Close() })
	return a, peer, l.conn
}

func (s *side) receives(t testing.TB, n int) {
	wrs := make([]backend.RecvWR, n)
	for i := range wrs {
		wrs[i] = backend.RecvWR{Cookie: uint64(i), Region: s.region, Local: unsafe.Pointer(&s.memory[guard]), N: 1000}
	}
	_, err := s.qp.PostRecv(wrs)
	require.NoError(t, err)
}

func TestFramesSurviveTheWire(t *testing.T) {
	for _, f := range []frame{
		{kind: frWrite, flags: flFirst | flLast | flImm, psn: 1, imm: 2, rkey: 3, n: 4, total: 4, remote: 6, local: 7, operand: 8},
		{kind: frRead, flags: flFirst | flLast | flByAddr, psn: 1 << 31, n: maxMessage, total: maxMessage},
		{kind: frNak, status: uint8(backend.RemAccessErr), n: maxText},
	} {
		b := f.append(nil)
		require.Len(t, b, headerBytes)
		got, err := parse(b)
		require.NoError(t, err)
		assert.Equal(t, f, got)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add((&frame{kind: frWrite, flags: flFirst | flLast, n: 5, total: 5}).append(nil))
	f.Add((&frame{kind: frNak, status: 10, n: 3}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerBytes {
			return
		}
		if got, err := parse(b[:headerBytes]); err == nil && (got.payload() < 0 || got.payload() > segment) {
			t.Fatalf("a payload of %d bytes", got.payload())
		}
	})
}

func FuzzInfo(f *testing.F) {
	f.Add(info{num: 5, secret: make([]byte, secretBytes), addresses: []string{"127.0.0.1:1", "@x"}}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := parseInfo(b); err == nil {
			again, err := parseInfo(i.bytes())
			require.NoError(t, err)
			require.Equal(t, i, again)
		}
	})
}

// survives makes a peer send bytes to a queue pair with outstanding work requests: all
// of them must complete, once, and no other memory may be written.
func survives(t testing.TB, sent []byte) {
	a, peer, conn := linked(t, SHM)
	a.receives(t, 4)
	a.post(t, backend.OpWrite, 100, peer)
	a.post(t, backend.OpRead, 100, peer)
	a.post(t, backend.OpFetchAdd, 8, peer)
	go io.Copy(io.Discard, conn) //nolint:errcheck // it ends with the socket
	conn.Write(sent)             //nolint:errcheck // it may be closed by now
	conn.(*net.UnixConn).CloseWrite()
	done := a.wait(t, 7)
	ends := map[bool]map[uint64]int{true: {}, false: {}}
	for _, c := range done {
		ends[c.Recv][c.Cookie]++
	}
	assert.Equal(t, map[uint64]int{0: 1, 1: 1, 2: 1, 3: 1}, ends[true])
	assert.Equal(t, map[uint64]int{0: 3}, ends[false])
	assert.Equal(t, backend.StateErr, a.qp.State())
	time.Sleep(time.Millisecond)
	n, _ := a.qp.sendCQ.Poll(make([]backend.Completion, 8))
	assert.Zero(t, n)
	a.checkGuards(t)
}

// hostile returns frames that are nearly valid.
func hostile(rng *rand.Rand, region *region) []byte {
	var b []byte
	kinds := []uint8{frWrite, frSend, frRead, frCompareSwap, frFetchAdd, frAck, frData, frFetched, frNak, frRNR, frReceive, 0, 77}
	for psn := uint32(0); len(b) < 4000; {
		f := frame{kind: kinds[rng.Intn(len(kinds))], flags: uint8(rng.Intn(16)), status: uint8(rng.Intn(24)), psn: psn, rkey: region.key}
		f.n = uint64([]int{0, 1, 8, 100, 1000, 1001, room, room + 1}[rng.Intn(8)])
		f.total = f.n
		if rng.Intn(4) == 0 {
			f.total = uint64(rng.Intn(2 * room))
		}
		f.remote = region.addr + uint64([]int{0, 0, 8, 3, room - 8, room, room + 8}[rng.Intn(7)])
		if rng.Intn(3) == 0 {
			f.remote = 0
		}
		f.local = rng.Uint64()
		b = f.append(b)
		b = append(b, make([]byte, min(max(f.payload(), 0), 2000))...)
		if rng.Intn(5) > 0 {
			psn++
		}
	}
	return b
}

func TestHostilePeers(t *testing.T) {
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		a, _, _ := linked(t, SHM) // for a key that is valid, in another context
		survives(t, hostile(rng, a.region))
	}
}

func FuzzPeer(f *testing.F) {
	f.Add((&frame{kind: frSend, flags: flFirst | flLast, n: 3, total: 3}).append(nil))
	f.Add((&frame{kind: frData, flags: flLast, psn: 1, n: 0}).append(nil))
	f.Add((&frame{kind: frRNR, psn: 1}).append((&frame{kind: frReceive}).append(nil)))
	f.Fuzz(func(t *testing.T, b []byte) { survives(t, b) })
}

// Frames with the right key access memory as near to the region's ends as possible.
func TestHostileFramesWithTheRightKey(t *testing.T) {
	for _, f := range []frame{
		{kind: frWrite, flags: flFirst | flLast, n: 9, total: 9, remote: room - 8},
		{kind: frWrite, flags: flFirst | flLast, n: 8, total: 8, remote: room},
		{kind: frWrite, flags: flFirst | flLast, n: 8, total: 8, remote: ^uint64(0) - 4},
		{kind: frWrite, flags: flFirst, n: 8, total: 16, remote: room - 8},
		{kind: frWrite, flags: flLast, n: 8, total: 8},
		{kind: frRead, flags: flFirst | flLast, n: 16, total: 16, remote: room - 8},
		{kind: frRead, flags: flFirst | flLast, n: maxMessage, total: maxMessage},
		{kind: frFetchAdd, flags: flFirst | flLast, remote: room - 4},
		{kind: frFetchAdd, flags: flFirst | flLast, remote: 4},
		{kind: frSend, flags: flFirst | flLast, n: 1001, total: 1001},
	} {
		a, _, conn := linked(t, TCP)
		a.receives(t, 1)
		f.rkey = a.region.key
		f.remote += a.region.addr
		if f.kind == frSend {
			f.remote = 0
		}
		conn.Write(append(f.append(nil), make([]byte, f.payload())...)) //nolint:errcheck // it may be closed by now
		head := make([]byte, headerBytes)
		conn.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // the socket is open
		if _, err := io.ReadFull(conn, head); err == nil {     // or it is no frame of any correct peer
			nak, err := parse(head)
			require.NoError(t, err)
			assert.EqualValues(t, frNak, nak.kind)
		}
		require.Len(t, a.wait(t, 1), 1)
		a.checkGuards(t)
		assert.Equal(t, backend.StateErr, a.qp.State())
	}
}

func TestUnauthenticatedPeersAreRefused(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		a, peer := newSide(t, b), newSide(t, b)
		for bytes.Compare(peer.qp.secret, a.qp.secret) > 0 {
			require.NoError(t, peer.qp.Reset())
		}
		network := map[string]string{"tcp": "tcp", "shm": "unix"}[b.kind]
		_, hello := protocol.Initiate([]byte("another secret"))
		_, known := protocol.Initiate(a.qp.secret)
		for _, said := range [][]byte{nil, []byte("GET / HTTP/1.0\r\n\r\n"), bytes.Repeat([]byte{0xff}, 200), hello, append(known, make([]byte, 4+introductionBytes+32)...)} {
			conn, err := net.Dial(network, a.ctx.listen.Addr().String())
			require.NoError(t, err)
			conn.Write(said)                                             //nolint:errcheck // it may be closed by now
			conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) //nolint:errcheck // the socket is open
			rest, _ := io.ReadAll(conn)
			assert.LessOrEqual(t, len(rest), 80, "a challenge")
			conn.Close()
		}
		// A process with the info of only one of the queue pairs is refused.
		outsider := newSide(t, b)
		outsider.qp.num = peer.qp.num
		got := make(chan error, 1)
		go func() {
			_, err := dial(outsider.qp, outsider.qp.secret, a.info(t), func(net.Conn) bool { return true })
			got <- err
		}()
		time.Sleep(20 * time.Millisecond)
		a.connect(t, peer)
		peer.connect(t, a)
		require.Error(t, <-got)
		peer.memory[guard] = 7
		peer.post(t, backend.OpWrite, 1, a)
		assert.Equal(t, backend.Success, peer.wait(t, 1)[0].Status)
		assert.EqualValues(t, 7, a.memory[guard])
	})
}

// A dialer learns at once what is wrong with an address or an info.
func TestWhatIsNoQueuePair(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		a, peer := newSide(t, b), newSide(t, b)
		call := func(to info) error {
			_, err := dial(a.qp, a.qp.secret, to, func(net.Conn) bool { return true })
			return err
		}
		gone := peer.info(t)
		require.NoError(t, peer.qp.Reset())
		assert.EqualError(t, call(gone), fmt.Sprintf("the peer has no queue pair %d any more", gone.num))
		renewed := peer.info(t)
		require.NoError(t, peer.qp.Close())
		assert.EqualError(t, call(renewed), fmt.Sprintf("the peer has no queue pair %d any more", gone.num))
		assert.Empty(t, peer.ctx.tagged)
		for said, want := range map[string]string{
			"220 mail.example.com ESMTP\r\n":  "what answers is no queue pair",
			"gormapy\x02transfer":             "what answers is no queue pair",
			"gormapy\x03soft\x00\x00\x00\x00": "it speaks version 3; this is version 2",
		} {
			network, address := "tcp", "127.0.0.1:0"
			if b == SHM {
				network, address = "unix", fmt.Sprintf("@gormapy-test-no-queue-pair-%d", os.Getpid())
			}
			l, err := net.Listen(network, address)
			require.NoError(t, err)
			go func() {
				conn, err := l.Accept()
				if err == nil {
					conn.Write([]byte(said)) //nolint:errcheck // the other end reads it
					io.ReadAll(conn)         //nolint:errcheck // until it hangs up
					conn.Close()
				}
			}()
			assert.EqualError(t, call(info{num: 1, secret: gone.secret, addresses: []string{l.Addr().String()}}), want)
			l.Close()
		}
	})
}

// A probe that somebody has replaced, who knows the agent's info only, is not used.
func TestTheProbeIsTheDialers(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		a, peer := newSide(t, b), newSide(t, b)
		conn, err := reach(b.kind, a.info(t).addresses)
		require.NoError(t, err)
		defer conn.Close()
		x, err := protocol.Call(conn, a.qp.secret)
		require.NoError(t, err)
		bound := append(binary.LittleEndian.AppendUint32(nil, peer.qp.num), peer.ctx.probeBytes()...)
		binding := x.Bind(peer.qp.secret, bound)
		bound[4] ^= 1
		require.NoError(t, x.Tell(conn, append(bound, binding...)))
		require.Eventually(t, func() bool {
			a.qp.mu.Lock()
			defer a.qp.mu.Unlock()
			return a.qp.parked != nil
		}, 10*time.Second, time.Millisecond)
		a.qp.mu.Lock()
		ac := a.qp.parked
		a.qp.mu.Unlock()
		_, err = ac.finish(a.qp, a.qp.secret, peer.info(t))
		assert.ErrorIs(t, err, errUnauthenticated)
		bound[4] ^= 1
		copy(ac.introduction, bound)
		done := make(chan error, 1)
		go func() {
			l, err := ac.finish(a.qp, a.qp.secret, peer.info(t))
			if err == nil {
				l.process.close()
			}
			done <- err
		}()
		x.Use(slices.Concat(peer.qp.secret, a.qp.secret))
		_, err = x.Hear(conn)
		require.NoError(t, err)
		require.NoError(t, x.Tell(conn, flag(false)))
		require.NoError(t, <-done, "only the probe was wrong")
	})
}

func TestEverythingIsRepeatedInOrderUntilReceivesAreThere(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		a, c := newSide(t, b), newSide(t, b)
		a.connect(t, c)
		c.connect(t, a)
		for i := range 100 {
			a.memory[guard+i] = byte(i + 1)
			op := backend.OpWrite
			if i%3 == 0 {
				op = backend.OpSend
			}
			w := backend.SendWR{Cookie: uint64(i), Op: op, Signaled: true, Region: a.region, Local: unsafe.Pointer(&a.memory[guard+i]), N: 1, Raddr: c.region.Addr() + uint64(i), RKey: c.region.RKey()}
			_, err := a.qp.PostSend([]backend.SendWR{w})
			require.NoError(t, err)
		}
		for i := range 34 {
			time.Sleep(time.Duration(i%3) * time.Millisecond)
			_, err := c.qp.PostRecv([]backend.RecvWR{{Cookie: uint64(i), Region: c.region, Local: unsafe.Pointer(&c.memory[guard+3*i]), N: 1}})
			require.NoError(t, err)
		}
		for i, d := range a.wait(t, 100) {
			assert.Equal(t, backend.Completion{Cookie: uint64(i)}, d)
		}
		c.wait(t, 34)
		assert.Equal(t, a.memory[guard:guard+100], c.memory[guard:guard+100])
	})
}

// A payload that is sent without a copy leaves nothing behind: its region may be closed
// before the next request is posted.
func TestARegionIsClosedAfterALongWrite(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		a, c := newSide(t, b), newSide(t, b)
		a.connect(t, c)
		c.connect(t, a)
		r, err := a.qp.pd.Register(unsafe.Pointer(&a.memory[guard]), room, backend.LocalWrite)
		require.NoError(t, err)
		w := backend.SendWR{Op: backend.OpWrite, Signaled: true, Region: r, Local: unsafe.Pointer(&a.memory[guard]), N: smallBytes + 1, Raddr: c.region.Addr(), RKey: c.region.RKey()}
		_, err = a.qp.PostSend([]backend.SendWR{w})
		require.NoError(t, err)
		require.Equal(t, backend.Success, a.wait(t, 1)[0].Status)
		require.NoError(t, r.Close())
		a.memory[guard] = 7
		a.post(t, backend.OpWrite, 1, c)
		assert.Equal(t, backend.Completion{}, a.wait(t, 1)[0])
		assert.EqualValues(t, 7, c.memory[guard])
	})
}

// A region stays busy while a peer that is stopped may still write to it: the peer,
// which the test simulates, has got a read by address.
func TestRegionsThatAPeerMayWriteToStayBusy(t *testing.T) {
	drainTime = 200 * time.Millisecond
	defer func() { drainTime = 5 * time.Second }()
	a, peer, conn := linked(t, SHM)
	a.post(t, backend.OpRead, room, peer)
	head := make([]byte, headerBytes)
	_, err := io.ReadFull(conn, head)
	require.NoError(t, err)
	f, err := parse(head)
	require.NoError(t, err)
	if f.flags&flByAddr == 0 {
		t.Skip("the kernel does not let processes copy here")
	}
	assert.Equal(t, uint64(uintptr(unsafe.Pointer(&a.memory[guard]))), f.local)
	assert.ErrorIs(t, a.region.Close(), backend.ErrBusy)
	a.qp.mu.Lock()
	l := a.qp.link
	a.qp.mu.Unlock()
	require.NoError(t, a.qp.Reset())
	n, _ := a.qp.sendCQ.Poll(make([]backend.Completion, 1))
	assert.Zero(t, n)
	for range 4 { // that its time is up does not mean that it will not write
		l.conn.SetDeadline(time.Now()) //nolint:errcheck // it is open
		time.Sleep(10 * time.Millisecond)
	}
	a.region.pinMu.Lock()
	assert.Equal(t, 1, a.region.pins)
	a.region.pinMu.Unlock()
	conn.Close() // the peer can't write any more
	require.Eventually(t, func() bool {
		a.region.pinMu.Lock()
		defer a.region.pinMu.Unlock()
		return a.region.pins == 0
	}, 10*time.Second, time.Millisecond)
}

func TestAFlushWaitsForAPeerThatMayStillWrite(t *testing.T) {
	a, peer, conn := linked(t, SHM)
	a.post(t, backend.OpRead, room, peer)
	head := make([]byte, headerBytes)
	_, err := io.ReadFull(conn, head)
	require.NoError(t, err)
	if head[1]&flByAddr == 0 {
		t.Skip("the kernel does not let processes copy here")
	}
	nonsense := frame{kind: frAck, psn: 99}
	conn.Write(nonsense.append(nil)) //nolint:errcheck // the socket is open
	require.Eventually(t, func() bool { return a.qp.State() == backend.StateErr }, 10*time.Second, time.Millisecond)
	_, err = a.qp.PostSend([]backend.SendWR{{Cookie: 7, Op: backend.OpSend}})
	require.NoError(t, err)
	a.receives(t, 1)
	n, _ := a.qp.sendCQ.Poll(make([]backend.Completion, 1))
	assert.Zero(t, n)
	conn.Close()
	done := a.wait(t, 3) // in the order of posting
	assert.Equal(t, backend.RetryExcErr, done[0].Status)
	assert.EqualValues(t, 7, done[1].Cookie)
	assert.Equal(t, backend.WRFlushErr, done[1].Status)
	assert.True(t, done[2].Recv)
}

func TestNaksThatComeTooEarly(t *testing.T) {
	a, peer, conn := linked(t, TCP)
	a.post(t, backend.OpRead, 100, peer)
	a.post(t, backend.OpWrite, 100, peer)
	sent := make([]byte, 2*headerBytes+100)
	_, err := io.ReadFull(conn, sent)
	require.NoError(t, err)
	assert.Equal(t, uint32(1), binary.LittleEndian.Uint32(sent[headerBytes+4:]))
	nak := frame{kind: frNak, psn: 1, status: uint8(backend.RemAccessErr)}
	conn.Write(nak.append(nil)) //nolint:errcheck // the socket is open
	done := a.wait(t, 2)        // the read before it was never answered
	assert.Equal(t, []backend.Status{backend.RetryExcErr, backend.WRFlushErr}, []backend.Status{done[0].Status, done[1].Status})
}
