package tcp

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/handshake"
)

func inside(r *fabrictest.Rank) *Transport { return r.Transport.(*Transport) }

// call connects to a rank's listener.
func call(t testing.TB, r *fabrictest.Rank) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", inside(r).at.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(fabrictest.Patience)))
	return c.(*net.TCPConn)
}

// gone waits until the other side ends a connection, and returns what it sent.
func gone(t testing.TB, c net.Conn, limit time.Duration) []byte {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(limit)))
	said, err := io.ReadAll(c)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still there after %v", limit)
	return said
}

// introduce does the handshake of id's rank with rank to, which accepted c.
func introduce(c net.Conn, id *identity, to int) error {
	x, err := id.protocol().Call(c, id.secret)
	if err != nil {
		return err
	}
	if err := x.Tell(c, id.ranks(to, 0)); err != nil {
		return err
	}
	said, err := x.Hear(c)
	if err != nil {
		return err
	}
	what, _, err := decided(said)
	if err == nil && what != verdictUse {
		err = errors.New("yield")
	}
	return err
}

// exchange makes all ranks send each other a message.
func exchange(t testing.TB, w *fabrictest.World) {
	t.Helper()
	var mu sync.Mutex
	got, want := map[[2]int]string{}, map[[2]int]string{}
	for _, r := range w.Ranks {
		r.StopPolling(func() {
			r.OnDeliver = func(src int, _ *fabric.Header, payload []byte) {
				mu.Lock()
				got[[2]int{src, r.ID}] += string(payload)
				mu.Unlock()
			}
		})
	}
	for _, r := range w.Ranks {
		for to := range w.Ranks {
			if to != r.ID {
				want[[2]int{r.ID, to}] = "hi"
				require.NoError(t, r.Send(to, &fabric.Header{Kind: 1}, []byte("hi")))
			}
		}
	}
	fabrictest.Until(t, "all messages", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == len(want)
	})
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, want, got)
	for _, r := range w.Ranks {
		for peer := range w.Ranks {
			assert.Empty(t, r.Broke(peer))
		}
	}
}

func pendingOf(r *fabrictest.Rank) (pending, attempts int) {
	t := inside(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending), len(t.attempts)
}

func impatient(patience time.Duration) fabrictest.Make {
	return func(dir fabric.Directory) (fabric.Transport, error) {
		t, err := New(dir, Options{})
		if err == nil {
			t.patience = patience
		}
		return t, err
	}
}

// Pending connections that send nothing, or garbage, or too slowly are evicted
// after a while, and do not keep peers from connecting.
func TestPendingConnections(t *testing.T) {
	w := fabrictest.NewWorld(t, 3, impatient(time.Second))
	r := w.Ranks[1]
	begin := time.Now()
	silent := call(t, r)
	http := call(t, r)
	_, err := http.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: everything there is\r\n\r\n"))
	require.NoError(t, err)
	assert.Empty(t, gone(t, http, fabrictest.Patience), "nonsense is not answered")

	random := call(t, r)
	junk := make([]byte, 1<<16)
	_, _ = rand.Read(junk)
	_, _ = random.Write(junk)
	assert.Empty(t, gone(t, random, fabrictest.Patience))

	half := call(t, r)
	var answer bytes.Buffer
	_, err = protocol.Call(struct {
		io.Reader
		io.Writer
	}{io.TeeReader(half, &answer), half}, inside(r).id.secret)
	require.NoError(t, err)
	assert.False(t, bytes.Contains(answer.Bytes(), inside(r).id.secret[:8]))

	slow := call(t, r)
	_, hello := protocol.Initiate(inside(r).id.secret)
	for _, b := range hello[:20] {
		if _, err := slow.Write([]byte{b}); err != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	exchange(t, w)
	assert.Empty(t, gone(t, silent, 10*time.Second))
	assert.Empty(t, gone(t, slow, 10*time.Second))
	assert.Empty(t, gone(t, half, 10*time.Second))
	assert.Greater(t, time.Since(begin), 900*time.Millisecond, "a pending connection has its time")
	fabrictest.Until(t, "no pending connections are left", func() bool { n, m := pendingOf(r); return n == 0 && m == 0 })
	exchange(t, w)
}

// A thousand silent pending connections do not keep peers from connecting.
func TestThousandPendingConnections(t *testing.T) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	n := min(1000, int(limit.Cur)-200)
	w := fabrictest.NewWorld(t, 3, create)
	var largest int
	for i := range n {
		// Not by package net: Go's poller is slow beside goroutines that spin.
		fd, err := socket(inside(w.Ranks[1]).at.Addr())
		require.NoError(t, err)
		defer unix.Close(fd)
		if err := unix.Connect(fd, sockaddr(inside(w.Ranks[1]).at)); err != unix.EINPROGRESS {
			require.NoError(t, err)
		}
		if i == n/2 {
			exchange(t, w)
		}
		pending, _ := pendingOf(w.Ranks[1])
		largest = max(largest, pending)
	}
	assert.LessOrEqual(t, largest, maxPending)
	fabrictest.Until(t, "the rest is dropped", func() bool { n, _ := pendingOf(w.Ranks[1]); return n > 0 && n <= maxPending })
	exchange(t, w)
}

