//go:build interleave

package rma

import (
	"fmt"
	"testing"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// watchWorld has origins that add bundles, as kernel_copy.c does, while the watch is about to end.
func watchWorld(origins, bundles int) func(w *explore.World) {
	return func(w *explore.World) {
		d := &Desc{Watched: 1}
		m := &struct{ announced uint32 }{}
		explore.Watch(w, "bundles", &d.Bundles)
		explore.Watch(w, "watched", &d.Watched)
		explore.Watch(w, "model", m)
		for i := range origins {
			w.Thread(fmt.Sprintf("origin%d", i), func(t *explore.Thread) {
				for k := range bundles {
					t.Forget(uint64(k))
					atom.Add32(&d.Bundles, 1)
					if atom.Load32(&d.Watched) == 0 {
						m.announced++
						return
					}
					if k < bundles-1 { // a flush writes it
						atom.Add32(&d.Bundles, ^uint32(0))
					}
				}
			})
		}
		w.Thread("watch", func(t *explore.Thread) {
			for k := range 2 {
				t.Forget(uint64(k))
				if d.unwatch() {
					return
				}
			}
		})
		w.Finally(func() error {
			if d.Bundles != 0 && d.Watched == 0 && m.announced == 0 {
				return fmt.Errorf("there are %d bundles that nobody looks at", d.Bundles)
			}
			return nil
		})
	}
}

func TestEveryInterleavingOfWatchedBundles(t *testing.T) {
	for _, c := range []struct{ origins, bundles int }{{1, 3}, {2, 2}} {
		t.Run(fmt.Sprintf("%d origins %d bundles", c.origins, c.bundles), func(t *testing.T) {
			explore.Run(t, explore.Options{}, watchWorld(c.origins, c.bundles))
		})
	}
}
