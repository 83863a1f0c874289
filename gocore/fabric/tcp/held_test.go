package tcp

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/sys"
)

// gather calls Gather of an endpoint with a number.
func gather(t *testing.T, ep fabric.Endpoint, k uint32, payload []byte) {
	require.NoError(t, ep.(fabric.Gatherer).Gather(&fabric.Header{Kind: 1, Aux: k}, payload))
}

// nothing requires that nothing arrives at s for a moment, though its transport polls.
func nothing(t *testing.T, tr *Transport, s *script) {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		tr.Poll(s)
	}
	require.Empty(t, s.payloads)
}

// What is held back leaves with Push, with the next frame, long or short, and at the end of a Poll, in order.
func TestHeldBack(t *testing.T) {
	for name, push := range map[string]func(ts [2]*Transport, sinks [2]*script, ep fabric.Endpoint) int{
		"push":  func(_ [2]*Transport, _ [2]*script, ep fabric.Endpoint) int { ep.(fabric.Gatherer).Push(); return 0 },
		"poll":  func(ts [2]*Transport, sinks [2]*script, _ fabric.Endpoint) int { ts[0].Poll(sinks[0]); return 0 },
		"short": func(_ [2]*Transport, _ [2]*script, ep fabric.Endpoint) int { return behind(ep, 10) },
		"long":  func(_ [2]*Transport, _ [2]*script, ep fabric.Endpoint) int { return behind(ep, laneMin) },
		"gathered long": func(_ [2]*Transport, _ [2]*script, ep fabric.Endpoint) int {
			_ = ep.(fabric.Gatherer).Gather(&fabric.Header{Kind: 1, Aux: 4}, make([]byte, laneMin))
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, Clear, func(t *testing.T, g Guard) {
				ts, eps, sinks := couple(t, wide(g))
				for k := range uint32(4) {
					gather(t, eps[0], k, make([]byte, 100*k))
				}
				nothing(t, ts[1], sinks[1])
				n := 4 + push(ts, sinks, eps[0])
				fabrictest.Until(t, "the frames", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].payloads) >= n })
				for k, h := range sinks[1].headers {
					assert.Equal(t, uint32(k), h.Aux)
				}
				assert.False(t, first(ts[0]).held)
			})
		})
	}
}

func behind(ep fabric.Endpoint, n int) int {
	if ep.Send(&fabric.Header{Kind: 1, Aux: 4}, make([]byte, n)) != nil {
		return -1
	}
	return 1
}

// No more than heldMax is held back.
func TestHeldBackIsBounded(t *testing.T) {
	ts, eps, sinks := couple(t, wide(Authenticated))
	for k := range uint32(heldMax/1000 + 1) {
		gather(t, eps[0], k, make([]byte, 1000))
	}
	fabrictest.Until(t, "the frames", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].payloads) > heldMax/2000 })
}

// What handlers gather while a Poll delivers leaves at the end of that Poll.
func TestAnswersAreGathered(t *testing.T) {
	ts, eps, sinks := couple(t, wide(Authenticated))
	const n = 50
	for k := range uint32(n) {
		gather(t, eps[0], k, nil)
	}
	eps[0].(fabric.Gatherer).Push()
	sinks[1].deliver = func(h *fabric.Header) { gather(t, eps[1], h.Aux, nil) }
	fabrictest.Until(t, "the questions", func() bool { ts[1].Poll(sinks[1]); return len(sinks[1].payloads) == n })
	fabrictest.Until(t, "the answers", func() bool { ts[0].Poll(sinks[0]); return len(sinks[0].payloads) == n })
}

// A payload that faults is not sent, and those before it are.
func TestHeldBackFault(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		ts, eps, sinks := couple(t, wide(g))
		bad, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		require.NoError(t, err)
		defer func() { _ = unix.Munmap(bad) }()
		gather(t, eps[0], 0, []byte("before"))
		for _, op := range []func() error{
			func() error { return eps[0].(fabric.Gatherer).Gather(&fabric.Header{Kind: 1, Aux: 7}, bad[:100]) },
			func() error { return eps[0].Send(&fabric.Header{Kind: 1, Aux: 7}, bad[:100]) },
		} {
			require.True(t, sys.IsFault(sys.Touch(func() { _ = op() })))
		}
		gather(t, eps[0], 1, []byte("after"))
		fabrictest.Until(t, "both", func() bool { turns(ts, sinks); return len(sinks[1].payloads) == 2 })
		assert.Equal(t, []string{"before", "after"}, sinks[1].payloads)
	})
}

// Messages of all sizes, gathered or sent, arrive in order, also where the socket is full at
// times; a pair that breaks with frames held back breaks as others do.
func TestHeldBackAmongOthers(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) {
		ts, eps, sinks := couple(t, wide(g))
		r := rand.New(rand.NewPCG(7, uint64(g)))
		const n = 3000
		sent, read := 0, 0
		buf := make([]byte, maxShort)
		for end := time.Now().Add(fabrictest.Patience); read < n; {
			require.True(t, time.Now().Before(end), "%d sent, %d read", sent, read)
			for range r.IntN(200) {
				if sent == n {
					break
				}
				size := []int{8, 8, 8, 100, joinMax + 8, laneMin - 8, laneMin, piece}[r.IntN(8)]
				binary.LittleEndian.PutUint64(buf, uint64(sent))
				fabrictest.Fill(buf[8:size], uint64(sent))
				send := eps[0].Send
				if r.IntN(3) > 0 {
					send = eps[0].(fabric.Gatherer).Gather
				}
				if err := send(&fabric.Header{Kind: 1}, buf[:size]); err == nil {
					sent++
				} else {
					require.Equal(t, fabric.ErrAgain, err)
				}
			}
			ts[r.IntN(2)].Poll(sinks[1]) // rank 0 is sent nothing
			for _, payload := range sinks[1].payloads {
				require.Equal(t, uint64(read), binary.LittleEndian.Uint64([]byte(payload)))
				want := make([]byte, len(payload)-8)
				fabrictest.Fill(want, uint64(read))
				require.True(t, string(want) == payload[8:])
				read++
			}
			sinks[1].payloads, sinks[1].headers = nil, nil
			require.Empty(t, sinks[1].broken)
		}
		gather(t, eps[0], 0, nil)
		require.NoError(t, unix.Shutdown(first(ts[0]).fd, unix.SHUT_RDWR))
		fabrictest.Until(t, "the end", func() bool { turns(ts, sinks); return len(sinks[0].broken) == 1 })
		assert.Error(t, eps[0].(fabric.Gatherer).Gather(&fabric.Header{Kind: 1}, nil))
	})
}

// A peer is not taken for silent because of frames that this rank holds back.
func TestHeldBackIsNotSilence(t *testing.T) {
	ts, eps, _ := couple(t, wide(Clear))
	gather(t, eps[0], 0, nil)
	time.Sleep(30 * time.Millisecond)
	assert.False(t, ts[0].Silent(1, 10*time.Millisecond))
}
