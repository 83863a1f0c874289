package tcp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/handshake"
	"gormapy/gocore/seal"
	"gormapy/gocore/sys"
)

var testKey = bytes.Repeat([]byte{3}, 32)

func newWay(key []byte) *seal.Way {
	w, err := seal.NewWay(key)
	if err != nil {
		panic(err)
	}
	return w
}

// half returns a pair without a socket, which opens what another one packs.
func half(g Guard) *pair {
	p := inboundOnly()
	p.peer, p.t.id = 1, &identity{guard: g}
	p.sealer, p.opener = newWay(testKey), newWay(testKey)
	return p
}

// packed returns sealed frames.
func packed(p *pair, h fabric.Header, payloads ...string) (frames [][]byte) {
	for k, payload := range payloads {
		h.Aux = uint32(k) + 1
		buf := make([]byte, sealedBytes(len(payload)))
		frames = append(frames, p.pack(buf, &h, []byte(payload)))
	}
	return frames
}

func text(n int, seed uint64) string {
	b := make([]byte, n)
	fabrictest.Fill(b, seed)
	return string(b)
}

// A stream of sealed frames gives the same messages however it is cut into pieces.
func TestDigestSealed(t *testing.T) {
	each(t, Authenticated, func(t *testing.T, g Guard) {
		r := rand.New(rand.NewPCG(3, 4))
		var want []string
		for k := range 120 {
			n := []int{0, 1, 7, 8, 9, 300, placeMin - 1, placeMin, placeMin + 1, placeMin + 7, inBytes, inBytes + 3, maxShort, 40000}[r.IntN(14)]
			if n == maxShort && k%40 > 0 {
				n = 5
			}
			want = append(want, text(n, uint64(k)))
		}
		data := slices.Concat(packed(half(g), fabric.Header{Kind: 1}, want...)...)
		mem := make([]byte, maxShort)
		for name, step := range map[string]func() int{
			"whole": func() int { return 1 << 20 }, "byte by byte": func() int { return 1 }, "7": func() int { return 7 },
			"random": func() int { return 1 + r.IntN(1+r.IntN(20000)) }, "48": func() int { return 48 },
		} {
			s := &script{place: func(h *fabric.Header, _ int) unsafe.Pointer {
				if h.Aux%2 == 0 {
					return nil
				}
				return unsafe.Pointer(&mem[0])
			}}
			require.NoError(t, feed(half(g), s, data, step), name)
			require.Len(t, s.payloads, len(want), name)
			for k := range want {
				require.True(t, want[k] == s.payloads[k], "%s: message %d of %d bytes", name, k, len(want[k]))
				require.Equal(t, uint32(k)+1, s.headers[k].Aux)
			}
		}
	})
}

// What is encrypted can't be read, and what is not can.
func TestWhatCanBeRead(t *testing.T) {
	for g, readable := range map[Guard]bool{Authenticated: true, Encrypted: false} {
		for _, n := range []int{100, joinMax + 1, maxShort} {
			frame := packed(half(g), fabric.Header{Kind: 1, A: 0x6c6c656b72614d20}, "a secret text"+text(n, 1))[0]
			assert.Equal(t, readable, bytes.Contains(frame, []byte("secret")))
			assert.Equal(t, readable, bytes.Contains(frame, []byte(" Markell")), "headers, too")
		}
	}
}

// tampering is what somebody between two ranks may do to the i-th of the frames that pass.
type tampering struct {
	name string
	// do returns what goes on in place of frame, which is the i-th.
	do func(i int, frame []byte) [][]byte
}

