package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// wide makes transports with several connections to each rank.
func wide(g Guard) fabrictest.Make {
	return func(dir fabric.Directory) (fabric.Transport, error) {
		return New(dir, Options{Guard: g, Connections: triedConnections})
	}
}

func TestConformanceOfSeveralConnections(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) { fabrictest.Run(t, wide(g)) })
}

// couple returns two connected transports that nobody polls but the test.
func couple(t *testing.T, make fabrictest.Make) (ts [2]*Transport, eps [2]fabric.Endpoint, sinks [2]*script) {
	t.Helper()
	for i, dir := range fabrictest.Directories(2) {
		tr, err := make(dir)
		require.NoError(t, err)
		t.Cleanup(func() { _ = tr.Close() })
		ts[i], sinks[i] = tr.(*Transport), &script{}
	}
	for i := range ts {
		ep, err := ts[i].Connect(1 - i)
		require.NoError(t, err)
		eps[i] = ep
	}
	n := max(1, ts[0].options.Connections)
	fabrictest.Until(t, "the connections", func() bool {
		turns(ts, sinks)
		return open0(ts[0]) && open0(ts[1]) && (ts[0].options.Measure || lanesOf(ts[0]) == n && lanesOf(ts[1]) == n)
	})
	return ts, eps, sinks
}

func turns(ts [2]*Transport, sinks [2]*script) {
	ts[0].Poll(sinks[0])
	ts[1].Poll(sinks[1])
}

// the other rank's lane 0
func first(tr *Transport) *pair { return &tr.pairs[1-tr.id.rank] }

func open0(tr *Transport) bool { return first(tr).state == open }

func lanesOf(tr *Transport) int {
	p := first(tr)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.openLanes())
}

// Messages of all sizes arrive in their order, in both directions at once, however the lanes are read.
func TestOrderOfLanes(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) {
		ts, eps, sinks := couple(t, wide(g))
		r := rand.New(rand.NewPCG(5, uint64(g)))
		var sent, read [2]int
		const n = 500
		buf := make([]byte, maxShort)
		used := map[int]bool{}
		for end := time.Now().Add(fabrictest.Patience); read[0] < n || read[1] < n; {
			require.True(t, time.Now().Before(end), "%v sent, %v read", sent, read)
			me := r.IntN(2)
			if r.IntN(3) > 0 && sent[me] < n {
				size := []int{8, 100, joinMax, placeMin + 8, laneMin, piece, piece + 1, maxShort}[r.IntN(8)]
				binary.LittleEndian.PutUint64(buf, uint64(sent[me]))
				fabrictest.Fill(buf[8:size], uint64(sent[me]))
				if err := eps[me].Send(&fabric.Header{Kind: 1, Aux: uint32(sent[me])}, buf[:size]); err == nil {
					used[first(ts[me]).turn] = true
					sent[me]++
				} else {
					require.Equal(t, fabric.ErrAgain, err)
				}
			}
			ts[me].Poll(sinks[me])
			for _, payload := range sinks[me].payloads {
				require.Equal(t, uint64(read[me]), binary.LittleEndian.Uint64([]byte(payload)))
				want := make([]byte, len(payload)-8)
				fabrictest.Fill(want, uint64(read[me]))
				require.Equal(t, string(want), payload[8:])
				read[me]++
			}
			sinks[me].payloads, sinks[me].headers = nil, nil
			require.Empty(t, sinks[me].broken)
		}
		assert.Len(t, used, triedConnections, "all lanes were used")
		assert.Empty(t, ts[0].earlies)
	})
}

