//go:build interleave

package rma

import (
	"fmt"
	"testing"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// askMemory is what threads that ask, and the poller, share.
type askMemory struct {
	lock, sent, answers uint32
	held                uint32 // messages that are held back
	away                uint32 // messages that the target has, or will have, and has not answered
	failed              uint32
}

// askWorld returns threads that ask, each a number of times, and a poller that takes answers
// and then sends what is held back. The program makes no other call. The message whose
// number is fails can't be read.
func askWorld(counts []int, fails uint32) func(w *explore.World) {
	return func(w *explore.World) {
		m, a := &askMemory{}, &asking{}
		explore.Watch(w, "shared", m)
		explore.Watch(w, "sure", &a.sure)
		total := uint32(0)
		for i, n := range counts {
			total += uint32(n)
			w.Thread(fmt.Sprintf("asks%d", i), func(t *explore.Thread) {
				for range n {
					for !atom.CAS32(&m.lock, 0, 1) {
						t.Await("the lock", func() bool { return m.lock == 0 })
					}
					number := atom.Add32(&m.sent, 1)
					err := a.ask(asked{
						sent:     func() uint64 { return uint64(atom.Load32(&m.sent)) },
						answered: func() uint64 { return uint64(atom.Load32(&m.answers)) },
						push:     func() { atom.Add32(&m.away, atom.Swap32(&m.held, 0)) },
						send: func(hold bool) error {
							switch {
							case number == fails:
								return fmt.Errorf("it can't be read")
							case hold:
								atom.Add32(&m.held, 1)
							default: // behind what is held back
								atom.Add32(&m.away, 1+atom.Swap32(&m.held, 0))
							}
							return nil
						},
					})
					if err != nil {
						atom.Add32(&m.answers, 1)
						atom.Store32(&m.failed, 1)
					}
					atom.Store32(&m.lock, 0)
				}
			})
		}
		w.Thread("poller", func(t *explore.Thread) {
			for atom.Load32(&m.answers) < total {
				t.Await("an answer", func() bool { return m.away > 0 || m.answers == total })
				if m.away == 0 {
					break
				}
				atom.Add32(&m.away, ^uint32(0))
				atom.Add32(&m.answers, 1)
				if n := atom.Swap32(&m.held, 0); n > 0 {
					atom.Add32(&m.away, n)
				}
			}
		})
		w.Finally(func() error {
			if m.answers != total || m.held != 0 || m.away != 0 || m.failed != 0 != (fails != 0) {
				return fmt.Errorf("%d of %d answers, %d held back, %d not answered", m.answers, total, m.held, m.away)
			}
			return nil
		})
	}
}

// Everything that is asked leaves the process, whatever the order of asking and polling.
func TestEveryInterleavingOfAsking(t *testing.T) {
	for _, c := range []struct {
		counts []int
		fails  uint32
	}{{[]int{4}, 0}, {[]int{2, 2}, 0}, {[]int{3, 1}, 0}, {[]int{1, 1, 1}, 0}, {[]int{4}, 2}, {[]int{2, 2}, 2}, {[]int{2, 2}, 3}} {
		t.Run(fmt.Sprint(c.counts, c.fails), func(t *testing.T) {
			explore.Run(t, explore.Options{FreeYield: true, MaxStates: 20 << 20}, askWorld(c.counts, c.fails))
		})
	}
}
