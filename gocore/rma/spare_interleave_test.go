//go:build interleave

package rma

import (
	"fmt"
	"testing"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// spareMemory is what two ranks share: the parts of a window's segment, and the exchanges of the calls around its reuse.
type spareMemory struct {
	parts            [2]uint32 // in the segment
	freed            [2]uint32 // arrived in the barrier of Free
	offered, cleared [2]uint32 // 0: nothing yet; offered is 2 if the rank offers the segment, else 1
	reusing          [2]uint32
}

const (
	sparePut    = 7 // what a rank puts into the old window
	spareAnswer = 9 // and into the new one
)

// spareWorld returns two ranks that free a window and make another one. Those that shown names show memory of the old window
// for ever, so that they offer no segment.
func spareWorld(shown [2]bool, mortal bool) func(w *explore.World) {
	return func(w *explore.World) {
		m := &spareMemory{}
		explore.Watch(w, "shared", m)
		threads := [2]*explore.Thread{}
		for me := range 2 {
			other := 1 - me
			// told waits until a word is set, and reports whether it is not because the other rank has died.
			told := func(t *explore.Thread, word *uint32) bool {
				for atom.Load32(word) == 0 {
					if threads[other].Dead() && atom.Load32(word) == 0 {
						t.Note(1)
						return false
					}
					t.Await("the other rank", func() bool { return *word != 0 || threads[other].Dead() })
				}
				return true
			}
			threads[me] = w.Thread(fmt.Sprintf("rank %d", me), func(t *explore.Thread) {
				atom.Store32(&m.parts[other], sparePut)
				atom.Store32(&m.freed[me], 1)
				if !told(t, &m.freed[other]) {
					return
				}
				// What the end of a fence reads of the rank's own part after the barrier, as Free does.
				if got := atom.Load32(&m.parts[me]); got != sparePut {
					t.Check(false, "the old window has %d", got)
				}
				mine := uint32(2)
				if shown[me] {
					mine = 1
				}
				atom.Store32(&m.offered[me], mine)
				if !told(t, &m.offered[other]) {
					return
				}
				if mine != 2 || atom.Load32(&m.offered[other]) != 2 {
					if got := atom.Load32(&m.parts[me]); got != sparePut {
						t.Check(false, "memory that is shown, or unmapped, has changed to %d", got)
					}
					return
				}
				atom.Store32(&m.parts[me], 0)
				atom.Store32(&m.cleared[me], 1)
				if !told(t, &m.cleared[other]) {
					return
				}
				if got := atom.Load32(&m.parts[me]); got != 0 && got != spareAnswer {
					t.Check(false, "the new window has %d", got)
				}
				if got := atom.Load32(&m.parts[other]); got != 0 {
					t.Check(false, "the other's part of the new window has %d", got)
				}
				atom.Store32(&m.parts[other], spareAnswer)
				atom.Store32(&m.reusing[me], 1)
			})
			if mortal {
				threads[me].Mortal()
			}
		}
		w.Finally(func() error {
			reused := m.reusing[0] + m.reusing[1]
			switch {
			case (shown[0] || shown[1]) && reused != 0:
				return fmt.Errorf("memory that is shown is used again")
			case !shown[0] && !shown[1] && !mortal && (reused != 2 || m.parts != [2]uint32{spareAnswer, spareAnswer}):
				return fmt.Errorf("%d ranks use the segment, which has %v", reused, m.parts)
			}
			return nil
		})
	}
}

// A segment is used again by all ranks or by none, is clear then, and nobody looks at the old window any more.
func TestEveryInterleavingOfSpares(t *testing.T) {
	for _, mortal := range []bool{false, true} {
		for _, shown := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
			t.Run(fmt.Sprint(shown, mortal), func(t *testing.T) {
				explore.Run(t, explore.Options{Weak: true}, spareWorld(shown, mortal))
			})
		}
	}
}
