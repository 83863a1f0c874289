package tcp

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/sys"
)

// Ranks that connect to each other at once, in random orders, end with one
// connection a pair, and every message arrives once.
func TestSimultaneousConnects(t *testing.T) {
	for _, addresses := range []byte{1, 3} { // of each rank
		t.Run(fmt.Sprintf("%d addresses", addresses), func(t *testing.T) { simultaneousConnects(t, addresses) })
	}
}

func simultaneousConnects(t *testing.T, addresses byte) {
	yields := 0
	for seed := range uint64(150) {
		const n = 3
		r := rand.New(rand.NewPCG(seed, 7))
		var ts []*Transport
		var sinks []*script
		for _, dir := range fabrictest.Directories(n) {
			tr, err := New(dir, Options{Hosts: true})
			require.NoError(t, err)
			tr.stagger = 0
			ts, sinks = append(ts, tr), append(sinks, &script{})
		}
		cards := map[int][]byte{}
		for i, tr := range ts {
			var list []netip.Addr
			for last := range addresses {
				list = append(list, netip.AddrFrom4([4]byte{127, 0, 0, last + 1}))
			}
			cards[i] = encodeCard(list, tr.at.Port())
		}
		for _, tr := range ts {
			tr.dir = other{tr.dir, tr.dir.Secret(), cards}
		}
		type arrow struct{ from, to int }
		var todo []arrow
		for from := range n {
			for to := range n {
				if from != to {
					todo = append(todo, arrow{from, to})
				}
			}
		}
		r.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		for end := time.Now().Add(fabrictest.Patience); len(todo) > 0; {
			require.True(t, time.Now().Before(end), "seed %d: %v", seed, todo)
			who := r.IntN(n)
			ts[who].Poll(sinks[who])
			i := r.IntN(len(todo))
			a := todo[i]
			ep, err := ts[a.from].Connect(a.to)
			require.NoError(t, err)
			if ep.Send(&fabric.Header{Kind: 1, Src: int32(a.from), Tag: int32(a.to)}, []byte("x")) == nil {
				todo = append(todo[:i], todo[i+1:]...)
			}
			for _, tr := range ts {
				for i := range tr.pairs {
					p := &tr.pairs[i]
					if p.state == trying && p.tries == 0 && tr.id.rank < p.peer && ts[p.peer].pairs[tr.id.rank].state == trying {
						yields++
					}
				}
			}
		}
		for i, s := range sinks {
			fabrictest.Until(t, "both messages", func() bool {
				for j := range ts {
					ts[j].Poll(sinks[j])
				}
				return len(s.payloads) >= n-1
			})
			require.Len(t, s.payloads, n-1)
			require.Empty(t, s.broken, "seed %d", seed)
			for _, h := range s.headers {
				require.Equal(t, int32(i), h.Tag)
			}
		}
		for i := range ts {
			for j := range i {
				local, remote, found := strings.Cut(ts[i].Describe(j), " to ")
				require.True(t, found, ts[i].Describe(j))
				require.Equal(t, remote+" to "+local, ts[j].Describe(i), "both use the same connection")
			}
			require.Empty(t, ts[i].attempts)
		}
		for _, tr := range ts {
			require.NoError(t, tr.Close())
		}
	}
	assert.Positive(t, yields, "they never tried at once")
}

// Many ranks all connect at once.
func TestManyRanks(t *testing.T) {
	w := fabrictest.NewWorld(t, 16, create)
	exchange(t, w)
	for _, r := range w.Ranks {
		fabrictest.Until(t, "no attempts are left", func() bool { n, m := pendingOf(r); return n+m == 0 })
	}
}

// Connect to a peer that has closed fails at once, with an error that names it.
func TestConnectToClosedPeer(t *testing.T) {
	dirs := fabrictest.Directories(2)
	a, err := New(dirs[0], Options{})
	require.NoError(t, err)
	b, err := New(dirs[1], Options{})
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, b.Close())
	ep, err := a.Connect(1)
	require.NoError(t, err)
	s := &script{}
	fabrictest.Until(t, "Broken", func() bool { a.Poll(s); return len(s.broken) > 0 })
	assert.ErrorIs(t, s.broken[0], fabric.ErrPeerGone)
	var failed *fabric.OpError
	require.ErrorAs(t, s.broken[0], &failed)
	assert.Equal(t, fabric.OpError{Op: "connect", Peer: 1, Status: "ECONNREFUSED", Detail: fmt.Sprintf("nobody listens at %v any more", b.at)}, *failed)
	assert.Equal(t, s.broken[0], ep.Send(&fabric.Header{Kind: 1}, nil))
	again, err := a.Connect(1)
	require.NoError(t, err)
	assert.Equal(t, s.broken[0], again.Send(&fabric.Header{Kind: 1}, nil))
	for range 100 {
		a.Poll(s)
	}
	assert.Len(t, s.broken, 1)
}