// tamperings returns what may be done to frame i, or before it: of its bits, some are flipped.
func tamperings(g Guard, i int, subject []byte, bits int) (all []tampering) {
	only := func(f func(frame []byte) [][]byte) func(int, []byte) [][]byte {
		return func(k int, frame []byte) [][]byte {
			if k != i {
				return [][]byte{frame}
			}
			return f(frame)
		}
	}
	total := len(subject) * 8
	for bit := 0; bit < total; bit += max(1, total/bits) {
		all = append(all, tampering{fmt.Sprintf("bit %d of frame %d", bit, i), only(func(frame []byte) [][]byte {
			changed := bytes.Clone(frame)
			changed[bit/8] ^= 1 << (bit % 8)
			return [][]byte{changed}
		})})
	}
	foreign := half(g)
	foreign.sealer = newWay(bytes.Repeat([]byte{4}, 32))
	again := half(g) // what this side itself would send as its first frame
	for name, extra := range map[string][]byte{
		"invented":                   packed(foreign, fabric.Header{Kind: 2}, "invented")[0],
		"in clear":                   frame(fabric.Header{Kind: 2}, "in clear"),
		"clear, with a tag of zeros": append(frame(fabric.Header{Kind: 2}, "in clear"), make([]byte, seal.Overhead)...),
		"long and invented":          packed(foreign, fabric.Header{Kind: 2}, text(placeMin+1, 5))[0],
		"a goodbye in clear":         frame(fabric.Header{Aux: controlGoodbye}, ""),
		"a first frame":              packed(again, fabric.Header{Kind: 2}, "first")[0],
	} {
		if name == "a first frame" && i == 0 {
			continue // with the same key that is a good one
		}
		all = append(all, tampering{fmt.Sprintf("%s before frame %d", name, i), only(func(frame []byte) [][]byte { return [][]byte{extra, frame} })})
	}
	var held []byte
	return append(all,
		tampering{fmt.Sprintf("frame %d is dropped", i), only(func([]byte) [][]byte { return nil })},
		tampering{fmt.Sprintf("frame %d is repeated", i), only(func(frame []byte) [][]byte { return [][]byte{frame, frame} })},
		tampering{fmt.Sprintf("8 bytes of frame %d are dropped", i), only(func(frame []byte) [][]byte { return [][]byte{slices.Concat(frame[:64], frame[72:])} })},
		tampering{fmt.Sprintf("8 bytes of frame %d are repeated", i), only(func(frame []byte) [][]byte { return [][]byte{frame[:64], frame[56:]} })},
		tampering{fmt.Sprintf("frames %d and %d change places", i, i+1), func(k int, frame []byte) [][]byte {
			switch k {
			case i:
				held = frame
				return nil
			case i + 1:
				return [][]byte{frame, held}
			}
			return [][]byte{frame}
		}},
	)
}

// Whatever is done to frames, those before it are delivered, and nothing else. Nothing is written
// to the program's memory but what the peer has sent.
func TestTampering(t *testing.T) {
	long := text(3*placeMin+5, 7)
	payloads := []string{"short one", "", text(placeMin, 9), long, "short two", text(placeMin+1, 8), "tail"}
	each(t, Authenticated, func(t *testing.T, g Guard) {
		from := half(g)
		frames := packed(from, fabric.Header{Kind: 1}, payloads...)
		var more []byte // so that a longer length is no reason to wait
		for range 3 {
			more = append(more, packed(from, fabric.Header{Kind: 1}, text(maxShort, 1))[0]...)
		}
		for i := range frames[:len(frames)-1] {
			bits := 1000
			if len(frames[i]) > 300 {
				bits = 97
			}
			for _, what := range tamperings(g, i, frames[i], bits) {
				var data []byte
				for k, frame := range frames {
					data = append(data, slices.Concat(what.do(k, frame)...)...)
				}
				p, s := half(g), &script{}
				placed := make([]byte, maxShort)
				fabrictest.Fill(placed, 4711)
				s.place = func(*fabric.Header, int) unsafe.Pointer { return unsafe.Pointer(&placed[0]) }
				err := feed(p, s, append(data, more...), func() int { return 5000 })
				require.Error(t, err, what.name)
				good := i
				if what.name == fmt.Sprintf("frame %d is repeated", i) {
					good++
				}
				require.Equal(t, payloads[:good], append([]string{}, s.payloads...), what.name)
				if i <= 3 && good <= 3 {
					require.Zero(t, s.asked, what.name)
					require.Empty(t, fabrictest.Check(placed, 4711), what.name)
				}
			}
		}
	})
}

