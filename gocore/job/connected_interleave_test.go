//go:build interleave

package job

import (
	"fmt"
	"testing"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// announcements is the world of senders that announce a link each, through fewer entries, and of the receiver. The
// link of a sender that lives is opened exactly once, and no entry stays taken.
func announcements(senders, entries int, mortal bool) func(w *explore.World) {
	return func(w *explore.World) {
		list, announced := make([]Announcement, entries), new(uint32)
		for i := range list {
			explore.Watch(w, fmt.Sprintf("entry%d", i), &list[i])
		}
		explore.Watch(w, "announced", announced)
		opened := new([4]uint32)
		explore.Watch(w, "opened", opened)
		threads := make([]*explore.Thread, senders)
		alive = func(pid int) bool {
			dead := threads[pid-1].Dead()
			if dead {
				w.Current().Note(1)
			} else {
				w.Current().Note(0)
			}
			return !dead
		}
		for i := range senders {
			pid := i + 1
			threads[i] = w.Thread(fmt.Sprintf("sender%d", pid), func(t *explore.Thread) {
				var a *Announcement
				for a == nil {
					t.Forget(0)
					if a = announce(list, announced, pid, 10*pid); a == nil {
						atom.Yield()
					}
				}
				for !a.Taken(pid) {
					t.Forget(1)
					atom.Yield()
				}
			})
			if mortal && i == 0 {
				threads[i].Mortal()
			}
		}
		w.Thread("receiver", func(t *explore.Thread) {
			for {
				t.Forget()
				over := true
				for i, s := range threads {
					if opened[i] == 0 && !s.Dead() {
						over = false
					}
				}
				if over {
					return
				}
				if atom.Load32(announced) == 0 {
					atom.Yield()
					continue
				}
				atom.Store32(announced, 0)
				for i := range list {
					pid, fd, ok := list[i].Sender()
					if !ok {
						continue
					}
					t.Check(fd == 10*pid, "descriptor %d of process %d", fd, pid)
					if alive(pid) {
						opened[pid-1]++
						t.Check(opened[pid-1] == 1, "link %d is opened twice", pid)
					}
					list[i].Done()
				}
			}
		})
	}
}

func TestEveryInterleavingOfAnnouncements(t *testing.T) {
	for _, mortal := range []bool{false, true} {
		t.Run(fmt.Sprintf("mortal %v", mortal), func(t *testing.T) {
			opt := explore.Options{FreeYield: true}
			if mortal {
				opt.Deaths = 1
			}
			explore.Run(t, opt, announcements(2, 1, mortal))
		})
	}
}