// A card that is not published yet is waited for, also by a rank that sleeps.
func TestCardIsPublishedLater(t *testing.T) {
	dirs := fabrictest.Directories(2)
	a, err := New(dirs[0], Options{})
	require.NoError(t, err)
	defer a.Close()
	ep, err := a.Connect(1)
	require.NoError(t, err)
	s := &script{}
	for range 20 {
		a.Poll(s)
		assert.ErrorIs(t, ep.Send(&fabric.Header{Kind: 1}, nil), fabric.ErrAgain)
	}
	b, err := New(dirs[1], Options{})
	require.NoError(t, err)
	defer b.Close()
	other := &script{}
	fabrictest.Until(t, "the connection", func() bool {
		require.NoError(t, a.Arm())
		if a.Poll(s) == 0 {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(a.FD()), Events: unix.POLLIN}}, 2)
			require.True(t, n >= 0 || err == unix.EINTR)
		}
		b.Poll(other)
		return ep.Send(&fabric.Header{Kind: 1}, nil) == nil
	})
}

// raw makes a world of two ranks in which the test acts as rank 1, through a socket.
func raw(t *testing.T) (r *fabrictest.Rank, s *script, c interface {
	Write(b []byte) (int, error)
	Close() error
	SetLinger(sec int) error
}) {
	t.Helper()
	w := fabrictest.NewWorld(t, 2, create)
	conn := call(t, w.Ranks[0])
	require.NoError(t, introduce(conn, inside(w.Ranks[1]).id, 0))
	w.Ranks[0].Pause()
	w.Ranks[1].Pause()
	return w.Ranks[0], &script{}, conn
}

func pollUntil(t *testing.T, r *fabrictest.Rank, s *script, what string, holds func() bool) {
	t.Helper()
	fabrictest.Until(t, what, func() bool { inside(r).Poll(s); return holds() })
}

// Frames arrive byte by byte, and a payload is redirected or diverted half-way.
func TestByteByByte(t *testing.T) {
	r, s, c := raw(t)
	mem := make([]byte, 2*placeMin)
	s.place = func(h *fabric.Header, n int) unsafe.Pointer { return unsafe.Pointer(&mem[0]) }
	long := strings.Repeat("0123456789abcdef", placeMin/16) + "end"
	half := len(frames(fabric.Header{Kind: 1}, "", "short")) + headBytes + len(long)/2
	for round, change := range []string{"", "redirect", "divert"} {
		clear(mem)
		s.payloads, s.headers = nil, nil
		data := framesFrom(4*round, fabric.Header{Kind: 2}, "", "short", long, "tail")
		for i := range data {
			_, err := c.Write(data[i : i+1])
			require.NoError(t, err)
			for inside(r).Poll(s) == 0 {
			}
			switch {
			case i+1 != half:
			case change == "redirect":
				inside(r).Redirect(unsafe.Pointer(&mem[0]))
			case change == "divert":
				assert.True(t, inside(r).Divert(unsafe.Pointer(&mem[0])))
				assert.False(t, inside(r).Divert(unsafe.Pointer(&mem[0])), "it is there no more")
			}
		}
		want := []string{"", "short", long, "tail"}
		if change == "redirect" {
			want[2] = ""
		}
		if change != "" {
			n := len(long) / 2
			assert.Equal(t, long[:n], string(mem[:n]))
			assert.Equal(t, make([]byte, len(mem)-n), mem[n:], "nothing is written there after "+change)
		}
		assert.Equal(t, want, s.payloads)
		assert.Equal(t, round+1, s.asked)
	}
	assert.Empty(t, s.broken)
}

