package agent

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/job"
)

// tap is somebody between an agent and those who call it. It flips a bit of what goes to the agent, or of what
// comes from it, behind the handshake. It returns the card that leads through it.
func tap(t *testing.T, card []byte, toAgent bool) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	t.Cleanup(func() { l.Close(); work.Wait() })
	port := func(of []byte) []byte { return of[2:4] } // see package tcp, encodeCard
	there := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(binary.LittleEndian.Uint16(port(card)))}
	work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.DialTCP("tcp", nil, &there)
			if err != nil {
				near.Close()
				continue
			}
			work.Go(func() { pass(far, near, toAgent) })
			work.Go(func() { pass(near, far, !toAgent) })
		}
	})
	through := append([]byte{}, card...)
	binary.LittleEndian.PutUint16(port(through), uint16(l.Addr().(*net.TCPAddr).Port))
	return through
}

// behind is an offset behind the handshake, in the first frame.
const behind = 150

func pass(to, from net.Conn, flip bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 4096)
	for at := 0; ; {
		n, err := from.Read(buf)
		if k := behind - at; flip && k >= 0 && k < n {
			buf[k] ^= 1
		}
		at += n
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
	}
}

// TestForgedFrames: agents between which frames are forged part, and the reason is not said to be a network that
// is divided.
func TestForgedFrames(t *testing.T) {
	for _, victim := range []int{0, 1} {
		segs := nodes(t, 0, 1)
		a, err := New(segs[0], 0, guarded)
		require.NoError(t, err)
		b, err := New(segs[1], 1, guarded)
		require.NoError(t, err)
		t.Cleanup(func() { leave(a, b) })
		require.NoError(t, a.Start(map[int][]byte{0: a.Card(), 1: tap(t, b.Card(), victim == 1)}))
		require.NoError(t, b.Start(map[int][]byte{1: b.Card(), 0: tap(t, a.Card(), victim == 0)}))
		for r, seg := range segs {
			seg.SetState(r, job.StateReady)
		}
		if victim == 0 {
			comes(t, "the end of node 1", func() bool { return ended(segs[0], 1) })
			assert.Equal(t, job.NodeLeft|job.Unreachable|job.Forged, flags(segs[0], 1))
		} else {
			comes(t, "the end of this node", segs[1].HasCutOff)
			assert.True(t, segs[1].CutByForgery())
		}
	}
}

// TestForgedIsToldOn: a node that hears of it from another one knows why it has to leave, and why others do.
func TestForgedIsToldOn(t *testing.T) {
	segs := nodes(t, 0, 1, 2)
	agents := make([]*Agent, 3)
	for r, seg := range segs {
		var err error
		agents[r], err = New(seg, r, guarded)
		require.NoError(t, err)
	}
	t.Cleanup(func() { leave(agents...) })
	card := func(of int) []byte { return agents[of].Card() }
	for r, seg := range segs {
		seg.SetState(r, job.StateReady)
	}
	require.NoError(t, agents[0].Start(map[int][]byte{0: card(0), 1: card(1), 2: card(2)}))
	require.NoError(t, agents[1].Start(map[int][]byte{0: card(0), 1: card(1), 2: tap(t, card(2), true)}))
	require.NoError(t, agents[2].Start(map[int][]byte{0: card(0), 1: tap(t, card(1), false), 2: card(2)}))
	comes(t, "the end of node 2", func() bool { return ended(segs[0], 2) })
	assert.Equal(t, job.NodeLeft|job.Unreachable|job.Forged, flags(segs[0], 2))
	assert.False(t, ended(segs[0], 1))
	comes(t, "the end of this node", segs[2].HasCutOff)
	assert.True(t, segs[2].CutByForgery())
}