// A lane that breaks breaks the pair, at both ends, once, and what has arrived before is delivered in order.
func TestLaneThatBreaks(t *testing.T) {
	for lane := range triedConnections {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			ts, eps, sinks := couple(t, wide(Authenticated))
			for k := range 30 {
				require.NoError(t, eps[0].Send(&fabric.Header{Kind: 1, Aux: uint32(k)}, make([]byte, laneMin+8*k)))
			}
			require.NoError(t, unix.Shutdown(ts[0].pairs[1].lanes[lane].fd, unix.SHUT_RDWR))
			fabrictest.Until(t, "both ends", func() bool {
				turns(ts, sinks)
				return len(sinks[0].broken) > 0 && len(sinks[1].broken) > 0
			})
			for range 100 {
				turns(ts, sinks)
			}
			for i, s := range sinks {
				require.Len(t, s.broken, 1)
				assert.ErrorContains(t, s.broken[0], "connection to rank")
				assert.Error(t, eps[i].Send(&fabric.Header{Kind: 1}, nil))
				assert.Empty(t, ts[i].earlies)
				assert.Empty(t, ts[i].hot)
				for _, p := range ts[i].pairs[1-i].lanes {
					assert.True(t, p == nil || p.fd == -1)
				}
			}
			for k, h := range sinks[1].headers {
				require.Equal(t, uint32(k), h.Aux)
			}
			assert.Len(t, sinks[1].headers, 30, "all had arrived")
			assert.Zero(t, ts[0].queues.Load())
		})
	}
}

// Ranks that have said goodbye close their lanes in any order.
func TestGoodbyeOfLanes(t *testing.T) {
	for lane := range triedConnections {
		ts, eps, sinks := couple(t, wide(Clear))
		for k := range 40 {
			require.NoError(t, eps[0].Send(&fabric.Header{Kind: 1, Aux: uint32(k)}, make([]byte, laneMin)))
		}
		ts[0].Disconnect()
		fabrictest.Until(t, "the answer", func() bool { turns(ts, sinks); return ts[0].Disconnected(1) })
		assert.Len(t, sinks[1].headers, 40, "the goodbye is behind all that was sent")
		_ = unix.Shutdown(ts[0].pairs[1].lanes[lane].fd, unix.SHUT_RDWR)
		for range 50 {
			ts[1].Poll(sinks[1])
		}
		require.NoError(t, ts[0].Close())
		fabrictest.Until(t, "the end", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].broken) > 0 })
		assert.ErrorIs(t, sinks[1].broken[0], fabric.ErrDisconnected)
		assert.Len(t, sinks[1].broken, 1)
	}
}

// Frames with numbers that are not due wait on their lanes, and the others are read meanwhile.
func TestEarlyFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for round := range 80 {
		ts, _, sinks := couple(t, wide(Clear))
		const n = 60
		var want []string
		queues := make([][]byte, triedConnections)
		for k := range n {
			size := []int{0, 8, placeMin + 3, inBytes - headBytes, inBytes + 11, piece}[r.IntN(6)]
			payload := text(size, uint64(k))
			want = append(want, payload)
			lane := r.IntN(len(queues))
			queues[lane] = append(queues[lane], framesFrom(k, fabric.Header{Kind: 1}, payload)...)
		}
		for end := time.Now().Add(fabrictest.Patience); len(sinks[1].payloads) < n; {
			require.True(t, time.Now().Before(end), "round %d: %d of %d", round, len(sinks[1].payloads), n)
			lane := r.IntN(len(queues))
			if q := queues[lane]; len(q) > 0 {
				if got, errno := send(ts[0].pairs[1].lanes[lane].fd, q[:min(len(q), 1+r.IntN(100_000))]); errno == 0 {
					queues[lane] = q[got:]
				}
			}
			ts[1].Poll(sinks[1])
		}
		require.True(t, slices.Equal(want, sinks[1].payloads))
		require.Empty(t, sinks[1].broken)
		for _, tr := range ts {
			_ = tr.Close()
		}
	}
}

// A rank that waits for its descriptor is not kept awake by an early lane, and wakes when a frame becomes due.
func TestEarlyLaneIsNotReported(t *testing.T) {
	ts, _, sinks := couple(t, wide(Clear))
	readable := func() bool {
		for range 3 {
			require.NoError(t, ts[1].Arm())
			for ts[1].Poll(sinks[1]) > 0 {
			}
		}
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(ts[1].FD()), Events: unix.POLLIN}}, 5)
		return n > 0
	}
	frames := framesFrom(1, fabric.Header{Kind: 1}, "second")
	_, errno := send(ts[0].pairs[1].lanes[2].fd, frames)
	require.Zero(t, errno)
	time.Sleep(20 * time.Millisecond)
	assert.False(t, readable())
	assert.Len(t, ts[1].earlies, 1)
	_, errno = send(ts[0].pairs[1].fd, framesFrom(0, fabric.Header{Kind: 1}, "first"))
	require.Zero(t, errno)
	fabrictest.Until(t, "both", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].payloads) == 2 })
	assert.Equal(t, []string{"first", "second"}, sinks[1].payloads)
	_, errno = send(ts[0].pairs[1].lanes[2].fd, framesFrom(2, fabric.Header{Kind: 1}, "third"))
	require.Zero(t, errno)
	fabrictest.Until(t, "the lane is heard again", func() bool { return readable() || len(sinks[1].payloads) == 3 })
}