// A payload of which bytes have been lost, with the memory in which they had arrived, faults when it is delivered, although the
// memory is there again.
func TestLostPayload(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	r, s, c := raw(t)
	mem, err := unix.Mmap(-1, 0, 2*placeMin, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { _ = unix.Munmap(mem) }()
	s.place = func(*fabric.Header, int) unsafe.Pointer { return unsafe.Pointer(&mem[0]) }
	long := strings.Repeat("x", 2*placeMin)
	data := framesFrom(0, fabric.Header{Kind: 2}, long, "tail")
	write := func(part []byte) {
		_, err := c.Write(part)
		require.NoError(t, err)
	}
	write(data[:placeMin])
	pollUntil(t, r, s, "a part", func() bool { return mem[placeMin/2] == 'x' })
	require.NoError(t, unix.Mprotect(mem, unix.PROT_NONE))
	write(data[placeMin : placeMin+100])
	for range 3 {
		inside(r).Poll(s)
	}
	require.NoError(t, unix.Mprotect(mem, unix.PROT_READ|unix.PROT_WRITE))
	write(data[placeMin+100:])
	deadline := time.Now().Add(10 * time.Second)
	for err = nil; err == nil && time.Now().Before(deadline); {
		err = sys.Touch(func() { inside(r).Poll(s) })
	}
	assert.True(t, sys.IsFault(err), "the sink reads the payload: %v", err)
}

// An invalid frame breaks the connection, once, with an error; messages before it
// are delivered.
func TestInvalidFrames(t *testing.T) {
	good := frames(fabric.Header{Kind: 2}, "good", "too")
	huge := frame(fabric.Header{Kind: 2}, "x")
	huge[3] = 0xff
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"a huge length", huge, "there are at most 262144"},
		{"a number that is not due", framesFrom(7, fabric.Header{Kind: 2}, "x"), "a frame has number 7, and 2 is due"},
		{"no magic", make([]byte, 100), "a frame has 0x0 behind its length"},
		{"text", []byte(strings.Repeat("hello ", 20)), "behind its length"},
	} {
		r, s, conn := raw(t)
		_, err := conn.Write(append(append([]byte{}, good...), c.data...))
		require.NoError(t, err)
		pollUntil(t, r, s, "Broken", func() bool { return len(s.broken) > 0 })
		assert.Equal(t, []string{"good", "too"}, s.payloads, c.name)
		assert.ErrorContains(t, s.broken[0], "connection to rank 1 failed", c.name)
		assert.ErrorContains(t, s.broken[0], c.says, c.name)
		for range 50 {
			inside(r).Poll(s)
		}
		assert.Len(t, s.broken, 1, c.name)
		assert.Equal(t, s.broken[0], r.Endpoint(1).Send(&fabric.Header{Kind: 1}, nil), c.name)
	}
}

// Messages before the end of a connection are delivered, however it ends.
func TestEndsOfConnections(t *testing.T) {
	for _, reset := range []bool{false, true} {
		for _, partial := range []int{0, 5, headBytes, headBytes + 3, headBytes + 9000} {
			r, s, c := raw(t)
			payloads := []string{"a", strings.Repeat("b", 20000), "c"}
			data := append(frames(fabric.Header{Kind: 2}, payloads...), framesFrom(3, fabric.Header{Kind: 2}, strings.Repeat("d", 30000))[:partial]...)
			_, err := c.Write(data)
			require.NoError(t, err)
			if reset {
				require.NoError(t, c.SetLinger(0))
			}
			require.NoError(t, c.Close())
			pollUntil(t, r, s, "Broken", func() bool { return len(s.broken) > 0 })
			what := fmt.Sprintf("reset %v, %d bytes of a frame: %v", reset, partial, s.broken)
			assert.Equal(t, payloads, s.payloads, what)
			assert.ErrorIs(t, s.broken[0], fabric.ErrPeerGone, what)
			assert.Equal(t, partial > 0, strings.Contains(s.broken[0].Error(), "in the middle of a message"), what)
			for range 50 {
				inside(r).Poll(s)
			}
			assert.Len(t, s.broken, 1, what)
			assert.Empty(t, inside(r).hot)
		}
	}
}

// The queue for a peer that does not read is bounded.
func TestQueueIsBounded(t *testing.T) { each(t, Clear, queueIsBounded) }

func queueIsBounded(t *testing.T, g Guard) {
	w := fabrictest.NewWorld(t, 2, guarded(g))
	exchange(t, w)
	w.Ranks[0].Pause()
	w.Ranks[1].Pause() // it does not read
	r, s := w.Ranks[0], &script{}
	ep := r.Endpoint(1)
	for _, size := range []int{8, maxShort, joinMax, placeMin} {
		for range 100_000 {
			if ep.Send(&fabric.Header{Kind: 1}, make([]byte, size)) != nil {
				break
			}
			inside(r).Poll(s)
		}
		assert.ErrorIs(t, ep.Send(&fabric.Header{Kind: 1}, make([]byte, size)), fabric.ErrAgain)
		assert.LessOrEqual(t, cap(inside(r).pairs[1].queue), 2*(queueMax+maxShort))
	}
	assert.Equal(t, int32(1), inside(r).queues.Load())
	begin := time.Now()
	require.NoError(t, r.Transport.Close())
	assert.Less(t, time.Since(begin), 30*time.Second, "it does not wait for ever")
}

