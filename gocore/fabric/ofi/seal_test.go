package ofi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

func mustSeal(secret []byte, from, to int, n nonce, authenticate bool) *seal {
	s, err := newSeal(secret, from, to, n, authenticate)
	if err != nil {
		panic(err)
	}
	return s
}

var testSecret = []byte("the secret of a test's job")

// framed returns a sealed message.
func framed(s *seal, src int, number uint64, text string) []byte {
	b := make([]byte, prefixBytes+fabric.HeaderBytes+len(text))
	putPrefix(b, frameMessage, src, number)
	b[prefixBytes] = byte(fabric.KindEager)
	copy(b[prefixBytes+fabric.HeaderBytes:], text)
	s.put(b)
	return b
}

func TestASealFitsOnlyItsFrame(t *testing.T) {
	n := drawNonce()
	in := mustSeal(testSecret, 1, 0, n, true)
	frame := framed(mustSeal(testSecret, 1, 0, n, true), 1, 7, "twenty bytes of text")
	accepted := func(b []byte) bool { return in.check(bytes.Clone(b)) }
	require.True(t, accepted(frame))
	require.True(t, accepted(frame), "to check it changes nothing")
	for bit := range 8 * len(frame) {
		changed := bytes.Clone(frame)
		changed[bit/8] ^= 1 << (bit % 8)
		assert.False(t, accepted(changed), "bit %d is changed", bit)
	}
	assert.False(t, accepted(frame[:len(frame)-1]))
	assert.False(t, accepted(append(bytes.Clone(frame), 0)))
	other := framed(mustSeal(testSecret, 1, 0, n, true), 1, 8, "twenty bytes of text")
	assert.NotEqual(t, frame[tagOffset:prefixBytes], other[tagOffset:prefixBytes])
	copy(other[tagOffset:prefixBytes], frame[tagOffset:])
	assert.False(t, accepted(other), "the tag of another number")
}

// A frame that the provider has refused is made again, perhaps with other contents: the GMAC's nonce is another one.
func TestANonceIsUsedOnce(t *testing.T) {
	n := drawNonce()
	out, in := mustSeal(testSecret, 1, 0, n, true), mustSeal(testSecret, 1, 0, n, true)
	seen := map[string]bool{}
	for _, text := range []string{"refused", "refused", "another one", "longer than the others"} {
		frame := framed(out, 1, 1, text)
		number := string(frame[nonceOffset:tagOffset])
		assert.False(t, seen[number], text)
		seen[number] = true
		assert.True(t, in.check(bytes.Clone(frame)))
		frame[nonceOffset]++
		assert.False(t, in.check(frame), "the number belongs to the tag")
	}
}

func TestATokenIsNoPartOfAKey(t *testing.T) {
	n := drawNonce()
	token := mustSeal(testSecret, 1, 0, n, false).token
	key := sealKey(testSecret, 1, 0, n, true)
	assert.NotEqual(t, token, binary.LittleEndian.Uint64(key))
	assert.NotEqual(t, key, sealKey(testSecret, 1, 0, n, false))
}

func TestASealIsOfOneDirection(t *testing.T) {
	n, before := drawNonce(), drawNonce()
	for _, authenticate := range []bool{true, false} {
		in := mustSeal(testSecret, 1, 0, n, authenticate)
		for name, s := range map[string]*seal{
			"the other direction":    mustSeal(testSecret, 0, 1, n, authenticate),
			"another sender":         mustSeal(testSecret, 2, 0, n, authenticate),
			"another receiver":       mustSeal(testSecret, 1, 2, n, authenticate),
			"another secret":         mustSeal([]byte("guessed"), 1, 0, n, authenticate),
			"an earlier transport's": mustSeal(testSecret, 1, 0, before, authenticate),
			"the other kind":         mustSeal(testSecret, 1, 0, n, !authenticate),
		} {
			assert.False(t, in.check(framed(s, 1, 1, "forged")), name)
		}
		assert.True(t, in.check(framed(mustSeal(testSecret, 1, 0, n, authenticate), 1, 1, "genuine")))
		assert.False(t, in.check(make([]byte, prefixBytes)))
	}
}

func FuzzFrame(f *testing.F) {
	s := mustSeal(testSecret, 1, 0, nonce{}, true)
	f.Add(framed(s, 1, 1, "text"))
	f.Add(make([]byte, prefixBytes))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := append(make([]byte, 0, len(data)+8), data...) // aligned, as decodeFrame requires
		if d, ok := decodeFrame(b, 2); ok {
			assert.Less(t, d.src, 2)
			assert.LessOrEqual(t, len(d.rest), len(b)-prefixBytes)
			s.check(b)
		}
	})
}

func FuzzCard(f *testing.F) {
	c := card{provider: "tcp;ofi_rxm", name: []byte{2, 0, 1, 2, 127, 0, 0, 1}, nonce: drawNonce()}
	good, err := c.encode()
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := decodeCard(b); err == nil {
			again, err := c.encode()
			require.NoError(t, err)
			assert.True(t, bytes.HasPrefix(b, again))
		}
	})
}

func TestCards(t *testing.T) {
	c := card{provider: "tcp;ofi_rxm", name: []byte{2, 0, 1, 2, 127, 0, 0, 1}, nonce: drawNonce()}
	b, err := c.encode()
	require.NoError(t, err)
	got, err := decodeCard(b)
	require.NoError(t, err)
	assert.Equal(t, &c, got)
	for n := range b {
		_, err := decodeCard(b[:n])
		assert.ErrorIs(t, err, errBadCard, "%d bytes", n)
	}
	_, err = decodeCard(append(b, make([]byte, fabric.CardBytes)...))
	assert.ErrorIs(t, err, errBadCard)
	long := card{provider: "efa", name: make([]byte, fabric.CardBytes)}
	_, err = long.encode()
	assert.ErrorContains(t, err, "there is room for 457")
}

// What the tag of a frame of a size costs, at one of the two ends.
func BenchmarkSeal(b *testing.B) {
	for _, authenticate := range []bool{false, true} {
		s := mustSeal(testSecret, 1, 0, nonce{}, authenticate)
		for _, n := range []int{8, 1024, maxShort} {
			frame := framed(s, 1, 1, string(make([]byte, n)))
			b.Run(fmt.Sprintf("authenticate=%v/%dB", authenticate, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.put(frame)
				}
			})
		}
	}
}
