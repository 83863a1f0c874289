//go:build cgo

package ofi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// A region is closed while it is used: the provider may read its descriptor until the
// operation has ended.
func TestARegionIsClosedWhileItIsUsed(t *testing.T) {
	o := Options{Provider: "tcp;ofi_rxm", Restrictions: Restrictions{LocalMR: true}}
	need(t, o)
	w := fabrictest.NewWorld(t, 2, maker(o))
	a, b := w.Ranks[0], w.Ranks[1]
	const n = 8 << 20
	from, to := fabrictest.Memory(t, n), fabrictest.Memory(t, n)
	fabrictest.Fill(from, 5)
	target, err := b.Register(fabrictest.Pointer(to), n)
	require.NoError(t, err)
	source, err := a.Register(fabrictest.Pointer(from), n)
	require.NoError(t, err)
	ep := a.Endpoint(1)
	a.Pause()
	for { // no thread polls from here on: it can't have ended when the region is closed
		done, err := ep.Put(fabrictest.Pointer(from), target.Key(), n, 7)
		if err == nil {
			assert.False(t, done)
			break
		}
		require.ErrorIs(t, err, fabric.ErrAgain)
		a.Poll()
	}
	r := source.(*region)
	assert.Equal(t, 1, r.uses)
	require.NoError(t, source.Close())
	require.NoError(t, source.Close())
	assert.Len(t, r.t.regions.late, 1)
	a.Resume()
	require.NoError(t, a.Wait(7))
	a.StopPolling(func() {
		assert.Zero(t, r.uses)
		assert.Empty(t, r.t.regions.late)
	})
	assert.Empty(t, fabrictest.Check(to, 5))
	require.NoError(t, target.Close())
}
