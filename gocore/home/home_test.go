package home

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/handshake"
)

// listen makes a home and returns where it is, as a rank is told.
func listen(t *testing.T) (*Home, *Where) {
	t.Helper()
	h, err := Listen(4, func() int64 { return 4711 })
	require.NoError(t, err)
	t.Cleanup(h.Close)
	w := &Where{Record: true, Timeout: 1500 * time.Millisecond}
	w.Addresses, w.Secret = h.Where()
	return h, w
}

func next(t *testing.T, h *Home) Event {
	t.Helper()
	select {
	case e := <-h.Events():
		return e
	case <-time.After(10 * time.Second):
		require.FailNow(t, "nothing happens")
		return Event{}
	}
}

func TestARankIsToldByItsEnvironment(t *testing.T) {
	_, w := listen(t)
	for _, kv := range w.Variables() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	assert.Equal(t, w, Given())
	for _, name := range Names {
		_, there := os.LookupEnv(name)
		assert.False(t, there, "a child of a rank finds %s", name)
	}
	assert.Nil(t, Given())
}

func TestMessages(t *testing.T) {
	h, w := listen(t)
	hello := Hello{Rank: 2, Size: 4, PID: 77, Node: 1, Host: "there"}
	l, err := w.Call(hello)
	require.NoError(t, err)
	defer l.Close()
	joined := next(t, h)
	assert.Equal(t, hello, joined.Link.Hello)
	assert.Nil(t, joined.Message)

	require.NoError(t, l.Send(&Message{Kind: Clock, Times: [2]int64{42, 0}}))
	m, err := l.Receive()
	require.NoError(t, err)
	assert.Equal(t, [2]int64{42, 4711}, m.Times, "it is answered without the owner of the home")

	sent := &Message{Kind: Record, Times: [2]int64{-5, 6}, Data: make([]byte, 3<<20)}
	sent.Data[len(sent.Data)-1] = 9
	require.NoError(t, l.Send(sent))
	assert.Equal(t, sent, next(t, h).Message)
	require.NoError(t, l.Send(&Message{Kind: State, Lines: map[int][]string{2: {"a", "b"}}}))
	assert.Equal(t, []string{"a", "b"}, next(t, h).Message.Lines[2])

	require.NoError(t, joined.Link.Send(&Message{Kind: End, Code: 124}))
	m, err = l.Receive()
	require.NoError(t, err)
	assert.Equal(t, 124, m.Code)
	l.Close()
	assert.True(t, next(t, h).Over)
}

func TestOthersAreNotLetIn(t *testing.T) {
	h, w := listen(t)
	wrong := *w
	wrong.Secret = make([]byte, 32)
	_, err := wrong.Call(Hello{Rank: 0, Size: 1})
	assert.Error(t, err)
	_, err = w.Call(Hello{Rank: 4, Size: 4})
	assert.Error(t, err, "there is no such rank")
	conn, err := net.Dial("tcp", w.Addresses[0])
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	_, _ = conn.Read(make([]byte, 1))
	select {
	case e := <-h.Events():
		assert.Fail(t, "let in", "%v", e)
	default:
	}
}

// Of several addresses that lead to the home, only one attempt becomes the rank.
func TestARankConnectsOnce(t *testing.T) {
	h, w := listen(t)
	w.Addresses = append(w.Addresses, w.Addresses...)
	w.Addresses = append(w.Addresses, "127.0.0.1:1")
	l, err := w.Call(Hello{Rank: 0, Size: 1})
	require.NoError(t, err)
	require.NotNil(t, next(t, h).Link)
	l.Close()
	assert.True(t, next(t, h).Over)
	select {
	case <-h.Events():
		assert.Fail(t, "it has connected twice")
	case <-time.After(100 * time.Millisecond):
	}
}

// What is said after the handshake can't be read on its way, and a changed bit ends the connection.
func TestNobodyInBetween(t *testing.T) {
	for _, flip := range []bool{false, true} {
		h, w := listen(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var heard bytes.Buffer
		var work sync.WaitGroup
		work.Go(func() {
			near, err := l.Accept()
			if !assert.NoError(t, err) {
				return
			}
			far, err := net.Dial("tcp", w.Addresses[0])
			if !assert.NoError(t, err) {
				return
			}
			defer far.Close()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
			for buf := make([]byte, 64<<10); ; {
				n, err := near.Read(buf)
				if err != nil {
					return
				}
				if n > 8<<10 && flip {
					buf[n/2] ^= 1
				}
				heard.Write(buf[:n])
				_, _ = far.Write(buf[:n])
			}
		})
		through := *w
		through.Addresses = []string{l.Addr().String()}
		link, err := through.Call(Hello{Rank: 0, Size: 1, Host: "there"})
		require.NoError(t, err)
		require.NotNil(t, next(t, h).Link)
		_ = link.Send(&Message{Kind: Record, How: "mellon", Data: bytes.Repeat([]byte("mellon"), 10000)})
		e := next(t, h)
		assert.Equal(t, flip, e.Over)
		assert.Equal(t, flip, e.Message == nil)
		link.Close()
		l.Close()
		work.Wait()
		assert.Contains(t, heard.String(), "there", "the hello")
		assert.NotContains(t, heard.String(), "mellon")
	}
}

// impostor answers a hello with a challenge, without the secret, and is silent after that.
// It returns its address, and how many bytes behind hellos it has heard.
func impostor(t *testing.T) (address string, heard func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, hello := protocol.Initiate([]byte("guessed"))
	var sum int64
	var work sync.WaitGroup
	work.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		said := make([]byte, len(hello))
		if _, err := io.ReadFull(c, said); err != nil {
			return
		}
		challenge := append(bytes.Clone(said[:16]), make([]byte, 64)...)
		_, _ = rand.Read(challenge[16:])
		_, _ = c.Write(challenge)
		sum, _ = io.Copy(io.Discard, c)
	})
	return l.Addr().String(), func() int64 {
		l.Close()
		work.Wait()
		return sum
	}
}

