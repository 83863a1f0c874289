//go:build cgo

package ofi

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// stranger is a directory that has all but the job's secret.
type stranger struct{ fabric.Directory }

func (stranger) Secret() []byte { return []byte("guessed") }

// A process that knows every address and card, but not the secret, sends frames to a rank.
func TestFramesOfAStranger(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		o := Options{Provider: "tcp;ofi_rxm", Sealed: sealed}
		need(t, o)
		const outside = 2
		w := fabrictest.NewWorld(t, 3, func(dir fabric.Directory) (fabric.Transport, error) {
			if dir.Rank() == outside {
				dir = stranger{dir}
			}
			return New(dir, o)
		})
		senders := map[int]int{}
		w.Ranks[0].StopPolling(func() { w.Ranks[0].OnDeliver = func(src int, _ *fabric.Header, _ []byte) { senders[src]++ } })
		send := func(from int) {
			for end := time.Now().Add(fabrictest.Patience); ; {
				err := w.Ranks[from].Endpoint(0).Send(&fabric.Header{Kind: fabric.KindEager}, []byte("text"))
				if err == nil {
					return
				}
				require.ErrorIs(t, err, fabric.ErrAgain)
				require.True(t, time.Now().Before(end))
				time.Sleep(time.Millisecond)
			}
		}
		const many = 20
		for range many {
			send(outside)
			send(1)
		}
		for end := time.Now().Add(fabrictest.Patience); ; time.Sleep(time.Millisecond) {
			var seen int
			w.Ranks[0].StopPolling(func() { seen = senders[1] })
			if seen == many {
				break
			}
			require.True(t, time.Now().Before(end), "%d of %d messages of the job have come", seen, many)
		}
		time.Sleep(20 * time.Millisecond) // for frames that should not come
		w.Ranks[0].StopPolling(func() { assert.Equal(t, map[int]int{1: many}, senders) })
	}
}

// Somebody has seen the frames of a pair, and sends them again, changed ones, and ones of his own.
func TestFramesThatWereSeen(t *testing.T) {
	o := Options{Provider: "tcp;ofi_rxm", Sealed: true}
	need(t, o)
	w := fabrictest.NewWorld(t, 2, maker(o))
	a := w.Ranks[0]
	a.Pause()
	var got []string
	a.OnDeliver = func(src int, _ *fabric.Header, payload []byte) {
		assert.Equal(t, 1, src)
		got = append(got, string(payload))
	}
	inner := a.Transport.(*sleeper).transport
	receive := func(b []byte) { inner.receive(a, bytes.Clone(b)) }
	out := mustSeal(inner.dir.Secret(), 1, 0, inner.nonce, true)
	one, two, three := framed(out, 1, 1, "one"), framed(out, 1, 2, "two"), framed(out, 1, 3, "three")
	receive(one)
	receive(one)
	changed := bytes.Clone(two)
	changed[len(changed)-1] = 'p'
	receive(changed)
	renumbered := bytes.Clone(one)
	renumbered[numberOffset] = 2
	receive(renumbered)
	ahead := bytes.Clone(two)
	ahead[numberOffset] = 200 // an authentic frame with it would break the connection
	receive(ahead)
	bye := make([]byte, prefixBytes)
	putPrefix(bye, frameBye, 1, 2)
	receive(bye)
	copy(bye[tagOffset:], two[tagOffset:prefixBytes])
	receive(bye)
	receive(framed(mustSeal(inner.dir.Secret(), 0, 1, inner.nonce, true), 1, 2, "reflected"))
	receive(two)
	receive(one)
	receive(two)
	receive(three)
	assert.Equal(t, []string{"one", "two", "three"}, got)
	assert.NoError(t, inner.eps[1].broken)
	receive(framed(out, 1, 5, "five"))
	assert.ErrorContains(t, inner.eps[1].broken, "messages were lost", "only those that know the secret can say so")
	assert.Len(t, got, 3)
}
