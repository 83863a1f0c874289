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

// A bug in the handling of one message ends the waits of its process with an error, and
// does nothing else: no lock stays taken, no counter stays raised, and later messages are
// delivered.
func TestMessageWhoseHandlerPanics(t *testing.T) {
	for _, transport := range ranktest.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			ready := make(chan struct{}) // rank 0 handles messages
			transport.Run(t, 2, func(r *ranktest.Rank) {
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
					e.Handle(kindFaulty, func(int, *fabric.Header, []byte) { panic("a bug") })
					e.Handle(kindHealthy, func(int, *fabric.Header, []byte) { healthy.Add(1) })
				})
				close(ready)
				err := waitFor(e, func() bool { return false })
				require.Error(t, err)
				require.ErrorIs(t, err, e.Damage())
				assert.Equal(t, errs.Intern, e.Damage().Class)
				assert.Contains(t, e.Damage().Detail, "a bug")
				for healthy.Load() < 2 { // later messages; PollSure hangs if a lock stayed taken
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

// faulty is a background operation whose steps panic.
type faulty struct{ steps int }

func (f *faulty) Advance() bool {
	f.steps++
	panic("a bug")
}

// soon is a background operation of a few steps.
type soon struct{ left int }

func (s *soon) Advance() bool {
	s.left--
	return s.left <= 0
}

func TestBackgroundOperationThatPanics(t *testing.T) {
	ranktest.Run(t, 1, true, func(r *ranktest.Rank) {
		bad, good := &faulty{}, &soon{left: 10}
		r.Engine.AddBackground(bad)
		r.Engine.AddBackground(good)
		for range 20 {
			r.Engine.Progress()
		}
		assert.Equal(t, 1, bad.steps, "it is not advanced again")
		assert.Zero(t, good.left, "others are")
		require.NotNil(t, r.Engine.Damage())
		assert.ErrorIs(t, waitFor(r.Engine, func() bool { return false }), r.Engine.Damage())
	})
}

// waitFor calls Wait again until it ends for another reason than an interrupt.
func waitFor(e *engine.Engine, done func() bool) error {
	why := &engine.Reason{Call: job.CallWait, Peer: -2, Tag: -1}
	for {
		if err := e.Wait(why, done, nil); err != engine.ErrInterrupted {
			return err
		}
	}
}
