package fabrictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
)

func word(mem []byte) uint64 { return binary.LittleEndian.Uint64(mem) }

func needSleeper(t *testing.T, w *World) {
	t.Helper()
	if _, can := w.Ranks[0].Transport.(fabric.Sleeper); !can {
		t.Skip(w.Ranks[0].Name() + " has no descriptor to sleep on")
	}
	meet(t, w)
}

// readable waits for r's descriptor and reports whether it became readable.
func readable(r *Rank, patience time.Duration) bool {
	fd := []unix.PollFd{{Fd: int32(r.Transport.(fabric.Sleeper).FD()), Events: unix.POLLIN}}
	for end := time.Now().Add(patience); ; {
		n, err := unix.Poll(fd, max(0, int(time.Until(end).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// armAndPoll arms r's descriptor and polls, until a poll finds nothing.
func armAndPoll(r *Rank) error {
	for {
		var err error
		r.StopPolling(func() { err = r.Transport.(fabric.Sleeper).Arm() })
		if err != nil {
			return fmt.Errorf("arm rank %d: %w", r.ID, err)
		}
		if r.Poll() == 0 {
			return nil
		}
	}
}

// doze replaces r's poller by one that polls only when r's descriptor is
// readable. The returned function ends it and returns how often it slept.
func doze(r *Rank, failed *atomic.Value) (wake func() int) {
	r.Pause()
	var stop atomic.Bool
	ended := make(chan struct{})
	sleeps := 0
	go func() {
		defer close(ended)
		for !stop.Load() {
			if err := armAndPoll(r); err != nil {
				failed.Store(err)
				return
			}
			if !readable(r, 0) {
				sleeps++
			}
			for !stop.Load() && !readable(r, 20*time.Millisecond) {
			}
		}
	}()
	return func() int {
		stop.Store(true)
		<-ended
		r.Resume()
		return sleeps
	}
}

// The descriptor is not readable while nothing arrives, and signals each message.
func testSleep(t *testing.T, w *World) {
	needSleeper(t, w)
	for _, r := range w.Ranks {
		r.Pause()
	}
	a, b := w.Ranks[0], w.Ranks[1]
	fd := b.Transport.(fabric.Sleeper).FD()
	Until(t, "an idle rank's descriptor is silent", func() bool {
		for _, r := range w.Ranks {
			require.NoError(t, armAndPoll(r))
		}
		return !readable(b, 50*time.Millisecond) && !readable(a, 0)
	})
	got := 0
	b.OnDeliver = func(int, *fabric.Header, []byte) { got++ }
	for i := range 20 {
		require.NoError(t, armAndPoll(b))
		for a.Endpoint(1).Send(&fabric.Header{Kind: fabric.KindEager, Aux: uint32(i)}, []byte("wake up")) != nil {
			a.Poll()
		}
		for end := time.Now().Add(Patience); got <= i; {
			a.Poll()
			if readable(b, 10*time.Millisecond) {
				require.NoError(t, armAndPoll(b))
			}
			if time.Now().After(end) {
				t.Fatalf("message %d did not wake the receiver", i)
			}
		}
	}
	assert.Equal(t, fd, b.Transport.(fabric.Sleeper).FD(), "the descriptor is the same")
	for _, r := range w.Ranks {
		r.Resume()
	}
	// Ping-pong of ranks that poll only when they are woken.
	const n = 300
	var failed atomic.Value
	var left atomic.Int64
	left.Store(2 * n)
	for _, r := range []*Rank{a, b} {
		r.StopPolling(func() {
			r.OnDeliver = func(src int, h *fabric.Header, _ []byte) {
				left.Add(-1)
				if h.Aux == 0 {
					return
				}
				// There is always room: one message is in flight at a time.
				if err := r.Endpoint(src).Send(&fabric.Header{Kind: fabric.KindEager, Aux: h.Aux - 1}, make([]byte, 100)); err != nil {
					failed.Store(err)
				}
			}
		})
	}
	wakeA, wakeB := doze(a, &failed), doze(b, &failed)
	err := a.Endpoint(1).Send(&fabric.Header{Kind: fabric.KindEager, Aux: 2*n - 1}, nil)
	require.NoError(t, err)
	Until(t, "the ping-pong of sleepers", func() bool { return left.Load() == 0 || failed.Load() != nil })
	sleeps := wakeA() + wakeB()
	assert.Nil(t, failed.Load())
	assert.Positive(t, sleeps, "they are never woken for nothing all the time")
}

// Ranks that poll only when they are woken send each other more than there is
// room for: the descriptor also signals new room.
func testSleepQueues(t *testing.T, w *World) {
	needSleeper(t, w)
	const n = 300
	var failed atomic.Value
	var boxes []*inbox
	for _, r := range w.Ranks {
		boxes = append(boxes, newInbox(w, r))
		wake := doze(r, &failed)
		defer wake()
	}
	var all sync.WaitGroup
	for _, r := range w.Ranks[:2] {
		all.Go(func() {
			peer := 1 - r.ID
			buf := make([]byte, r.Caps().MaxShort)
			for k := range n {
				h, seed, size := message(r.ID, peer, k, len(buf))
				Fill(buf[:size], seed)
				for end := time.Now().Add(Patience); ; {
					before := r.polls.Load()
					err := r.Endpoint(peer).Send(&h, buf[:size])
					if err == nil {
						break
					}
					if !errors.Is(err, fabric.ErrAgain) || time.Now().After(end) {
						failed.Store(fmt.Errorf("message %d: %w", k, err))
						return
					}
					// There can be room only after a poll.
					for r.polls.Load() == before && time.Now().Before(end) {
						time.Sleep(20 * time.Microsecond)
					}
				}
			}
		})
	}
	all.Wait()
	require.Nil(t, failed.Load())
	boxes[0].wait(t, 1, n)
	boxes[1].wait(t, 0, n)
}

// Ranks that poll only when they are woken see their operations complete.
func testSleepComplete(t *testing.T, w *World) {
	needOneSided(t, w)
	needSleeper(t, w)
	var failed atomic.Value
	for _, r := range w.Ranks {
		wake := doze(r, &failed)
		defer wake()
	}
	x, local := Expose(t, w.Ranks[1], 1<<20), Memory(t, 1<<20)
	r := w.Ranks[0]
	for i := range 50 {
		n := []int{8, 1 << 20, 5000}[i%3]
		Fill(local[:n], uint64(i))
		require.NoError(t, r.Do(uint64(i), func() (bool, error) {
			return r.Endpoint(1).Put(Pointer(local), x.At(0), n, uint64(i))
		}))
		assert.Empty(t, Check(x.Mem[:n], uint64(i)))
	}
	assert.Nil(t, failed.Load())
}
