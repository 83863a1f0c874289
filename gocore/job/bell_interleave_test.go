//go:build interleave

package job

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// bell returns the world of a rank with waiters, each of which waits for a word to grow,
// and as many ringers that add to the words.
func bell(waiters, rounds int) func(w *explore.World) {
	return func(w *explore.World) {
		r := &Rank{}
		words := new([4]uint32)
		w.Memory("doorbell", unsafe.Pointer(&r.Doorbell), 8)
		explore.Watch(w, "words", words)
		w.Name(unsafe.Pointer(&r.Doorbell), "Doorbell")
		w.Name(unsafe.Pointer(&r.Sleepers), "Sleepers")
		for i := range waiters {
			w.Thread(fmt.Sprintf("waiter%d", i), func(t *explore.Thread) {
				for k := range rounds {
					// As engine.Wait does after it has stopped yielding.
					for {
						t.Forget(uint64(k))
						atom.Add32(&r.Sleepers, 1)
						seen := atom.Load32(&r.Doorbell)
						if atom.Load32(&words[i]) > uint32(k) {
							atom.Add32(&r.Sleepers, ^uint32(0))
							break
						}
						atom.Wait(&r.Doorbell, seen, 0)
						atom.Add32(&r.Sleepers, ^uint32(0))
					}
				}
			})
			w.Thread(fmt.Sprintf("ringer%d", i), func(t *explore.Thread) {
				for range rounds {
					atom.Add32(&words[i], 1)
					r.Ring()
				}
			})
		}
		w.Finally(func() error {
			if r.Sleepers != 0 {
				return fmt.Errorf("%d sleepers are left", r.Sleepers)
			}
			return nil
		})
	}
}

func TestEveryInterleavingOfRing(t *testing.T) {
	t.Run("one waiter, four rings", func(t *testing.T) {
		explore.Run(t, explore.Options{FreeYield: true}, bell(1, 4))
	})
	t.Run("two waiters", func(t *testing.T) {
		explore.Run(t, explore.Options{FreeYield: true}, bell(2, 1))
	})
}
