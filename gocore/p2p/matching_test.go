package p2p

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

// The lists against plain ones, in which the first entry that fits is the right one.
func TestMatchingAgainstPlainLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		var posted postedList
		var arrived arrivedList
		var receives []*Request
		var messages []*message
		many := 1 + rng.IntN(400)
		pick := func(wild bool) int {
			if wild && rng.IntN(6) == 0 {
				return -1
			}
			return rng.IntN(many)
		}
		require.Equal(t, []int{AnySource, AnyTag}, []int{-1, -1})
		for range 3000 {
			gen := uint32(rng.IntN(8) / 7)
			switch rng.IntN(6) {
			case 0, 1:
				r := &Request{src: pick(true) % 7, tag: pick(true), gen: gen}
				posted.add(r)
				receives = append(receives, r)
			case 2:
				h := &fabric.Header{Src: int32(pick(false) % 7), Tag: int32(pick(false)), Gen: gen}
				i := slices.IndexFunc(receives, func(r *Request) bool { return accepts(r.src, r.tag, h) && r.gen == gen })
				r := posted.find(h)
				if i < 0 {
					require.Nil(t, r)
					continue
				}
				require.Same(t, receives[i], r)
				posted.remove(r)
				require.False(t, r.posted)
				receives = slices.Delete(receives, i, i+1)
			case 3, 4:
				m := &message{header: fabric.Header{Src: int32(pick(false) % 7), Tag: int32(pick(false)), Gen: gen}}
				arrived.add(m)
				messages = append(messages, m)
			case 5:
				src, tag := pick(true)%7, pick(true)
				i := slices.IndexFunc(messages, func(m *message) bool { return accepts(src, tag, &m.header) && m.header.Gen == gen })
				m := arrived.find(src, tag, gen)
				if i < 0 {
					require.Nil(t, m)
					continue
				}
				require.Same(t, messages[i], m)
				arrived.remove(m)
				messages = slices.Delete(messages, i, i+1)
			}
		}
		require.Equal(t, messages, arrived.take(func(*message) bool { return true }))
		require.Zero(t, arrived.n)
		for range receives {
			posted.remove(posted.any())
		}
		require.Nil(t, posted.any())
		require.Zero(t, posted.n)
	}
}
