package fabrictest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

// message returns the header, the payload's seed and the payload's length of
// message k from rank src to rank dst.
func message(src, dst, k, maxShort int) (fabric.Header, uint64, int) {
	seed := uint64(src)<<48 | uint64(dst)<<40 | uint64(k)
	sizes := []int{0, 1, 7, 8, 9, 47, 48, 49, 63, 64, 65, 255, 256, 0, 8, 8}
	n := sizes[k%len(sizes)]
	switch {
	case k%97 == 96:
		n = []int{maxShort, maxShort - 1, maxShort / 2, 4095, 4096, 4097, 16<<10 + 1, 64 << 10}[k/97%8]
	case k%13 == 12:
		n = int(seed * 0x9e3779b97f4a7c15 >> 52)
	}
	n = min(n, maxShort)
	return fabric.Header{
		Kind: fabric.Kind(1 + k%(int(fabric.Kinds)-1)), Flags: uint8(k), Gen: uint32(seed >> 8), Ctx: uint32(k * 7),
		Src: int32(src), Tag: int32(-k), Aux: uint32(k), Len: uint64(n), A: ^seed, B: seed << 3,
	}, seed, n
}

// inbox compares the messages that a rank receives with message.
type inbox struct {
	rank    *Rank
	ordered bool
	mu      sync.Mutex
	next    []int          // by sender
	seen    []map[int]bool // by sender, unless ordered
	bad     string
}

func newInbox(w *World, r *Rank) *inbox {
	in := &inbox{rank: r, ordered: r.Caps().Ordered, next: make([]int, len(w.Ranks)), seen: make([]map[int]bool, len(w.Ranks))}
	for i := range in.seen {
		in.seen[i] = map[int]bool{}
	}
	r.StopPolling(func() { r.OnDeliver = in.take })
	return in
}

func (in *inbox) take(src int, h *fabric.Header, payload []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	k := int(h.Aux)
	want, seed, n := message(src, in.rank.ID, k, in.rank.Caps().MaxShort)
	switch {
	case in.bad != "":
	case *h != want:
		in.bad = fmt.Sprintf("message %d has header %+v, not %+v", k, *h, want)
	case len(payload) != n:
		in.bad = fmt.Sprintf("message %d has %d bytes, not %d", k, len(payload), n)
	case in.ordered && k != in.next[src]:
		in.bad = fmt.Sprintf("message %d comes in place of %d", k, in.next[src])
	case in.seen[src][k]:
		in.bad = fmt.Sprintf("message %d comes twice", k)
	default:
		if in.bad = Check(payload, seed); in.bad != "" {
			in.bad = fmt.Sprintf("message %d: %s", k, in.bad)
		}
	}
	in.next[src]++
	if !in.ordered {
		in.seen[src][k] = true
	}
}

func (in *inbox) got(src int) (int, string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.next[src], in.bad
}

func (in *inbox) wait(t *testing.T, src, n int) {
	t.Helper()
	Until(t, fmt.Sprintf("%d messages from rank %d to rank %d", n, src, in.rank.ID), func() bool {
		got, bad := in.got(src)
		return got >= n || bad != ""
	})
	got, bad := in.got(src)
	require.Empty(t, bad, "from rank %d to rank %d", src, in.rank.ID)
	require.Equal(t, n, got, "from rank %d to rank %d", src, in.rank.ID)
}

func sendAll(r *Rank, peer, from, to int) error {
	buf := make([]byte, r.Caps().MaxShort)
	for k := from; k < to; k++ {
		h, seed, n := message(r.ID, peer, k, len(buf))
		Fill(buf[:n], seed)
		if err := r.Send(peer, &h, buf[:n]); err != nil {
			return fmt.Errorf("message %d from rank %d to rank %d: %w", k, r.ID, peer, err)
		}
		Fill(buf[:n], ^seed) // Send has copied it
	}
	return nil
}

