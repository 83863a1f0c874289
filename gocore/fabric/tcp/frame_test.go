package tcp

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

func TestHead(t *testing.T) {
	h := fabric.Header{Kind: 3, Flags: 0x81, Gen: 0x01020304, Ctx: 0x11121314, Src: -2, Tag: -3, Aux: 0x21222324, Len: 1 << 40, A: 0x3132333435363738, B: 0x4142434445464748}
	var b [headBytes]byte
	encodeHead(b[:], &h, 77, 5)
	assert.Equal(t, "\x4d\x00\x00\x00g\x05\x00\x00\x03\x81\x00\x00\x04\x03\x02\x01", string(b[:16]), "the wire format")
	var got fabric.Header
	n, err := decodeHead(b[:], &got)
	require.NoError(t, err)
	assert.Equal(t, 77, n)
	assert.Equal(t, h, got)
	assert.Equal(t, string(b[prefixBytes:]), string(unsafe.Slice((*byte)(unsafe.Pointer(&h)), fabric.HeaderBytes)), "as it lies in memory of a little-endian machine")
	for _, c := range []struct {
		at    int
		value byte
		says  string
	}{{4, 0, "behind its length"}, {2, 5, "there are at most"}, {3, 255, "there are at most"}, {10, 1, "unused"}} {
		bad := b
		bad[c.at] = c.value
		_, err := decodeHead(bad[:], &got)
		assert.ErrorContains(t, err, c.says)
	}
}

// script is a Sink that records its calls.
type script struct {
	headers  []fabric.Header
	payloads []string
	place    func(h *fabric.Header, n int) unsafe.Pointer
	asked    int
	broken   []error
	deliver  func(h *fabric.Header)
}

func (s *script) Deliver(_ int, h *fabric.Header, payload []byte) {
	if len(s.broken) > 0 {
		panic("delivered after Broken")
	}
	s.headers, s.payloads = append(s.headers, *h), append(s.payloads, string(payload))
	if s.deliver != nil {
		s.deliver(h)
	}
}
func (s *script) Place(_ int, h *fabric.Header, n int) unsafe.Pointer {
	s.asked++
	if s.place == nil {
		return nil
	}
	return s.place(h, n)
}
func (s *script) Completed(uint64, error) { panic("nothing is completed") }
func (s *script) Broken(_ int, err error) { s.broken = append(s.broken, err) }

func frame(h fabric.Header, p string) []byte { return framesFrom(0, h, p) }

func frames(h fabric.Header, payloads ...string) []byte { return framesFrom(0, h, payloads...) }

// framesFrom returns frames with numbers from first on.
func framesFrom(first int, h fabric.Header, payloads ...string) []byte {
	var b []byte
	for k, p := range payloads {
		head := make([]byte, headBytes)
		encodeHead(head, &h, len(p), uint32(first+k))
		b = append(append(append(b, head...), p...), zeros[:frameBytes(len(p))-headBytes-len(p)]...)
	}
	return b
}

// feed makes a pair digest data as if it were read from its socket, at most step
// bytes a read.
func feed(p *pair, s fabric.Sink, data []byte, step func() int) error {
	for len(data) > 0 {
		n := min(step(), len(data))
		if p.rest > 0 {
			pad := frameBytes(p.size) - headBytes - p.size
			n = min(n, p.rest+behindMax)
			for i, b := range data[:n] {
				switch at := p.size + pad - p.rest + i; {
				case at >= p.size+pad:
					p.in[at-p.size-pad] = b
				case at >= p.size || p.dropped:
				case p.into != nil:
					*(*byte)(unsafe.Add(p.into, at)) = b
				default:
					p.scratch[at] = b
				}
			}
		} else {
			n = copy(p.in[p.w:], data[:n])
		}
		if n == 0 {
			panic("the buffer is full")
		}
		if _, err := p.digest(s, n); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func inboundOnly() *pair {
	p := &pair{t: &Transport{trash: make([]byte, 64<<10)}, fd: -1, route: &route{}}
	p.in = make([]byte, inBytes)
	return p
}

// A stream of frames gives the same messages however it is cut into pieces.
func TestDigest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var data []byte
	var want []string
	for k := range 120 {
		n := []int{0, 1, 7, 8, 9, 300, placeMin - 1, placeMin, placeMin + 1, placeMin + 7, inBytes, inBytes + 3, maxShort, 40000}[r.IntN(14)]
		if n == maxShort && k%40 > 0 {
			n = 5
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		want = append(want, string(b))
		data = append(data, framesFrom(k, fabric.Header{Kind: 1, Aux: uint32(k)}, string(b))...)
	}
	mem := make([]byte, maxShort)
	for name, step := range map[string]func() int{
		"whole": func() int { return 1 << 20 }, "byte by byte": func() int { return 1 }, "7": func() int { return 7 },
		"random": func() int { return 1 + r.IntN(1+r.IntN(20000)) }, "48": func() int { return 48 },
	} {
		s := &script{}
		s.place = func(h *fabric.Header, _ int) unsafe.Pointer {
			if h.Aux%2 == 0 {
				return nil
			}
			return unsafe.Pointer(&mem[0])
		}
		require.NoError(t, feed(inboundOnly(), s, data, step), name)
		require.Len(t, s.payloads, len(want), name)
		for k := range want {
			require.Equal(t, want[k] == s.payloads[k], true, "%s: message %d of %d bytes", name, k, len(want[k]))
			require.Equal(t, uint32(k), s.headers[k].Aux)
		}
	}
}

// Any bytes are digested or refused, and no more bytes are delivered than arrived.
func FuzzDigest(f *testing.F) {
	f.Add(frames(fabric.Header{Kind: 1, Len: 3}, "abc", "", "12345678"), 7, false)
	f.Add(frame(fabric.Header{Kind: 1}, string(make([]byte, placeMin+5))), 1000, true)
	f.Add(frames(fabric.Header{Kind: 1}, string(make([]byte, inBytes)), "tail"), 40000, false)
	f.Add(append(frame(fabric.Header{Aux: controlGoodbye}, ""), framesFrom(1, fabric.Header{Kind: 1}, "x")...), 9, false)
	f.Add(frames(fabric.Header{Aux: controlGoodbye}, "", ""), 80, false)
	f.Add(frame(fabric.Header{Aux: controlAnswer}, ""), 80, false)
	bad := frame(fabric.Header{Kind: 1}, "x")
	binary.LittleEndian.PutUint32(bad, 1<<31)
	f.Add(bad, 3, true)
	mem := make([]byte, maxShort)
	f.Fuzz(func(t *testing.T, data []byte, step int, place bool) {
		s := &script{}
		if place {
			s.place = func(_ *fabric.Header, n int) unsafe.Pointer {
				if n > len(mem) {
					t.Fatalf("a payload of %d bytes", n)
				}
				return unsafe.Pointer(&mem[0])
			}
		}
		p := inboundOnly()
		_ = feed(p, s, data, func() int { return max(1, step&0xffff) })
		total := 0
		for _, got := range s.payloads {
			total += frameBytes(len(got))
		}
		if total > len(data) {
			t.Fatalf("%d bytes came of %d", total, len(data))
		}
	})
}
