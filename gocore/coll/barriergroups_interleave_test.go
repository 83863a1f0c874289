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

// groupsCase is a barrier that is divided into groups.
type groupsCase struct {
	ranks, size, rounds int
	preempt             int
	leaves              bool // rank 0, a leader, arrives at the last barrier and does not look any more
	dies                int  // a rank that may die at any time, -1: none
}

func (c groupsCase) world(w *explore.World) {
	m := &struct {
		words   barrierWords
		groups  [2]groupWords
		entered [4]uint32
		passed  [4]uint32
		dead    [4]bool
	}{}
	w.Memory("arrived", unsafe.Pointer(&m.words.arrived), 4)
	w.Memory("released", unsafe.Pointer(&m.words.released), 8)
	for i := range m.groups {
		w.Memory(fmt.Sprintf("group arrived[%d]", i), unsafe.Pointer(&m.groups[i].arrived), 4)
		w.Memory(fmt.Sprintf("group released[%d]", i), unsafe.Pointer(&m.groups[i].released), 4)
	}
	explore.Watch(w, "entered", &m.entered)
	explore.Watch(w, "passed", &m.passed)
	explore.Watch(w, "dead", &m.dead)
	ranks := make([]*job.Rank, c.ranks)
	for i := range ranks {
		ranks[i] = &job.Rank{}
		w.Memory(fmt.Sprintf("doorbell[%d]", i), unsafe.Pointer(&ranks[i].Doorbell), 8)
	}
	for i := range c.ranks {
		thread := w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
			b := &Barrier{words: &m.words, groups: m.groups[:], ranks: ranks}
			b.Divide(i, c.size)
			for k := uint32(1); k <= uint32(c.rounds); k++ {
				t.Forget(uint64(k))
				m.entered[i] = k
				if !c.wait(t, b, ranks[i], i, k, &m.dead) {
					return
				}
				m.passed[i] = k
				for o := range c.ranks {
					t.Check(m.entered[o] >= k, "rank %d is out of barrier %d before rank %d entered it", i, k, o)
				}
			}
		})
		if i == c.dies {
			thread.Mortal().OnDeath(func() { m.dead[i] = true })
		}
	}
	w.Finally(func() error {
		for i, k := range m.passed {
			if i < c.ranks && c.dies < 0 && k != uint32(c.rounds) && !(c.leaves && i == 0 && k+1 == uint32(c.rounds)) {
				return fmt.Errorf("rank %d has passed %d barriers", i, k)
			}
			if c.dies >= 0 && i < c.ranks && i != c.dies && k+1 < m.entered[i] {
				return fmt.Errorf("rank %d has entered barrier %d and passed %d", i, m.entered[i], k)
			}
		}
		return nil
	})
}

// wait waits as engine.Wait does after it has stopped yielding, and reports whether the barrier was complete.
func (c groupsCase) wait(t *explore.Thread, b *Barrier, me *job.Rank, i int, k uint32, dead *[4]bool) bool {
	if b.Arrive() {
		return true
	}
	if c.leaves && i == 0 && k == uint32(c.rounds) {
		return false
	}
	for !b.Passed() {
		t.Forget(1<<32 | uint64(b.count))
		atom.Add32(&me.Sleepers, 1)
		bell := atom.Load32(&me.Doorbell)
		over := b.Passed()
		gone := false
		for o := range c.ranks { // as Check does
			t.Note(uint64(flag(dead[o])))
			gone = gone || dead[o]
		}
		failed := !over && !b.complete() && gone && !b.complete()
		t.Check(!failed || b.words.released != k, "rank %d gives up barrier %d, which is complete", i, k)
		if !over && !failed {
			atom.Wait(&me.Doorbell, bell, 0)
		}
		atom.Add32(&me.Sleepers, ^uint32(0))
		if failed {
			return false
		}
	}
	return true
}

func TestEveryInterleavingOfBarrierGroups(t *testing.T) {
	for name, c := range map[string]groupsCase{
		"two groups of one":             {ranks: 2, size: 1, rounds: 3, dies: -1},
		"a group of two and one of one": {ranks: 3, size: 2, rounds: 1, dies: -1},
		"the same, 3 barriers":          {ranks: 3, size: 2, rounds: 3, preempt: 2, dies: -1},
		"two groups of two":             {ranks: 4, size: 2, rounds: 2, preempt: 2, dies: -1},
		"a leader that does not look":   {ranks: 3, size: 2, rounds: 2, preempt: 3, leaves: true, dies: -1},
		"a leader that may die":         {ranks: 3, size: 2, rounds: 2, preempt: 2},
		"a member that may die":         {ranks: 3, size: 2, rounds: 2, preempt: 2, dies: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := explore.Options{FreeYield: true, Preemptions: c.preempt}
			if c.dies >= 0 {
				o.Deaths = 1
			}
			o.Timeouts = c.leaves || c.dies >= 0 // in other cases a sleeper has to be woken
			explore.Run(t, o, c.world)
		})
	}
}
