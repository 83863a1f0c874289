package engine_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/ranktest"
	"gormapy/gocore/sys/atom"
)

const (
	kindFaulty  = fabric.KindAck
	kindHealthy = fabric.KindEager
)

// A mistake of ours in the handling of one message ends the waits of its process with an
// error, and nothing else: no lock stays taken, no counter raised, and what comes after it
// is delivered.
func TestMessageWhoseHandlerPanics(t *testing.T) {
	for _, way := range ranktest.Transports {
		t.Run(way.Name, func(t *testing.T) {
			ready := make(chan struct{}) // rank 0 handles messages
			way.Run(t, 2, func(r *ranktest.Rank) {
				e := r.Engine
				if r.Rank == 1 {
					<-ready
					for _, kind := range []fabric.Kind{kindHealthy, kindFaulty, kindHealthy} {
						_, err := e.Send(0, &fabric.Header{Kind: kind}, []byte("payload"), nil, nil)
						require.NoError(t, err)
					}
					r.Until(func() bool { return e.Backlog() == 0 }, nil)
					return
				}
				var healthy atomic.Int32
				e.Exclude(func() { // the progress engine polls already
					e.Handle(kindFaulty, func(int, *fabric.Header, []byte) { panic("a mistake of ours") })
					e.Handle(kindHealthy, func(int, *fabric.Header, []byte) { healthy.Add(1) })
				})
				close(ready)
				err := waitFor(e, func() bool { return false })
				require.Error(t, err)
				require.ErrorIs(t, err, e.Damage())
				assert.Equal(t, errs.Intern, e.Damage().Class)
				assert.Contains(t, e.Damage().Detail, "a mistake of ours")
				for healthy.Load() < 2 { // what came after it; PollSure hangs if a lock stayed taken
					e.PollSure()
				}
				me := &e.Job.Ranks[0]
				assert.Zero(t, atom.Load32(&me.Pollers))
				assert.Zero(t, atom.Load32(&me.Sleepers))
				assert.NoError(t, waitFor(e, func() bool { return true }), "what has completed is not made an error")
			})
		})
	}
}

// faulty is an operation whose steps panic.
type faulty struct{ steps int }

func (f *faulty) Advance() bool {
	f.steps++
	panic("a mistake of ours")
}

// soon is an operation of a few steps.
type soon struct{ left int }

func (s *soon) Advance() bool {
	s.left--
	return s.left <= 0
}

func TestOperationInProgressThatPanics(t *testing.T) {
	ranktest.Run(t, 1, true, func(r *ranktest.Rank) {
		bad, good := &faulty{}, &soon{left: 10}
		r.Engine.AddBackground(bad)
		r.Engine.AddBackground(good)
		for range 20 {
			r.Engine.Progress()
		}
		assert.Equal(t, 1, bad.steps, "it is carried no further")
		assert.Zero(t, good.left, "others are")
		require.NotNil(t, r.Engine.Damage())
		assert.ErrorIs(t, waitFor(r.Engine, func() bool { return false }), r.Engine.Damage())
	})
}

// waitFor is Wait until it ends for another reason than an interrupt.
func waitFor(e *engine.Engine, done func() bool) error {
	why := &engine.Reason{Call: job.CallWait, Peer: -2, Tag: -1}
	for {
		if err := e.Wait(why, done, nil); err != engine.ErrInterrupted {
			return err
		}
	}
}
