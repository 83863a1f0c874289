package transfer

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/handshake"
	"gormapy/gocore/rdmaapi/backend"
)

func someHello() hello {
	return hello{from: [idBytes]byte{1}, to: [idBytes]byte{2}, name: "a", backend: "tcp", infos: [][]byte{{1, 2, 3}, {}}}
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	h := someHello()
	got, err := parseHello(h.bytes())
	require.NoError(t, err)
	assert.Equal(t, h, got)
	for _, a := range []answer{{infos: [][]byte{{9}, {8, 7}}}, {refusal: "no"}} {
		got, err := parseAnswer(a.bytes())
		require.NoError(t, err)
		assert.Equal(t, a, got)
	}
}

func TestMessagesThatAreCutOff(t *testing.T) {
	h := someHello()
	b := h.bytes()
	for n := range b {
		_, err := parseHello(b[:n])
		assert.Error(t, err, "%d bytes", n)
	}
	_, err := parseHello(append(b, 0))
	assert.Error(t, err)
	b = (&answer{infos: [][]byte{{9}, {8, 7}}}).bytes()
	for n := range b {
		_, err := parseAnswer(b[:n])
		assert.Error(t, err, "%d bytes", n)
	}
}

func FuzzHello(f *testing.F) {
	h := someHello()
	f.Add(h.bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err == nil {
			assert.Equal(t, b, h.bytes())
			assert.LessOrEqual(t, len(h.infos), maxLanes)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add((&answer{infos: [][]byte{{9}, {8, 7}}}).bytes())
	f.Add((&answer{refusal: "no"}).bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseAnswer(b); err == nil {
			assert.True(t, a.refusal != "" || len(a.infos) > 0)
		}
	})
}

func FuzzNotice(f *testing.F) {
	b := make([]byte, noticeBytes)
	putNotice(b, 3, 4, 5)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if lanes, serial, uid, ok := parseNotice(b); ok {
			again := make([]byte, noticeBytes)
			putNotice(again, lanes, serial, uid)
			assert.Equal(t, b, again)
		}
	})
}

// dial connects to an engine without a handshake.
func dial(t *testing.T, e *Engine) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", e.card.Address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a socket has deadlines
	return conn
}

// greet connects to an engine, whose secret the caller knows.
func greet(t *testing.T, e *Engine) (net.Conn, *handshake.Exchange) {
	t.Helper()
	conn := dial(t, e)
	x, err := protocol.Call(conn, e.card.Secret[:])
	require.NoError(t, err)
	return conn, x
}

// hungUp asserts that an engine sends nothing and closes the connection.
func hungUp(t *testing.T, conn net.Conn) {
	t.Helper()
	b, err := io.ReadAll(conn)
	if err != nil {
		assert.NotErrorIs(t, err, io.EOF)
		var timeout net.Error
		assert.False(t, assert.ErrorAs(t, err, &timeout) && timeout.Timeout(), "the engine has not hung up")
	}
	assert.Empty(t, b)
}

