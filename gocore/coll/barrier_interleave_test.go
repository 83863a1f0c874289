//go:build interleave

package coll

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// barrierWorld returns a world of n ranks that pass rounds barriers and leave the block.
func barrierWorld(n, rounds int) func(w *explore.World) {
	return func(w *explore.World) {
		words := &barrierWords{}
		w.Memory("arrived", unsafe.Pointer(&words.arrived), 4)
		w.Memory("released", unsafe.Pointer(&words.released), 8)
		m := &struct {
			entered [3]uint32
			last    uint32 // number of ranks that Leave told to free the block
		}{}
		explore.Watch(w, "model", m)
		ranks := make([]*job.Rank, n)
		for i := range ranks {
			ranks[i] = &job.Rank{}
			w.Memory(fmt.Sprintf("doorbell[%d]", i), unsafe.Pointer(&ranks[i].Doorbell), 8)
		}
		for i := range n {
			w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
				b := &Barrier{words: words, size: uint32(n), ranks: ranks}
				for k := uint32(1); k <= uint32(rounds); k++ {
					t.Forget(uint64(k))
					m.entered[i] = k
					barrierWait(t, b, ranks[i])
					for o := range n {
						t.Check(m.entered[o] >= k, "rank %d is out of barrier %d before rank %d entered it", i, k, o)
					}
				}
				t.Forget(0)
				if b.Leave() {
					m.last++
					for o := range n {
						t.Check(m.entered[o] == uint32(rounds), "the block is freed and rank %d uses it", o)
					}
				}
			})
		}
		w.Finally(func() error {
			if m.last != 1 {
				return fmt.Errorf("%d ranks were the last to leave", m.last)
			}
			return nil
		})
	}
}

// barrierWait waits as engine.Wait does after it has stopped yielding.
func barrierWait(t *explore.Thread, b *Barrier, me *job.Rank) {
	if b.Arrive() {
		return
	}
	for !b.Passed() {
		t.Forget(1<<32 | uint64(b.count))
		atom.Add32(&me.Sleepers, 1)
		bell := atom.Load32(&me.Doorbell)
		if !b.Passed() {
			atom.Wait(&me.Doorbell, bell, 0)
		}
		atom.Add32(&me.Sleepers, ^uint32(0))
	}
}

func TestEveryInterleavingOfBarrier(t *testing.T) {
	t.Run("2 ranks", func(t *testing.T) { explore.Run(t, explore.Options{FreeYield: true}, barrierWorld(2, 3)) })
	t.Run("3 ranks", func(t *testing.T) { explore.Run(t, explore.Options{FreeYield: true}, barrierWorld(3, 1)) })
	t.Run("3 ranks, 3 barriers", func(t *testing.T) {
		explore.Run(t, explore.Options{FreeYield: true, Preemptions: 3}, barrierWorld(3, 3))
	})
}
