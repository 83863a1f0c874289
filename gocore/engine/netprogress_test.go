package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/fabric"
	"gormapy/gocore/ranktest"
)

// A thread that takes a message also consumes its event, so that a progress engine
// which blocks on the descriptor would miss the next one. It has to arm again, or a
// program that computes answers a second later.
func TestNetworkProgressAfterAThreadPolled(t *testing.T) {
	const rounds = 12
	var late atomic.Int32
	ranktest.RunSleeping(t, 2, fabric.Caps{}, func(r *ranktest.Rank) {
		var got atomic.Int32
		r.Engine.Handle(fabric.KindAck, func(int, *fabric.Header, []byte) { got.Add(1) })
		head := fabric.Header{Kind: fabric.KindAck}
		meet := func(n int32) { // by shared memory: without a poll
			atomic.AddUint32(&r.Engine.Job.Ranks[0].Gen, 1)
			for int32(atomic.LoadUint32(&r.Engine.Job.Ranks[0].Gen)) < 2*n {
				time.Sleep(100 * time.Microsecond)
			}
		}
		for i := range int32(rounds) {
			meet(3*i + 1)
			time.Sleep(5 * time.Millisecond) // the progress engine sleeps
			if r.Rank == 0 {
				time.Sleep(5 * time.Millisecond) // the other one polls
				r.Engine.Send(1, &head, nil, nil, nil)
				for r.Engine.Backlog() > 0 {
					r.Engine.PollSure()
				}
			} else {
				for got.Load() == 2*i {
					r.Engine.PollSure()
				}
			}
			meet(3*i + 2)
			time.Sleep(2 * time.Millisecond)
			if r.Rank == 0 {
				r.Engine.Send(1, &head, nil, nil, nil)
				for r.Engine.Backlog() > 0 {
					r.Engine.PollSure()
				}
			} else {
				begun := time.Now()
				for got.Load() == 2*i+1 {
					time.Sleep(time.Millisecond)
				}
				if time.Since(begun) > 300*time.Millisecond {
					late.Add(1)
				}
			}
			meet(3*i + 3)
		}
	})
	assert.Less(t, late.Load(), int32(3), "of %d", rounds)
}
