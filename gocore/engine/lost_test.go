package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/fabric"
	"gormapy/gocore/ranktest"
)

// Messages that can't be sent any more must not be tried for ever: each try takes the
// processor from a program that computes.
func TestMessagesToEndedRanksAreLost(t *testing.T) {
	ranktest.RunNet(t, 2, fabric.Caps{}, func(r *ranktest.Rank) {
		if r.Rank == 1 {
			return
		}
		const many = 300 // more than the network holds
		head := fabric.Header{Kind: fabric.KindEager}
		for range many {
			r.Engine.Send(1, &head, []byte("one"), nil, nil)
		}
		r.Engine.Stream(1, &head, make([]byte, 1<<20), 0, nil, nil)
		assert.Positive(t, r.Engine.Backlog())
		r.End(1)
		r.Engine.PollSure()
		assert.Zero(t, r.Engine.Backlog())
		out, err := r.Engine.Send(1, &head, []byte("another"), nil, nil)
		assert.False(t, out)
		assert.NoError(t, err)
		assert.Zero(t, r.Engine.Backlog())
	})
}