// together runs f concurrently for each ordered pair of ranks.
func together(t *testing.T, w *World, f func(r *Rank, peer int) error) {
	t.Helper()
	var all sync.WaitGroup
	failed := make(chan error, len(w.Ranks)*len(w.Ranks))
	for _, r := range w.Ranks {
		for peer := range w.Ranks {
			if peer != r.ID {
				all.Go(func() {
					if err := f(r, peer); err != nil {
						failed <- err
					}
				})
			}
		}
	}
	all.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// Thousands of messages of all sizes travel both ways between all ranks at once,
// while the ranks stop polling now and then. Each arrives whole, once, in order.
func testMessages(t *testing.T, w *World) {
	const n = 3000
	var boxes []*inbox
	for _, r := range w.Ranks {
		boxes = append(boxes, newInbox(w, r))
	}
	stop := make(chan struct{})
	var stalls sync.WaitGroup
	for _, r := range w.Ranks {
		stalls.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond):
					r.StopPolling(func() { time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond) })
				}
			}
		})
	}
	together(t, w, func(r *Rank, peer int) error { return sendAll(r, peer, 0, n) })
	close(stop)
	stalls.Wait()
	for _, r := range w.Ranks {
		for src := range w.Ranks {
			if src != r.ID {
				boxes[r.ID].wait(t, src, n)
			}
		}
	}
	time.Sleep(10 * time.Millisecond)
	for _, r := range w.Ranks {
		assert.Empty(t, r.Left(), "a Send completes nothing")
		for src := range w.Ranks {
			got, bad := boxes[r.ID].got(src)
			assert.Empty(t, bad)
			assert.LessOrEqual(t, got, n, "more messages came than were sent")
			assert.Empty(t, r.Broke(src))
		}
	}
	_, err := w.Ranks[0].Endpoint(1).PutRuns(nil, 0, nil, 0)
	if !w.Ranks[0].Caps().OneSided {
		assert.ErrorIs(t, err, fabric.ErrUnsupported)
	}
	if c := w.Ranks[0].Caps(); !c.Mappable { // rings take more than MaxShort
		assert.Error(t, w.Ranks[0].Send(1, &fabric.Header{}, make([]byte, c.MaxShort+1)), "more than MaxShort")
	}
}