// FuzzDigestSealed: bytes that no peer has sealed give no message, and never more memory than a frame.
func FuzzDigestSealed(f *testing.F) {
	good := slices.Concat(packed(half(Encrypted), fabric.Header{Kind: 1}, "abc", text(placeMin+1, 2), "tail")...)
	f.Add(good, 7, 0, byte(0), true)
	f.Add(good, 1000, 40, byte(1), true)
	f.Add(good, 5000, 3, byte(0x80), false)
	f.Add(frame(fabric.Header{Kind: 1}, "x"), 9, 0, byte(0), false)
	mem := make([]byte, maxShort)
	f.Fuzz(func(t *testing.T, data []byte, step, at int, change byte, encrypted bool) {
		g := Authenticated
		if encrypted {
			g = Encrypted
		}
		s := &script{place: func(*fabric.Header, int) unsafe.Pointer { return unsafe.Pointer(&mem[0]) }}
		want := []string{"abc", text(placeMin+1, 2), "tail"}
		changed := slices.Concat(packed(half(g), fabric.Header{Kind: 1}, want...)...)
		if at >= 0 && change != 0 {
			changed[at%len(changed)] ^= change
		}
		for _, wire := range [][]byte{changed, data} {
			s.payloads = nil
			_ = feed(half(g), s, bytes.Clone(wire), func() int { return max(1, step&0xffff) })
			for k, got := range s.payloads {
				if k >= len(want) || got != want[k] {
					t.Fatalf("message %d is delivered, and was not sent", k)
				}
			}
		}
	})
}

// Other threads and ranks may write to a payload while it is sent, and to the memory to which it goes:
// that is no reason for a wrong tag.
func TestMemoryThatChanges(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) {
		w := fabrictest.NewWorld(t, 2, guarded(g))
		size := piece
		from, to := fabrictest.Memory(t, size), fabrictest.Memory(t, size)
		var over atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; !over.Load(); i++ {
				from[i%size]++
				to[i%size]++
			}
		}()
		var got atomic.Int32
		w.Ranks[1].StopPolling(func() {
			w.Ranks[1].OnPlace = func(int, *fabric.Header, int) unsafe.Pointer { return fabrictest.Pointer(to) }
			w.Ranks[1].OnDeliver = func(int, *fabric.Header, []byte) { got.Add(1) }
		})
		const n = 300
		for range n {
			require.NoError(t, w.Ranks[0].Send(1, &fabric.Header{Kind: 1, Len: uint64(size)}, from))
		}
		fabrictest.Until(t, "all messages", func() bool { return got.Load() == n || len(w.Ranks[1].Broke(0)) > 0 })
		over.Store(true)
		<-done
		assert.Empty(t, w.Ranks[1].Broke(0))
	})
}