func TestUnauthenticatedPeersAreRefused(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		a, b := engine(t, by, "a", nil), engine(t, by, "b", nil)
		infos := [][]byte{bytes.Repeat([]byte{1}, 60)}
		h := hello{to: b.card.ID, name: "a", backend: b.card.Backend, infos: infos}
		t.Run("wrong secret", func(t *testing.T) {
			conn := dial(t, b)
			_, err := protocol.Call(conn, make([]byte, secretBytes))
			assert.ErrorIs(t, err, handshake.ErrUnknown)
			hungUp(t, conn)
		})
		t.Run("the tag without the secret", func(t *testing.T) {
			conn := dial(t, b)
			x, hi := protocol.Initiate(make([]byte, secretBytes))
			tag := protocol.Tag(b.card.Secret[:])
			copy(hi[16:], tag[:])
			conn.Write(hi) //nolint:errcheck // the engine reads it
			_, err := x.Hear(conn)
			assert.ErrorIs(t, err, handshake.ErrProof)
			require.NoError(t, x.Tell(conn, h.bytes()))
			hungUp(t, conn)
		})
		t.Run("proof of another connection", func(t *testing.T) {
			_, x := greet(t, b)
			conn, _ := greet(t, b)
			conn.Write(x.Say(h.bytes())) //nolint:errcheck // it hangs up
			hungUp(t, conn)
		})
		t.Run("the id of another engine", func(t *testing.T) {
			conn, x := greet(t, b)
			other := h
			other.to = a.card.ID
			require.NoError(t, x.Tell(conn, other.bytes()))
			hungUp(t, conn)
		})
		t.Run("noise", func(t *testing.T) {
			conn := dial(t, b)
			noise := make([]byte, 1<<16)
			rand.Read(noise) //nolint:errcheck // it ends the program rather than fail
			binary.LittleEndian.PutUint32(noise, 1<<31)
			conn.Write(noise) //nolint:errcheck // it hangs up
			hungUp(t, conn)
		})
		t.Run("silence and half a hello", func(t *testing.T) {
			dial(t, b)
			conn := dial(t, b)
			_, hi := protocol.Initiate(b.card.Secret[:])
			conn.Write(hi[:len(hi)/2]) //nolint:errcheck // it waits for more
		})
		t.Run("infos of no queue pair", func(t *testing.T) {
			conn, x := greet(t, b)
			other := h
			other.infos = [][]byte{{1}}
			require.NoError(t, x.Tell(conn, other.bytes()))
			said, err := x.Hear(conn)
			require.NoError(t, err)
			got, err := parseAnswer(said)
			require.NoError(t, err)
			assert.NotEmpty(t, got.refusal)
		})
		t.Run("an engine with the descriptor is accepted", func(t *testing.T) {
			require.NoError(t, a.AddRemote(b.card))
			p := newPlace(t, a, b, 100)
			finish(t, p.session.Transfer(backend.OpWrite, []Entry{{0, 0, 100}}, -1))
			assert.Equal(t, p.source, p.target)
		})
	})
}

func TestAnImpostorIsDetected(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		a, b := engine(t, by, "a", nil), engine(t, by, "b", nil)
		false1 := b.card
		false1.Secret = [secretBytes]byte{1} // the engine at that address can't prove that it has it
		require.NoError(t, a.AddRemote(false1))
		p := newPlace(t, a, b, 100)
		s := p.session.Transfer(backend.OpWrite, []Entry{{0, 0, 100}}, -1)
		require.True(t, s.Wait(10*time.Second))
		c, text := s.Get()
		assert.Equal(t, RDMAOp, c)
		assert.Contains(t, text, "does not know this descriptor")
		assert.NotEqual(t, p.source, p.target)
	})
}

// An initiator says of what listens at an engine's address what it is.
func TestWhatIsNoEngine(t *testing.T) {
	says := func(what string) func(net.Conn) {
		return func(conn net.Conn) {
			io.ReadFull(conn, make([]byte, 64)) //nolint:errcheck // it is the hello
			go io.Copy(io.Discard, conn)        //nolint:errcheck // it ends with the connection
			conn.Write([]byte(what))            //nolint:errcheck // the other end reads it
		}
	}
	for name, c := range map[string]struct {
		server func(net.Conn)
		want   string
	}{
		"a web server":           {says("HTTP/1.1 400 Bad Request\r\n\r\n"), "what listens there is no engine"},
		"a queue pair":           {says("gormapy\x01soft\x00\x00\x00\x00"), "what listens there is no engine"},
		"a newer engine":         {says("gormapy\x03transfer"), "it speaks version 3; this is version 2"},
		"one that hangs up":      {says(""), "no greeting: EOF"},
		"one that knows the tag": {says("gormapy\x02transfer" + strings.Repeat("x", 64)), "its answer has a wrong proof"},
		"another engine": {func(conn net.Conn) {
			protocol.Accept(func(handshake.Tag) []byte { return nil }).Hear(conn) //nolint:errcheck // it is unknown
		}, "it does not know this descriptor: it is of another engine, which has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			go func() {
				c.server(far)
				far.Close()
			}()
			h := someHello()
			_, err := initiate(near, &Card{Secret: [secretBytes]byte{1}}, h, 10*time.Second)
			assert.EqualError(t, err, c.want)
		})
	}
}