// A pending connection that has sent a hello of this job is not evicted for silent ones.
func TestPendingConnectionsThatHaveGreetedStay(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, impatient(time.Minute))
	c := call(t, w.Ranks[0])
	id := inside(w.Ranks[1]).id
	x, err := protocol.Call(c, id.secret)
	require.NoError(t, err)
	for range maxPending + 10 {
		call(t, w.Ranks[0])
	}
	fabrictest.Until(t, "all of them have called", func() bool {
		inside(w.Ranks[0]).mu.Lock()
		defer inside(w.Ranks[0]).mu.Unlock()
		return inside(w.Ranks[0]).lastID >= maxPending+11
	})
	require.NoError(t, x.Tell(c, id.ranks(0, 0)))
	said, err := x.Hear(c)
	require.NoError(t, err)
	what, _, err := decided(said)
	require.NoError(t, err)
	assert.EqualValues(t, verdictUse, what)
}

// other is the directory of a rank of another job, with addresses of this one.
type other struct {
	fabric.Directory
	secret []byte
	cards  map[int][]byte
}

func (o other) Secret() []byte { return o.secret }
func (o other) Card(rank int) []byte {
	if card, ok := o.cards[rank]; ok {
		return card
	}
	return o.Directory.Card(rank)
}

// A rank with another secret connects to no rank, and gets the reason.
func TestWrongSecret(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, func(dir fabric.Directory) (fabric.Transport, error) {
		return New(other{dir, append([]byte{byte(dir.Rank())}, dir.Secret()...), nil}, Options{})
	})
	w.Ranks[0].OnDeliver = func(int, *fabric.Header, []byte) { t.Error("a message is delivered") }
	w.Ranks[1].Endpoint(0)
	fabrictest.Until(t, "it gives up", func() bool { return len(w.Ranks[1].Broke(0)) > 0 })
	assert.ErrorContains(t, w.Ranks[1].Broke(0)[0], "connect to rank 0 failed: handshake failed")
	assert.ErrorContains(t, w.Ranks[1].Broke(0)[0], "is not this rank: it does not know this job's secret")
	// One that knows the job's tag, too, which is no secret, is told no more.
	liar := call(t, w.Ranks[0])
	x, hello := protocol.Initiate(inside(w.Ranks[1]).id.secret)
	copy(hello[16:], inside(w.Ranks[0]).id.tag[:])
	_, err := liar.Write(hello)
	require.NoError(t, err)
	_, err = x.Hear(liar)
	require.ErrorIs(t, err, handshake.ErrProof)
	require.NoError(t, x.Tell(liar, inside(w.Ranks[1]).id.ranks(0, 0)))
	assert.Empty(t, gone(t, liar, fabrictest.Patience))
	assert.Empty(t, w.Ranks[0].Broke(1), "the acceptor loses nothing")
}

// Another server than the peer listens at the peer's address.
func TestAnotherServer(t *testing.T) {
	for _, c := range []struct {
		server, greeting string
		says             []string
	}{
		{"mail", "220 mail.example.com ESMTP, what can I do for you today?\r\n", []string{"handshake failed (what answers at", "it does not speak this protocol"}},
		{"one of few words", "+OK POP3 server\r\n", []string{"it does not speak this protocol"}},
		{"a rank of another version", "gormapy\x09tcp\x00\x00\x00\x00\x00", []string{"it speaks version 9; this is version 3"}},
		{"one that hangs up", "", []string{"closed by the peer", "does it belong to another job?"}},
	} {
		tr := caller(t, otherServer(t, c.greeting, 0))
		tr.giveUp = 300 * time.Millisecond
		_, err := tr.Connect(0)
		require.NoError(t, err)
		s := &script{}
		fabrictest.Until(t, "Broken", func() bool { tr.Poll(s); return len(s.broken) > 0 })
		assert.ErrorContains(t, s.broken[0], "connect to rank 0 failed: ", c.server)
		for _, says := range c.says {
			assert.ErrorContains(t, s.broken[0], says, c.server)
		}
	}
}

// A rank that computes longer than attempts may fail evicts connections once it polls
// again. The time in which it did not answer is no time of failures.
func TestSilenceOfThePeerIsNoFailure(t *testing.T) {
	tr := caller(t, otherServer(t, "", 200*time.Millisecond))
	tr.giveUp = time.Hour
	_, err := tr.Connect(0)
	require.NoError(t, err)
	s := &script{}
	until := func(n int) {
		fabrictest.Until(t, "attempts", func() bool { tr.Poll(s); return tr.pairs[0].tries >= n })
	}
	until(1)
	began := tr.pairs[0].failing
	until(4)
	assert.GreaterOrEqual(t, tr.pairs[0].failing.Sub(began), 3*190*time.Millisecond, "the time in which it did not answer does not count")
}