// Several threads send to one peer.
func testThreads(t *testing.T, w *World) {
	const threads, n = 4, 500
	var mu sync.Mutex
	next := [threads]int{}
	bad := ""
	ordered := w.Ranks[1].Caps().Ordered
	w.Ranks[1].StopPolling(func() {
		w.Ranks[1].OnDeliver = func(_ int, h *fabric.Header, payload []byte) {
			mu.Lock()
			defer mu.Unlock()
			k, i := int(h.Ctx), int(h.Aux)
			if k >= threads || ordered && i != next[k] {
				bad = fmt.Sprintf("message %d of thread %d comes in place of %d", i, k, next[k%threads])
				return
			}
			if wrong := Check(payload, h.A); wrong != "" {
				bad = wrong
			}
			next[k]++
		}
	})
	var all sync.WaitGroup
	for k := range threads {
		all.Go(func() {
			buf := make([]byte, 1000)
			for i := range n {
				h := fabric.Header{Kind: fabric.KindEager, Ctx: uint32(k), Aux: uint32(i), A: uint64(k*n + i)}
				part := buf[:min((i*13+k)%1000, w.Ranks[0].Caps().MaxShort)]
				Fill(part, h.A)
				if err := w.Ranks[0].Send(1, &h, part); err != nil {
					mu.Lock()
					bad = err.Error()
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	Until(t, "all messages", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return next == [threads]int{n, n, n, n} || bad != ""
	})
	assert.Empty(t, bad)
}

// Handlers send: ranks answer messages from Deliver.
func testReplies(t *testing.T, w *World) {
	const n = 500
	var left atomic.Int64
	var failed atomic.Value
	type answer struct {
		to int
		h  fabric.Header
	}
	for _, r := range w.Ranks {
		// Answers for which there was no room are sent from outside of the handler.
		var queue []answer
		flush := func() {
			for len(queue) > 0 {
				err := r.Endpoint(queue[0].to).Send(&queue[0].h, nil)
				if errors.Is(err, fabric.ErrAgain) {
					return
				}
				if err != nil {
					failed.Store(err)
				}
				queue = queue[1:]
			}
		}
		r.StopPolling(func() {
			r.OnDeliver = func(src int, h *fabric.Header, _ []byte) {
				left.Add(-1)
				if h.Aux > 0 {
					queue = append(queue, answer{src, fabric.Header{Kind: fabric.KindEager, Aux: h.Aux - 1}})
				}
				flush()
			}
		})
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					r.StopPolling(flush)
					time.Sleep(time.Millisecond)
				}
			}
		}()
		defer func() { close(stop); <-ended }()
	}
	pairs := len(w.Ranks) * (len(w.Ranks) - 1)
	left.Add(int64(pairs * (n + 1)))
	together(t, w, func(r *Rank, peer int) error {
		return r.Send(peer, &fabric.Header{Kind: fabric.KindEager, Aux: n}, nil)
	})
	Until(t, "all replies", func() bool { return left.Load() <= 0 || failed.Load() != nil })
	assert.Nil(t, failed.Load())
	assert.Zero(t, left.Load())
}

// While the receiver does not poll, the sender runs out of room after a bounded
// amount. The messages that it could send arrive when the receiver polls again.
func testBackPressure(t *testing.T, w *World) {
	const limit = 64 << 20
	from, to := w.Ranks[0], w.Ranks[1]
	meet(t, w)
	in := newInbox(w, to)
	to.Pause()
	ep := from.Endpoint(1)
	buf := make([]byte, from.Caps().MaxShort)
	k, taken := 0, 0
	for full := time.Duration(0); full < 100*time.Millisecond; {
		h, seed, n := message(0, 1, k, len(buf))
		Fill(buf[:n], seed)
		before := time.Now()
		err := ep.Send(&h, buf[:n])
		if errors.Is(err, fabric.ErrAgain) {
			time.Sleep(time.Millisecond)
			full += time.Since(before)
			continue
		}
		require.NoError(t, err)
		full, k, taken = 0, k+1, taken+fabric.HeaderBytes+n
		require.Less(t, taken, limit, "nobody takes them, but it has room for more and more")
	}
	t.Logf("it takes %d messages, %d bytes", k, taken)
	require.Positive(t, k)
	got, _ := in.got(0)
	require.Zero(t, got)
	to.Resume()
	in.wait(t, 0, k)
	require.NoError(t, sendAll(from, 1, k, k+500))
	in.wait(t, 0, k+500)
}

// placements returns memory for payloads, and checks that they arrive there.
type placements struct {
	mu      sync.Mutex
	mem     []byte
	open    bool
	asked   int
	placed  int
	shorter int // messages for which Place was not called
	bad     string
}

func (l *placements) place(_ int, h *fabric.Header, n int) unsafe.Pointer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.open {
		l.bad = fmt.Sprintf("asks for message %d before the one before it is delivered", h.Aux)
	}
	l.open = true
	if n != int(h.Len) || n > len(l.mem)-64 {
		l.bad = fmt.Sprintf("asks for %d bytes for a message of %d", n, h.Len)
		return nil
	}
	if h.Aux%3 == 0 {
		return nil
	}
	Fill(l.mem[n:][:64], 99)
	return Pointer(l.mem)
}

func (l *placements) deliver(_ int, h *fabric.Header, payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	here := len(payload) > 0 && unsafe.SliceData(payload) == unsafe.SliceData(l.mem)
	switch {
	case len(payload) != int(h.Len):
		l.bad = fmt.Sprintf("message %d has %d bytes of %d", h.Aux, len(payload), h.Len)
	case !l.open && here:
		l.bad = fmt.Sprintf("message %d is put there without asking", h.Aux)
	case l.open && h.Aux%3 != 0 && !here:
		l.bad = fmt.Sprintf("message %d is not where it should be", h.Aux)
	}
	if wrong := Check(payload, h.A); wrong != "" {
		l.bad = wrong
	}
	if here {
		l.placed++
		if Check(l.mem[len(payload):][:64], 99) != "" {
			l.bad = fmt.Sprintf("message %d is longer there than it is", h.Aux)
		}
	}
	if !l.open {
		l.shorter++
	}
	l.open = false
}

