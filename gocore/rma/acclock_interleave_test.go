//go:build interleave

package rma

import (
	"fmt"
	"testing"

	"gormapy/gocore/sys/atom/explore"
)

// accWorld returns ranks that take the accumulate lock rounds times each.
func accWorld(ranks, rounds, mortal int) func(w *explore.World) {
	return func(w *explore.World) {
		word := new(uint32)
		m := &struct{ in, taken uint32 }{}
		explore.Watch(w, "word", word)
		explore.Watch(w, "model", m)
		threads := make([]*explore.Thread, ranks)
		now = func() int64 { return w.Current().Now(int64(1e9)) } // no rank spins for long
		for i := range ranks {
			threads[i] = w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
				l := accLock{word: word, me: uint32(i + 1), dead: func(r int) bool {
					dead := threads[r].Dead()
					if dead {
						t.Note(1)
					}
					return dead
				}, redo: func() {}}
				for k := range rounds {
					t.Forget(uint64(k))
					l.lock()
					var alive uint32
					for o := range threads {
						if !threads[o].Dead() {
							alive |= 1 << o
						}
					}
					t.Check(m.in&alive == 0, "%#x is inside", m.in)
					t.Log("GRANTED")
					// A rank that died inside loses the lock to this one; it can't be lost again.
					m.in = 1 << i
					t.Forget(uint64(k) | 1<<8)
					t.Pause()
					t.Check(m.in == 1<<i, "%#x came in meanwhile", m.in)
					m.in = 0
					l.unlock()
				}
			})
			if i < mortal {
				threads[i].Mortal()
			}
		}
		w.Finally(func() error {
			if *word&^uint32(accSleepers) != 0 && mortal == 0 {
				return fmt.Errorf("the word is %#x", *word)
			}
			return nil
		})
	}
}

func TestEveryInterleavingOfAccLock(t *testing.T) {
	spins, clock := accSpins, now
	defer func() { accSpins, now = spins, clock }()
	accSpins = 1
	for _, c := range []struct {
		ranks, rounds, mortal int
		opt                   explore.Options
	}{
		{ranks: 2, rounds: 3},
		{ranks: 3, rounds: 1},
		{ranks: 3, rounds: 2, opt: explore.Options{Preemptions: 4}},
		{ranks: 2, rounds: 2, opt: explore.Options{EarlyTimeouts: 2}},
		{ranks: 2, rounds: 2, mortal: 2, opt: explore.Options{Deaths: 1, Timeouts: true, EarlyTimeouts: 1}},
		{ranks: 3, rounds: 1, mortal: 3, opt: explore.Options{Deaths: 2, Timeouts: true}},
		{ranks: 3, rounds: 1, mortal: 1, opt: explore.Options{Deaths: 1, Timeouts: true, EarlyTimeouts: 2}},
	} {
		c.opt.FreeYield = true
		t.Run(fmt.Sprintf("%d ranks %d rounds %+v", c.ranks, c.rounds, c.opt), func(t *testing.T) {
			explore.Run(t, c.opt, accWorld(c.ranks, c.rounds, c.mortal))
		})
	}
}