// Of the addresses of a peer, those where nobody listens, where another server or another
// rank does, which may be silent, or where nothing answers, are passed over.
func TestTheRightOneOfSeveralAddresses(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, impatient(time.Minute))
	port := inside(w.Ranks[1]).at.Port()
	ip := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, last}) }
	silent, err := net.Listen("tcp", netip.AddrPortFrom(ip(6), port).String()) // the kernel accepts
	require.NoError(t, err)
	defer silent.Close()
	for last, greeting := range map[byte]string{7: "", 8: "220 mail.example.com ESMTP\r\n"} {
		l, err := net.Listen("tcp", netip.AddrPortFrom(ip(last), port).String())
		require.NoError(t, err)
		defer l.Close()
		go greet(l, greeting, 0)
	}
	w.Ranks[0].StopPolling(func() {
		tr := inside(w.Ranks[0])
		cards := []netip.Addr{ip(9), netip.AddrFrom4([4]byte{192, 0, 2, 1}), ip(8), ip(6), ip(7), ip(1)}
		tr.dir = other{tr.dir, tr.dir.Secret(), map[int][]byte{1: encodeCard(cards, port)}}
	})
	w.Ranks[0].Endpoint(1)
	awaitOpen(t, w, 1)
}

// awaitOpen waits until rank 0 is connected to a peer.
func awaitOpen(t *testing.T, w *fabrictest.World, peer int) {
	connected := func() (is bool) {
		w.Ranks[0].StopPolling(func() { is = inside(w.Ranks[0]).pairs[peer].state == open })
		return is
	}
	require.Eventually(t, connected, 20*time.Second, 10*time.Millisecond)
	assert.Empty(t, w.Ranks[0].Broke(peer))
}

// caller returns the transport of rank 1, whose card of rank 0 has this port.
func caller(t *testing.T, port uint16) *Transport {
	dir := other{fabrictest.Directories(2)[1], testSecret, map[int][]byte{0: encodeCard([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, port)}}
	tr, err := New(dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, tr.Close()) })
	return tr
}

// otherServer starts a server of another protocol and returns its port. It says greeting
// to whoever calls. If it has nothing to say it hangs up, after a time.
func otherServer(t *testing.T, greeting string, after time.Duration) uint16 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go greet(l, greeting, after)
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

func greet(l net.Listener, greeting string, after time.Duration) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if greeting == "" {
			go func() { // it reads the hello: a close with unread bytes is a reset
				_, _ = io.ReadFull(c, make([]byte, 64))
				time.Sleep(after)
				_ = c.Close()
			}()
			continue
		}
		_, _ = c.Write([]byte(greeting))
		defer c.Close()
	}
}

// An attacker that has recorded a handshake can't repeat it.
func TestReplay(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, create)
	id := inside(w.Ranks[1]).id
	c := call(t, w.Ranks[0])
	x, hello := protocol.Initiate(id.secret)
	_, err := c.Write(hello)
	require.NoError(t, err)
	_, err = x.Hear(c)
	require.NoError(t, err)
	ranks := x.Say(id.ranks(0, 0))

	again := call(t, w.Ranks[0])
	_, err = again.Write(append(bytes.Clone(hello), ranks...))
	require.NoError(t, err)
	said := gone(t, again, fabrictest.Patience)
	assert.LessOrEqual(t, len(said), 80, "a challenge and no verdict")

	_, err = c.Write(ranks)
	require.NoError(t, err)
	_, err = x.Hear(c)
	require.NoError(t, err, "the original one is good")
	// Once the pair is open no further connection is accepted, even with the secret.
	second := call(t, w.Ranks[0])
	assert.Error(t, introduce(second, id, 0))
	assert.Empty(t, w.Ranks[0].Broke(1))
}

// A process that has no descriptors left backs off and accepts later.
func TestNoDescriptorsLeft(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, create)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	c := call(t, w.Ranks[0])
	fabrictest.Until(t, "it is accepted", func() bool { n, _ := pendingOf(w.Ranks[0]); return n == 1 })
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	tight := unix.Rlimit{Cur: uint64(fd), Max: limit.Max} // fd was the lowest free descriptor
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &tight))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	err = unix.Connect(fd, sockaddr(inside(w.Ranks[0]).at))
	fabrictest.Until(t, "it notices", func() bool {
		tr := inside(w.Ranks[0])
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return !tr.acceptAfter.IsZero()
	})
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.NoError(t, err)
	fabrictest.Until(t, "it is accepted", func() bool { n, _ := pendingOf(w.Ranks[0]); return n == 2 })
	require.NoError(t, c.Close())
	exchange(t, w)
}

// A hello that somebody repeats on as many connections as there may be pending does not
// keep a rank out.
func TestRepeatedHellosKeepNobodyOut(t *testing.T) {
	w := fabrictest.NewWorld(t, 2, impatient(time.Minute))
	_, hello := protocol.Initiate(inside(w.Ranks[0]).id.secret)
	for range maxPending {
		c := call(t, w.Ranks[1])
		_, err := c.Write(hello)
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 80))
		require.NoError(t, err)
	}
	w.Ranks[0].StopPolling(func() { inside(w.Ranks[0]).giveUp = 2 * time.Second })
	w.Ranks[0].Endpoint(1)
	awaitOpen(t, w, 1)
}