// A payload that can't be read is not sent, and a place that can't be written to does no harm to
// later messages.
func TestMemoryThatFaults(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	each(t, Clear, func(t *testing.T, g Guard) {
		debug.SetPanicOnFault(true)
		w := fabrictest.NewWorld(t, 2, guarded(g))
		exchange(t, w)
		a, b := w.Ranks[0], w.Ranks[1]
		a.Pause()
		b.Pause()
		none, err := unix.Mmap(-1, 0, maxShort, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
		require.NoError(t, err)
		defer func() { assert.NoError(t, unix.Munmap(none)) }()
		got, s := 0, &checker{}
		s.place = func(*fabric.Header, int) unsafe.Pointer { return unsafe.Pointer(&none[0]) }
		s.take = func(h *fabric.Header, payload []byte) {
			got++
			assert.Equal(t, h.Len, uint64(len(payload)))
			if g != Clear {
				assert.Empty(t, fabrictest.Check(payload, 6))
			}
		}
		want := 0
		for _, n := range []int{8, joinMax, joinMax + 1, piece, maxShort} {
			good := make([]byte, n)
			fabrictest.Fill(good, 6)
			for _, payload := range [][]byte{good, none[:n], good} {
				h := fabric.Header{Kind: 1, Len: uint64(n)}
				var sent error
				fault := sys.Touch(func() { sent = a.Endpoint(1).Send(&h, payload) })
				if &payload[0] == &none[0] {
					assert.True(t, sys.IsFault(fault) || sys.IsFault(sent), "%d bytes: %v, %v", n, fault, sent)
					continue
				}
				require.NoError(t, fault)
				require.NoError(t, sent)
				want++
				fabrictest.Until(t, "the message", func() bool {
					inside(a).Poll(s)
					inside(b).Poll(s)
					return got == want || len(s.broken) > 0
				})
			}
		}
		assert.Empty(t, s.broken)
	})
}

// Ranks that guard differently what they send do not connect, and both are told why.
func TestGuardsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		guards [2]Guard
		says   string
	}{
		{[2]Guard{Clear, Authenticated}, "what rank 1 sends is authenticated, what this rank sends is neither authenticated nor encrypted: all ranks of a job need the same GORMAPY_TLS and GORMAPY_TCP_MAC"},
		{[2]Guard{Authenticated, Encrypted}, "what rank 1 sends is authenticated and encrypted, what this rank sends is authenticated: all"},
		{[2]Guard{Encrypted, Clear}, "what rank 1 sends is neither authenticated nor encrypted, what this rank sends is authenticated and encrypted: all"},
	} {
		for caller := range 2 {
			w := fabrictest.NewWorld(t, 2, func(dir fabric.Directory) (fabric.Transport, error) {
				return New(dir, Options{Guard: c.guards[dir.Rank()]})
			})
			for _, r := range w.Ranks {
				r.StopPolling(func() {
					r.OnDeliver = func(int, *fabric.Header, []byte) { t.Error("a message is delivered") }
				})
			}
			assert.Error(t, w.Ranks[caller].Send(1-caller, &fabric.Header{Kind: 1}, []byte("x")))
			fabrictest.Until(t, "both break", func() bool { return len(w.Ranks[0].Broke(1)) > 0 && len(w.Ranks[1].Broke(0)) > 0 })
			assert.ErrorContains(t, w.Ranks[0].Broke(1)[0], "connect to rank 1 failed: handshake failed ("+c.says)
			assert.ErrorContains(t, w.Ranks[1].Broke(0)[0], "connect to rank 0 failed: handshake failed (what rank 0 sends is "+c.guards[0].String())
		}
	}
	_, err := New(fabrictest.Directories(1)[0], Options{Guard: guards})
	assert.ErrorContains(t, err, "there is no guard 3")
}

func TestGuardsBySettings(t *testing.T) {
	for _, c := range []struct {
		tls, mac string
		one, two Guard
		says     string
	}{
		{"", "", Clear, Authenticated, ""},
		{"0", "auto", Clear, Authenticated, ""},
		{"", "0", Clear, Clear, ""},
		{"", "1", Authenticated, Authenticated, ""},
		{"1", "", Encrypted, Encrypted, ""},
		{"1", "0", Encrypted, Encrypted, ""},
		{"yes", "", 0, 0, `GORMAPY_TLS is "yes", which it can't be: choose from 0, 1`},
		{"", "off", 0, 0, `GORMAPY_TCP_MAC is "off", which it can't be: choose from auto, 1, 0`},
	} {
		t.Setenv(TLS.Name, c.tls)
		t.Setenv(MAC.Name, c.mac)
		for hosts, want := range map[int]Guard{1: c.one, 2: c.two} {
			o, err := OptionsFor(hosts)
			if c.says != "" {
				assert.EqualError(t, err, c.says)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, want, o.Guard, "%v on %d hosts", c, hosts)
		}
	}
}