// More connections are made, and used, where the network limits each, and not where it does not; if they
// can't be made the pair goes on with one.
func TestMeasuredConnections(t *testing.T) {
	const cap = 40 << 20 // bytes a second
	measured := func(dir fabric.Directory) (fabric.Transport, error) {
		return New(dir, Options{Guard: Authenticated, Connections: triedConnections, Measure: true})
	}
	limit := func(tr *Transport) {
		first(tr).mu.Lock()
		defer first(tr).mu.Unlock()
		first(tr).eachLane(func(p *pair) {
			if p.state == open {
				require.NoError(t, unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, cap))
			}
		})
	}
	for name, c := range map[string]struct {
		spoil func(tr *Transport)
		lanes int
		using bool
	}{
		"four": {func(*Transport) {}, triedConnections, true},
		"none can be made": {func(tr *Transport) {
			tr.dir = other{tr.dir, tr.dir.Secret(), map[int][]byte{1: encodeCard([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, 1)}} // nobody listens at port 1
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var ts [2]*Transport
			var eps [2]fabric.Endpoint
			var sinks [2]*script
			buf := make([]byte, piece)
			measure := func() (using bool) {
				ts, eps, sinks = couple(t, measured)
				c.spoil(ts[0])
				settled := func() bool { return first(ts[0]).meter.phase == settled }
				for end := time.Now().Add(fabrictest.Patience); !settled(); {
					require.True(t, time.Now().Before(end), "phase %d", first(ts[0]).meter.phase)
					limit(ts[0])
					for eps[0].Send(&fabric.Header{Kind: 1}, buf) == nil {
					}
					turns(ts, sinks)
					sinks[1].payloads, sinks[1].headers = nil, nil
				}
				return len(first(ts[0]).using) == triedConnections
			}
			// A machine that stops for a part of a second looks like a slow network.
			for try := 0; measure() != c.using && try < 9; try++ {
			}
			assert.Equal(t, c.lanes, lanesOf(ts[0]))
			assert.Equal(t, c.using, len(first(ts[0]).using) == triedConnections)
			assert.Equal(t, c.using, strings.Contains(ts[0].Describe(1), "and 3 more"), ts[0].Describe(1))
			if c.using {
				most := 0
				for try := 0; try < 20 && most <= 1.5*cap; try++ {
					begin, bytes := time.Now(), 0
					for time.Since(begin) < time.Second {
						for eps[0].Send(&fabric.Header{Kind: 1}, buf) == nil {
							bytes += len(buf)
						}
						turns(ts, sinks)
						sinks[1].payloads, sinks[1].headers = nil, nil
					}
					most = max(most, bytes)
				}
				assert.Greater(t, float64(most), 1.5*cap, "more than a connection carries")
			}
			assert.Empty(t, sinks[0].broken)
		})
	}
}

// A lane that one rank wants while the other tears the pair down disappears with it.
func TestLanesOfARankThatLeaves(t *testing.T) {
	for range 30 {
		ts, _, sinks := couple(t, guarded(Clear))
		ts[0].options.Connections, ts[1].options.Connections = MaxConnections, MaxConnections
		for _, tr := range ts {
			tr.mu.Lock()
			tr.widen(first(tr))
			tr.mu.Unlock()
		}
		for range rand.IntN(8) {
			turns(ts, sinks)
		}
		ts[0].Disconnect()
		fabrictest.Until(t, "the answer", func() bool { turns(ts, sinks); return ts[0].Disconnected(1) })
		require.NoError(t, ts[0].Close())
		fabrictest.Until(t, "the end", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].broken) > 0 })
		assert.True(t, errors.Is(sinks[1].broken[0], fabric.ErrDisconnected), sinks[1].broken[0])
		assert.Empty(t, ts[1].seeking)
		require.NoError(t, ts[1].Close())
		assert.Empty(t, ts[1].attempts)
	}
}