// size returns the length of message k.
func (l *placements) size(k int) int {
	m := len(l.mem) - 64
	return []int{m, m / 2, 40 << 10, 9, m - 1, 12345, 0}[k%7] % (m + 1)
}

// A transport that calls Place writes long payloads to the memory it returned.
func testPlacement(t *testing.T, w *World) {
	from, to := w.Ranks[0], w.Ranks[1]
	red, can := to.Transport.(fabric.Redirector)
	if !can {
		to.OnPlace = func(_ int, h *fabric.Header, _ int) unsafe.Pointer {
			t.Errorf("%s asks where message %d belongs, but is no Redirector", to.Name(), h.Aux)
			return nil
		}
		meet(t, w)
		t.Skip(to.Name() + " never asks where a payload belongs")
	}
	meet(t, w)
	const n = 200
	l := &placements{mem: Memory(t, to.Caps().MaxShort+64)}
	to.StopPolling(func() { to.OnPlace, to.OnDeliver = l.place, l.deliver })
	buf := make([]byte, to.Caps().MaxShort)
	for k := range n {
		h := fabric.Header{Kind: fabric.KindData, Aux: uint32(k), Len: uint64(l.size(k)), A: uint64(k)}
		Fill(buf[:h.Len], h.A)
		require.NoError(t, from.Send(1, &h, buf[:h.Len]))
	}
	all := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.bad != "" {
			return n
		}
		return l.asked + l.shorter
	}
	Until(t, "all messages", func() bool { return all() == n })
	require.Empty(t, l.bad)
	assert.Positive(t, l.placed)
	assert.Positive(t, l.shorter, "short ones are not worth asking")
	testRedirect(t, from, to, red)
}

// After Redirect and Divert nothing more of a payload is written.
func testRedirect(t *testing.T, from, to *Rank, red fabric.Redirector) {
	size := to.Caps().MaxShort
	mem := Memory(t, size)
	to.Pause()
	to.StopPolling(func() {
		red.Redirect(Pointer(mem)) // no payload is placed there: no effect
		assert.False(t, red.Divert(Pointer(mem)))
	})
	open, gone, diverted, after, redirected, left := false, false, false, 0, 0, 0
	to.OnPlace = func(int, *fabric.Header, int) unsafe.Pointer { open = true; return Pointer(mem) }
	to.OnDeliver = func(_ int, h *fabric.Header, payload []byte) {
		after++
		if gone && !diverted {
			assert.Empty(t, payload, "part of it was redirected")
		} else {
			assert.Len(t, payload, size)
			assert.Empty(t, Check(payload, h.A))
		}
		open, gone = false, false
	}
	const n = 60
	sent := make(chan error, 1)
	go func() {
		buf := make([]byte, size)
		for k := range n {
			Fill(buf, uint64(k))
			if err := from.Send(to.ID, &fabric.Header{Kind: fabric.KindData, Len: uint64(size), A: uint64(k)}, buf); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for end := time.Now().Add(Patience); after < n && time.Now().Before(end); {
		if to.Poll() == 0 {
			runtime.Gosched()
		}
		if !open {
			continue
		}
		if left++; left%2 == 0 {
			continue
		}
		redirected, gone, diverted = redirected+1, true, redirected%2 == 1
		to.StopPolling(func() {
			if !diverted {
				red.Redirect(Pointer(mem))
			} else if !red.Divert(Pointer(mem)) {
				t.Error("a payload that is being received is not diverted")
			}
		})
		Fill(mem, 4711)
		for before := after; after == before && time.Now().Before(end); {
			to.Poll()
			if open && after == before {
				assert.Empty(t, Check(mem, 4711), "written after Redirect")
			}
		}
	}
	require.NoError(t, <-sent)
	assert.Equal(t, n, after, "each is delivered, also those redirected, which have no payload then")
	t.Logf("%d of %d messages were redirected or diverted on their way", redirected, n)
	to.OnPlace, to.OnDeliver = nil, nil
	to.Resume()
}