// Who answers without the secret does not learn who calls, and does not hold the rank up.
func TestImpostor(t *testing.T) {
	h, w := listen(t)
	alone, heardAlone := impostor(t)
	beside, heardBeside := impostor(t)
	only := *w
	only.Addresses = []string{alone}
	begin := time.Now()
	_, err := only.Call(Hello{Rank: 0, Size: 1, Host: "here"})
	assert.ErrorIs(t, err, handshake.ErrProof)
	w.Addresses = append([]string{beside}, w.Addresses...)
	l, err := w.Call(Hello{Rank: 0, Size: 1, Host: "here"})
	require.NoError(t, err)
	defer l.Close()
	require.NotNil(t, next(t, h).Link)
	assert.Less(t, time.Since(begin), answerLimit-500*time.Millisecond)
	assert.Zero(t, heardAlone())
	assert.Zero(t, heardBeside())
}

// Connections that say nothing keep no rank out.
func TestSilentConnections(t *testing.T) {
	h, w := listen(t)
	for range 2 * (4 + strangers) {
		c, err := net.Dial("tcp", w.Addresses[0])
		require.NoError(t, err)
		defer c.Close()
	}
	begin := time.Now()
	l, err := w.Call(Hello{Rank: 0, Size: 1})
	require.NoError(t, err)
	defer l.Close()
	require.NotNil(t, next(t, h).Link)
	assert.Less(t, time.Since(begin), answerLimit-500*time.Millisecond)
	assert.LessOrEqual(t, h.waiting.Len(), 4+strangers)
}

// A rank whose connections are evicted calls again.
func TestEvictedRanksComeAgain(t *testing.T) {
	h, w := listen(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		for i := 0; ; i++ {
			near, err := l.Accept()
			if err != nil {
				return
			}
			if i < 3 {
				near.Close()
				continue
			}
			far, err := net.Dial("tcp", w.Addresses[0])
			if !assert.NoError(t, err) {
				return
			}
			work.Go(func() { _, _ = io.Copy(near, far); near.Close() })
			work.Go(func() { _, _ = io.Copy(far, near); far.Close() })
		}
	})
	through := *w
	through.Addresses = []string{l.Addr().String()}
	link, err := through.Call(Hello{Rank: 0, Size: 1})
	require.NoError(t, err)
	require.NotNil(t, next(t, h).Link)
	link.Close()
	l.Close()
	work.Wait()
}

// The loopback addresses of a host are of no use to others. A host that has only these has no others.
func TestWhere(t *testing.T) {
	h, w := listen(t)
	loopback := net.Interface{Index: 1, Name: "lo", Flags: net.FlagUp | net.FlagLoopback}
	ethernet := net.Interface{Index: 2, Name: "eth0", Flags: net.FlagUp}
	down := net.Interface{Index: 3, Name: "eth1"}
	addresses := func(i *net.Interface) (list []net.Addr) {
		for _, text := range map[string][]string{
			"lo": {"127.0.0.1/8", "::1/128"}, "eth0": {"10.1.2.3/16", "fe80::1/64", "fd00::3/64"}, "eth1": {"10.9.9.9/16"},
		}[i.Name] {
			ip, n, err := net.ParseCIDR(text)
			require.NoError(t, err)
			list = append(list, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return list
	}
	text := func(all ...net.Interface) (list []string) {
		for _, ip := range reachable(all, addresses) {
			list = append(list, ip.String())
		}
		return list
	}
	assert.Equal(t, []string{"10.1.2.3", "fd00::3"}, text(loopback, ethernet, down))
	assert.Equal(t, []string{"127.0.0.1", "::1"}, text(loopback, down))
	for _, address := range w.Addresses { // each leads home from here, too
		only := *w
		only.Addresses = []string{address}
		l, err := only.Call(Hello{Rank: 0, Size: 1})
		require.NoError(t, err, address)
		require.NotNil(t, next(t, h).Link)
		l.Close()
		assert.True(t, next(t, h).Over)
	}
}
