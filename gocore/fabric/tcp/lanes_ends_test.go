package tcp

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// hook is a script that calls a function for each message.
type hook struct {
	script
	on func(h *fabric.Header)
}

func (s *hook) Deliver(src int, h *fabric.Header, payload []byte) {
	s.script.Deliver(src, h, payload)
	if s.on != nil {
		s.on(h)
	}
}

// A pair is not drained while messages are still to be delivered.
func TestDrainedWithLanes(t *testing.T) {
	ts, eps, sinks := couple(t, wide(Clear))
	require.NoError(t, eps[0].Send(&fabric.Header{Kind: 1}, []byte("x")))
	fabrictest.Until(t, "first", func() bool { turns(ts, sinks); return len(sinks[1].payloads) == 1 })
	// lane 0 is hot at 1. Two frames on lanes 1 and 2, then all lanes FIN.
	_, e := send(ts[0].pairs[1].lanes[1].fd, framesFrom(1, fabric.Header{Kind: 1}, "a"))
	require.Zero(t, e)
	_, e = send(ts[0].pairs[1].lanes[2].fd, framesFrom(2, fabric.Header{Kind: 1}, "b"))
	require.Zero(t, e)
	for k := range 4 {
		require.NoError(t, unix.Shutdown(ts[0].pairs[1].lanes[k].fd, unix.SHUT_WR))
	}
	time.Sleep(20 * time.Millisecond)
	var drained []bool
	h := &hook{on: func(*fabric.Header) { drained = append(drained, ts[1].Drained(0)) }}
	for range 20 {
		ts[1].Poll(h)
	}
	assert.Len(t, h.payloads, 2)
	assert.Len(t, h.broken, 1)
	for _, d := range drained {
		assert.False(t, d, "drained although a message is being delivered / more are to be")
	}
}

// What the kernel still sends for a process that has ended arrives, on all lanes.
func testDeath(t *testing.T, lanes int) {
	ts, eps, sinks := couple(t, func(dir fabric.Directory) (fabric.Transport, error) {
		return New(dir, Options{Connections: lanes})
	})
	for k := range lanes {
		if k > 0 || lanes == 1 {
			require.NoError(t, unix.SetsockoptInt(ts[0].pairs[1].lanes[k].fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 10<<20))
		}
	}
	n := 0
	for range 20 {
		if eps[0].Send(&fabric.Header{Kind: 1, Aux: uint32(n)}, make([]byte, 100<<10)) != nil {
			break
		}
		n++
	}
	r := first(ts[0]).route
	q := 0
	r.eachLane(func(p *pair) { q += len(p.queue) - p.sent })
	require.Zero(t, q)
	// the kernel ends the process: FIN on all, the buffers are still sent
	r.eachLane(func(p *pair) { _ = unix.Shutdown(p.fd, unix.SHUT_WR) })
	fabrictest.Until(t, "broken", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].broken) > 0 })
	assert.Len(t, sinks[1].headers, n, "what was sent before the end is delivered")
}

func TestDeathOfOne(t *testing.T)  { testDeath(t, 1) }
func TestDeathOfFour(t *testing.T) { testDeath(t, 4) }

// A transport that closes sends what it has queued, on all lanes.
func testClose(t *testing.T, lanes int, g Guard) {
	ts, eps, sinks := couple(t, func(dir fabric.Directory) (fabric.Transport, error) {
		return New(dir, Options{Connections: lanes, Guard: g})
	})
	n := 0
	for k := range lanes { // all equally
		require.NoError(t, unix.SetsockoptInt(ts[0].pairs[1].lanes[k].fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 20<<20))
	}
	for n < 30 && eps[0].Send(&fabric.Header{Kind: 1, Aux: uint32(n)}, make([]byte, 128<<10)) == nil {
		n++
	}
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		for !stop.Load() && len(sinks[1].broken) == 0 {
			ts[1].Poll(sinks[1])
		}
		close(done)
	}()
	ts[0].linger = time.Minute
	require.NoError(t, ts[0].Close())
	time.AfterFunc(fabrictest.Patience, func() { stop.Store(true) })
	<-done
	assert.Len(t, sinks[1].headers, n)
}

func TestCloseOfOne(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) { testClose(t, 1, g) })
}
func TestCloseOfFour(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) { testClose(t, 4, g) })
}

// An early lane that is reset does not keep a rank awake.
func TestEarlyLaneThatIsReset(t *testing.T) {
	ts, _, sinks := couple(t, wide(Clear))
	lane := ts[0].pairs[1].lanes[2]
	_, e := send(lane.fd, framesFrom(1, fabric.Header{Kind: 1}, "second"))
	require.Zero(t, e)
	time.Sleep(10 * time.Millisecond)
	for range 20 {
		ts[1].Poll(sinks[1])
	}
	require.Len(t, ts[1].earlies, 1)
	require.NoError(t, unix.SetsockoptLinger(lane.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	fd := lane.fd
	_ = unix.EpollCtl(ts[0].epoll, unix.EPOLL_CTL_DEL, fd, nil)
	require.NoError(t, unix.Close(fd)) // RST
	lane.mu.Lock()
	lane.fd = -1
	lane.state = broken
	lane.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	spins := 0
	for range 1000 {
		_ = ts[1].Arm()
		if ts[1].Poll(sinks[1]) > 0 {
			continue
		}
		if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(ts[1].FD()), Events: unix.POLLIN}}, 1); n > 0 {
			spins++
		}
	}
	assert.Less(t, spins, 10)
}

