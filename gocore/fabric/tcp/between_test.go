package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/seal"
)

// The bytes of the handshake in both directions.
const (
	toAcceptor  = 64 + 4 + ranksBytes + 32
	toInitiator = 80 + 4 + verdictBytes + 32
)

// between is somebody between rank 1, which calls, and rank 0. It passes on the handshake, and what
// do makes of the frames that rank 1 sends.
func between(t *testing.T, g Guard, do func(i int, frame []byte) [][]byte) (w *fabrictest.World) {
	t.Helper()
	w = fabrictest.NewWorld(t, 2, guarded(g))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", inside(w.Ranks[0]).at.String())
		if err != nil {
			return
		}
		go func() { pass(near, far, toInitiator, func(_ int, frame []byte) [][]byte { return [][]byte{frame} }) }()
		pass(far, near, toAcceptor, do)
	}()
	w.Ranks[1].StopPolling(func() {
		tr := inside(w.Ranks[1])
		card := encodeCard([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, l.Addr().(*net.TCPAddr).AddrPort().Port())
		tr.dir = other{tr.dir, tr.dir.Secret(), map[int][]byte{0: card}}
	})
	return w
}

// pass passes on what one side sends until it ends, and closes both.
func pass(to, from net.Conn, handshake int64, do func(i int, frame []byte) [][]byte) {
	defer to.Close()
	defer from.Close()
	if _, err := io.CopyN(to, from, handshake); err != nil {
		return
	}
	for i := 0; ; i++ {
		prefix := make([]byte, prefixBytes)
		if _, err := io.ReadFull(from, prefix); err != nil {
			return
		}
		n, err := decodePrefix(prefix)
		if err != nil {
			return
		}
		frame := make([]byte, sealedBytes(n))
		copy(frame, prefix)
		if _, err := io.ReadFull(from, frame[prefixBytes:]); err != nil {
			return
		}
		for _, f := range do(i, frame) {
			if _, err := to.Write(f); err != nil {
				return
			}
		}
	}
}

// Whatever somebody between two ranks does to what one of them sends, the other gets what was sent
// before it and nothing else, and is told that the connection is not safe.
func TestSomebodyBetween(t *testing.T) {
	payloads := []string{"one", "two", text(piece, 3), "four", text(placeMin+1, 5), "six", "seven"}
	each(t, Authenticated, func(t *testing.T, g Guard) {
		sample := packed(half(g), fabric.Header{Kind: 1}, payloads...)
		for _, i := range []int{0, 2, 3} { // TestTampering has all
			for _, what := range tamperings(g, i, sample[i], 4) {
				good := i
				if what.name == fmt.Sprintf("frame %d is repeated", i) {
					good++
				}
				finds(t, what.name, between(t, g, what.do), payloads, good)
			}
		}
		w := between(t, g, func(_ int, frame []byte) [][]byte { return [][]byte{frame} })
		for _, p := range payloads {
			require.NoError(t, w.Ranks[1].Send(0, &fabric.Header{Kind: 1}, []byte(p)))
		}
		assert.NoError(t, w.Ranks[0].Send(1, &fabric.Header{Kind: 1}, []byte("back")))
	})
}

// finds checks that rank 0 gets the first good of what rank 1 sends, and then finds out.
func finds(t *testing.T, what string, w *fabrictest.World, payloads []string, good int) {
	defer w.Close()
	s := &script{}
	w.Ranks[0].Pause()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, p := range payloads {
			_ = w.Ranks[1].Send(0, &fabric.Header{Kind: 1}, []byte(p))
		}
		for w.Ranks[1].Send(0, &fabric.Header{Kind: 1}, make([]byte, maxShort)) == nil { // a longer length is no reason to wait
		}
	}()
	pollUntil(t, w.Ranks[0], s, what, func() bool { return len(s.broken) > 0 })
	assert.Equal(t, payloads[:good], append([]string{}, s.payloads...), what)
	assert.ErrorContains(t, s.broken[0], "connection to rank 1 failed: ", what)
	assert.NotErrorIs(t, s.broken[0], fabric.ErrDisconnected, what)
	assert.True(t, errors.Is(s.broken[0], seal.ErrForged) || errors.Is(s.broken[0], fabric.ErrPeerGone), "%s: %v", what, s.broken[0])
	assert.Equal(t, s.broken[0], w.Ranks[0].Endpoint(1).Send(&fabric.Header{Kind: 1}, nil), what)
	select {
	case <-sent:
	case <-time.After(fabrictest.Patience):
		assert.Fail(t, "the other one does not learn of it", what)
	}
}