func TestGuardsAreShown(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) {
		w := fabrictest.NewWorld(t, 2, guarded(g))
		exchange(t, w)
		assert.Regexp(t, `^127.0.0.1:\d+ to 127.0.0.1:\d+`+g.note()+`$`, inside(w.Ranks[0]).Describe(1))
	})
}

// Frames that fit into the pair's buffer take no other memory, and little of it is kept of those that do not.
func TestMemoryOfLongFrames(t *testing.T) {
	each(t, Authenticated, func(t *testing.T, g Guard) {
		var want []string
		for n := placeMin - 9; sealedBytes(n) <= inBytes; n += 1234 {
			want = append(want, text(n, uint64(n)))
		}
		fits := inBytes - headBytes - seal.Overhead
		require.Equal(t, inBytes, sealedBytes(fits))
		want = append(want, text(fits, 1), text(fits, 2), "tail", text(fits, 3))
		for _, step := range []int{1 << 20, 5000, 3000, 64, 7} {
			p, s := half(g), &script{}
			require.NoError(t, feed(p, s, slices.Concat(packed(half(g), fabric.Header{Kind: 1}, want...)...), func() int { return step }))
			require.Equal(t, len(want), len(s.payloads))
			for k := range want {
				require.True(t, want[k] == s.payloads[k], "message %d", k)
			}
			assert.Empty(t, p.t.spare, "steps of %d", step)
		}
		p, s := half(g), &script{}
		require.NoError(t, feed(p, s, packed(half(g), fabric.Header{Kind: 1}, text(fits+1, 1))[0], func() int { return 5000 }))
		assert.Len(t, p.t.spare, 1)
		var taken [][]byte
		for range 3 * maxSpare {
			taken = append(taken, p.t.takeScratch())
		}
		for _, b := range taken {
			p.t.giveScratch(b)
		}
		assert.Len(t, p.t.spare, maxSpare)
	})
}

// An acceptor that uses the connection and has another guard is told so by the initiator.
func TestGuardInTheVerdict(t *testing.T) {
	for _, verdict := range []byte{verdictUse, verdictYield} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			x := keyed.Accept(func(handshake.Tag) []byte { return testSecret })
			if _, err := x.Hear(c); err == nil {
				_ = x.Tell(c, []byte{verdict, byte(Encrypted)})
			}
			_, _ = io.Copy(io.Discard, c)
		}()
		dir := other{fabrictest.Directories(2)[1], testSecret, map[int][]byte{0: encodeCard([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, l.Addr().(*net.TCPAddr).AddrPort().Port())}}
		tr, err := New(dir, Options{Guard: Authenticated})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, tr.Close()) })
		_, err = tr.Connect(0)
		require.NoError(t, err)
		s := &script{}
		fabrictest.Until(t, "Broken", func() bool { tr.Poll(s); return len(s.broken) > 0 })
		assert.ErrorContains(t, s.broken[0], "what rank 0 sends is authenticated and encrypted, what this rank sends is authenticated: all")
	}
}

// The key of a handshake is made when somebody has accepted the connection.
func TestNoKeyBeforeTheConnection(t *testing.T) {
	dir := other{fabrictest.Directories(2)[1], testSecret, map[int][]byte{0: encodeCard([]netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, 1})}, 9)}}
	tr, err := New(dir, Options{Guard: Encrypted})
	require.NoError(t, err)
	defer tr.Close()
	_, err = tr.Connect(0)
	require.NoError(t, err)
	tr.Poll(&script{})
	for _, a := range tr.attempts {
		assert.True(t, a.connecting)
		assert.Nil(t, a.hs)
	}
}