// A changed number is noticed when no frame can be the one that is due.
func TestForgedNumber(t *testing.T) {
	for lanes := range 2 {
		ts, eps, sinks := couple(t, func(dir fabric.Directory) (fabric.Transport, error) {
			return New(dir, Options{Connections: 1 + 3*lanes, Guard: Authenticated})
		})
		p := first(ts[0])
		p.mu.Lock()
		buf := make([]byte, sealedBytes(8))
		f := p.pack(buf, &fabric.Header{Kind: 1}, make([]byte, 8))
		f[6] ^= 1 // 256 further
		_, e := send(p.fd, f)
		p.mu.Unlock()
		require.Zero(t, e)
		for k := range 40 {
			_ = eps[0].Send(&fabric.Header{Kind: 1, Aux: uint32(k)}, make([]byte, laneMin))
		}
		for end := time.Now().Add(fabrictest.Patience); time.Now().Before(end) && len(sinks[1].broken) == 0; {
			turns(ts, sinks)
		}
		assert.NotEmpty(t, sinks[1].broken)
	}
}

// Lanes that the acceptor had no room for are tried again.
func TestLanesAreTriedAgain(t *testing.T) {
	const n = 50
	var ts []*Transport
	var sinks []*script
	for _, dir := range fabrictest.Directories(n) {
		tr, err := New(dir, Options{Connections: 4})
		require.NoError(t, err)
		defer tr.Close()
		ts, sinks = append(ts, tr), append(sinks, &script{})
	}
	for _, tr := range ts[1:] {
		_, err := tr.Connect(0)
		require.NoError(t, err)
	}
	for end := time.Now().Add(fabrictest.Patience); time.Now().Before(end) && !whole(ts[1:]); {
		for i := 1; i < n; i++ {
			ts[i].Poll(sinks[i])
		}
		time.Sleep(2 * time.Millisecond)
		for range 3 {
			ts[0].Poll(sinks[0])
		}
	}
	assert.True(t, whole(ts[1:]))
}

// After the goodbye lane 0 may be early for a frame whose lane has ended.
func TestEarlyLaneAfterGoodbye(t *testing.T) {
	ts, eps, sinks := couple(t, wide(Clear))
	ts[0].Disconnect()
	fabrictest.Until(t, "the answer", func() bool { turns(ts, sinks); return ts[0].Disconnected(1) })
	p := first(ts[0])
	p.mu.Lock()
	p.turn = 1
	_ = unix.SetsockoptInt(p.lanes[1].fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 1<<20)
	p.mu.Unlock()
	for range 3 { // the peer does not need them
		p.turn = 1
		require.NoError(t, eps[0].Send(&fabric.Header{Kind: 1}, make([]byte, maxShort)))
	}
	require.NoError(t, eps[0].Send(&fabric.Header{Kind: 1}, []byte("x")))
	for range 100 {
		ts[1].Poll(sinks[1])
	}
	require.NoError(t, ts[0].Close())
	spins := 0
	for end := time.Now().Add(fabrictest.Patience); time.Now().Before(end) && len(sinks[1].broken) == 0; {
		if ts[1].Poll(sinks[1]) == 0 {
			spins++
			time.Sleep(time.Millisecond)
		}
	}
	assert.NotEmpty(t, sinks[1].broken)
}

// A peer that is stopped while the meter compares is not taken for a slow network.
func TestPauseWhileMeasuring(t *testing.T) {
	for range 9 {
		if lanesAfterAPause(t) == 4 {
			return
		}
	}
	assert.Equal(t, 4, lanesAfterAPause(t))
}

// lanesAfterAPause returns how many lanes are used after a comparison with a pause. A machine that stops for a part of
// a second beside that looks like a slow network.
func lanesAfterAPause(t *testing.T) int {
	const cap = 40 << 20
	ts, eps, sinks := couple(t, func(dir fabric.Directory) (fabric.Transport, error) {
		return New(dir, Options{Connections: 4, Measure: true})
	})
	buf := make([]byte, piece)
	ph := func() phase { return first(ts[0]).meter.phase }
	stalled := false
	for end := time.Now().Add(30 * time.Second); ph() != settled; {
		require.True(t, time.Now().Before(end))
		first(ts[0]).mu.Lock()
		first(ts[0]).eachLane(func(p *pair) {
			if p.state == open {
				_ = unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, cap)
			}
		})
		first(ts[0]).mu.Unlock()
		for eps[0].Send(&fabric.Header{Kind: 1}, buf) == nil {
		}
		if ph() == comparing && !stalled {
			stalled = true
			time.Sleep(time.Second)
		}
		turns(ts, sinks)
		sinks[1].payloads, sinks[1].headers = nil, nil
	}
	return len(first(ts[0]).using)
}

// whole reports whether all ranks have all their lanes to rank 0.
func whole(ts []*Transport) bool {
	return !slices.ContainsFunc(ts, func(tr *Transport) bool {
		p := &tr.pairs[0]
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.openLanes()) < tr.options.Connections
	})
}