// Close sends the queue.
func TestCloseSendsQueue(t *testing.T) { each(t, Clear, closeSendsQueue) }

func closeSendsQueue(t *testing.T, g Guard) {
	w := fabrictest.NewWorld(t, 2, guarded(g))
	exchange(t, w)
	a, b := w.Ranks[0], w.Ranks[1]
	b.Pause()
	s, n := &script{}, 0
	for a.Endpoint(1).Send(&fabric.Header{Kind: 1, Aux: uint32(n)}, make([]byte, 1000)) == nil {
		n++
	}
	require.Positive(t, inside(a).queues.Load())
	inside(a).linger = time.Minute
	done := make(chan struct{})
	go func() { a.Close(); close(done) }()
	pollUntil(t, b, s, "all and the end", func() bool { return len(s.broken) > 0 })
	assert.Len(t, s.payloads, n)
	<-done
}

const childEnv = "GORMAPY_TCP_TEST_PEER"

// TestPeer runs as rank 1 of a job whose rank 0 is the process that started it.
func TestPeer(t *testing.T) {
	spec := os.Getenv(childEnv)
	if spec == "" {
		t.Skip("started by TestKilled")
	}
	secret, card := []byte(spec[:32]), must(hex.DecodeString(spec[32:]))
	dir := other{fabrictest.Directories(2)[1], secret, map[int][]byte{0: card}}
	tr, err := New(dir, Options{})
	require.NoError(t, err)
	ep, err := tr.Connect(0)
	require.NoError(t, err)
	buf := make([]byte, maxShort)
	for k := uint64(0); ; {
		h := fabric.Header{Kind: 1, A: k}
		fabrictest.Fill(buf, k)
		if err := ep.Send(&h, buf[:[]int{8, 3000, maxShort}[k%3]]); err == nil {
			k++
		} else {
			require.ErrorIs(t, err, fabric.ErrAgain)
		}
		tr.Poll(&script{})
		if k == 200 {
			fmt.Println("under way")
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A peer is killed while it sends: complete messages are delivered in order, then
// Broken is called.
func TestKilled(t *testing.T) {
	for range 3 {
		dirs := fabrictest.Directories(2)
		tr, err := New(dirs[0], Options{})
		require.NoError(t, err)
		secret := hex.EncodeToString(dirs[0].Secret()[:16])
		tr.id = newIdentity([]byte(secret), 0, 2)
		c := exec.Command(os.Args[0], "-test.run=^TestPeer$", "-test.timeout=60s")
		c.Env = append(os.Environ(), childEnv+"="+secret+hex.EncodeToString(dirs[0].Card(0)))
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		k, bad := uint64(0), ""
		s := &checker{take: func(h *fabric.Header, payload []byte) {
			if wrong := fabrictest.Check(payload, k); wrong != "" || h.A != k || len(payload) != []int{8, 3000, maxShort}[k%3] {
				bad = fmt.Sprintf("message %d comes as %d with %d bytes, %s", k, h.A, len(payload), wrong)
			}
			k++
		}}
		under := make(chan struct{})
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if lines.Text() == "under way" {
					close(under)
				}
			}
		}()
		killed := false
		fabrictest.Until(t, "Broken", func() bool {
			tr.Poll(s)
			select {
			case <-under:
				if !killed {
					killed = true
					require.NoError(t, c.Process.Kill())
				}
			default:
			}
			return len(s.broken) > 0 || bad != ""
		})
		_ = c.Wait()
		assert.Empty(t, bad)
		assert.GreaterOrEqual(t, k, uint64(200))
		assert.ErrorIs(t, s.broken[0], fabric.ErrPeerGone)
		t.Logf("%d messages, then %v", k, s.broken)
		require.NoError(t, tr.Close())
	}
}

type checker struct {
	script
	take func(h *fabric.Header, payload []byte)
}

func (c *checker) Deliver(_ int, h *fabric.Header, payload []byte) { c.take(h, payload) }
