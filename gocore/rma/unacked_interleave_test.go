//go:build interleave

package rma

import (
	"fmt"
	"sync/atomic"
	"testing"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// unackedStep is what a rank does in an epoch: it puts the epoch's number to one rank
// and copies from another once the fence has been passed (-1: it does not). It may
// give up the fence when it has entered it.
type unackedStep struct {
	put, get int
	quits    bool
}

// unackedShared is the memory that the ranks of a run share: rings, fence, and each
// rank's memory, which only that rank writes.
type unackedShared struct {
	rings    [3][3][4]uint32 // to, from
	inboxes  [3][4]counters
	numbers  [3]fenceCount
	arrived  uint32
	released uint32
	memory   [3]uint32
	bells    [3]struct{ sleepers, doorbell uint32 }
}

type unackedRank struct {
	unacked
	m    *unackedShared
	t    *explore.Thread
	tail [3]int
	head [3]int
}

// pollRings takes the messages in the rings to this rank.
func (r *unackedRank) pollRings(size int) {
	for src := range size {
		for r.head[src] < len(r.m.rings[r.me][src]) {
			v := atom.Load32(&r.m.rings[r.me][src][r.head[src]])
			if v == 0 {
				break
			}
			r.head[src]++
			r.take(src, v>>8-1, uint64(v&0xff), nil)
		}
	}
}

func (r *unackedRank) put(to int, value uint32) {
	atom.Store32(&r.m.rings[to][r.me][r.tail[to]], (r.fences+1)<<8|value)
	r.tail[to]++
	r.sent(to)
}

func (r *unackedRank) fence(size, k int, quits bool) {
	if atom.Add32(&r.m.arrived, 1) == uint32(size*k) {
		atom.Store32(&r.m.released, uint32(k))
	}
	if quits {
		r.quit()
		return
	}
	r.t.Await("the fence", func() bool { return r.m.released >= uint32(k) })
	r.settle(true)
}

// ringAll is Ring of every rank.
func (m *unackedShared) ringAll(size int) {
	for i := range size {
		if b := &m.bells[i]; atom.Load32(&b.sleepers) != 0 {
			atom.Add32(&b.doorbell, 1)
			atom.Wake(&b.doorbell)
		}
	}
}

// sleepUntilDone waits until rank from is done, as mpi.awaitSettled does in an engine.Wait that has stopped yielding.
func (r *unackedRank) sleepUntilDone(from int) {
	r.await(from, 1)
	b := &r.m.bells[r.me]
	for {
		atom.Add32(&b.sleepers, 1)
		bell := atom.Load32(&b.doorbell)
		done := r.done(from)
		if !done {
			atom.Wait(&b.doorbell, bell, 0)
		}
		atom.Add32(&b.sleepers, ^uint32(0))
		if done {
			break
		}
	}
	r.await(from, -1)
}

// unackedWorld returns ranks that execute their steps, one an epoch; expected is the
// memory that each rank must have after each of them.
func unackedWorld(plans [][]unackedStep, expected [][]uint32) func(w *explore.World) {
	return func(w *explore.World) {
		size := len(plans)
		// is reports whether rank i may have the given memory after fence k: the
		// expected one, or what others have put since.
		is := func(k, i int, value uint32) bool {
			for _, plan := range plans {
				if k+1 < len(plan) && plan[k+1].put == i && value == uint32(k+2) {
					return true
				}
			}
			return value == expected[k][i]
		}
		m := &unackedShared{}
		explore.Watch(w, "shared", m)
		for i := range size {
			r := &unackedRank{m: m}
			r.unacked = unacked{on: true, me: i, settled: make([]atomic.Uint32, size), exclude: func(f func()) { f() }}
			r.ring = func() { m.ringAll(size) }
			for s := range size {
				r.inboxes = append(r.inboxes, m.inboxes[s][:size])
				r.numbers = append(r.numbers, &m.numbers[s])
			}
			r.poll = func() { r.pollRings(size) }
			r.deliver = func(at uint64, _ []byte) { m.memory[i] = uint32(at) }
			w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
				r.t = t
				inStep := true // no rank that this one depends on has given up a fence
				for k, step := range plans[i] {
					if step.put >= 0 && !r.lost {
						r.put(step.put, uint32(k+1))
					}
					r.pollRings(size) // a rank may poll at any time
					r.fence(size, k+1, step.quits)
					for _, plan := range plans {
						inStep = inStep && !(k < len(plan) && plan[k].quits)
					}
					t.Check(!inStep || is(k, i, m.memory[i]), "rank %d has %d after fence %d", i, m.memory[i], k+1)
					if from := step.get; from >= 0 {
						if !r.done(from) {
							r.sleepUntilDone(from)
						}
						t.Check(!inStep || is(k, from, m.memory[from]), "rank %d finds %d at rank %d after fence %d", i, m.memory[from], from, k+1)
					}
				}
			})
		}
	}
}

func TestEveryInterleavingOfUnacknowledgedPuts(t *testing.T) {
	for _, c := range []struct {
		name     string
		plans    [][]unackedStep
		expected [][]uint32
		preempt  int
	}{
		{"to each other", [][]unackedStep{{{1, 1, false}, {1, -1, false}}, {{0, -1, false}, {0, 0, false}}}, [][]uint32{{1, 1}, {2, 2}}, 0},
		// The second epoch's put must not be overwritten by the first one's.
		{"one after the other to a third", [][]unackedStep{
			{{2, -1, false}, {-1, -1, false}}, {{-1, 2, false}, {2, 2, false}}, {{-1, -1, false}, {-1, -1, false}},
		}, [][]uint32{{0, 0, 1}, {0, 0, 2}}, 3},
		{"around, and back", [][]unackedStep{
			{{1, 2, false}, {2, 1, false}}, {{2, -1, false}, {0, -1, false}}, {{0, 1, false}, {1, 0, false}},
		}, [][]uint32{{1, 1, 1}, {2, 2, 2}}, 2},
		// No rank waits for ever, whichever rank gives up which fence.
		{"one gives up", [][]unackedStep{{{1, 1, true}}, {{0, 0, false}}}, nil, 0},
		{"one of three gives up", [][]unackedStep{{{1, 2, true}}, {{2, 0, false}}, {{0, 1, false}}}, nil, 3},
		{"the other gives up the next one", [][]unackedStep{{{1, 1, true}}, {{0, -1, false}, {-1, 0, true}}}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			explore.Run(t, explore.Options{FreeYield: true, Preemptions: c.preempt, MaxStates: 20 << 20}, unackedWorld(c.plans, c.expected))
		})
	}
}
