//go:build interleave

package rma

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// notifyWorld is a world in which as many ranks as there are notifiers each write a word of data and notify slot 0 of rank 0. Its threads
// take the given numbers of notifications, asleep until they have come. A taker that is in given gives
// back what it takes first.
func notifyWorld(notifiers int, takes []uint32, given int) func(w *explore.World) {
	return func(w *explore.World) {
		mem := make([]uint64, notifyBytes/8)
		n := &notifications{}
		n.init(unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), notifyBytes), []int{0})
		me := &job.Rank{}
		data := new([4]uint32)
		w.Memory("doorbell", unsafe.Pointer(&me.Doorbell), 8)
		w.Memory("counter", unsafe.Pointer(&n.boxes[0].Counters[0]), 4)
		w.Memory("waiting", unsafe.Pointer(&n.boxes[0].Waiting), 4)
		w.Memory("taken", unsafe.Pointer(&n.taken[0]), 4)
		w.Memory("data", unsafe.Pointer(data), 16)
		total := uint32(0)
		for i := range notifiers {
			w.Thread(fmt.Sprintf("notifier%d", i), func(*explore.Thread) {
				atom.Store32(&data[i], 1)
				n.add(0, me, 0)
			})
		}
		for i, count := range takes {
			total += count
			w.Thread(fmt.Sprintf("taker%d", i), func(t *explore.Thread) {
				sleepUntil := func(step uint64) {
					n.await(0, 1)
					defer n.await(0, -1)
					for { // as engine.Wait does after it has stopped yielding
						t.Forget(step)
						atom.Add32(&me.Sleepers, 1)
						seen := atom.Load32(&me.Doorbell)
						if n.take(0, 0, count) {
							atom.Add32(&me.Sleepers, ^uint32(0))
							return
						}
						atom.Wait(&me.Doorbell, seen, 0)
						atom.Add32(&me.Sleepers, ^uint32(0))
					}
				}
				sleepUntil(0)
				if i < given {
					n.giveBack(me, 0, count)
					sleepUntil(1)
				}
				if int(count) == notifiers {
					for k := range notifiers {
						if atom.Load32(&data[k]) != 1 {
							panic(fmt.Sprintf("all %d notifications were taken, and the data of notifier %d is not there", count, k))
						}
					}
				}
			})
		}
		w.Finally(func() error {
			if me.Sleepers != 0 || n.boxes[0].Waiting != 0 || n.taken[0] != total || int(total) != notifiers {
				return fmt.Errorf("%d sleepers are left, %d of %d notifications were taken", me.Sleepers, n.taken[0], notifiers)
			}
			return nil
		})
	}
}

func TestEveryInterleavingOfNotifications(t *testing.T) {
	for _, c := range []struct {
		notifiers int
		takes     []uint32
		given     int
	}{{1, []uint32{1}, 0}, {2, []uint32{2}, 0}, {2, []uint32{1, 1}, 0}, {1, []uint32{1}, 1}} {
		t.Run(fmt.Sprintf("%d notifiers, takes %v, %d given back", c.notifiers, c.takes, c.given), func(t *testing.T) {
			explore.Run(t, explore.Options{FreeYield: true}, notifyWorld(c.notifiers, c.takes, c.given))
		})
	}
}
