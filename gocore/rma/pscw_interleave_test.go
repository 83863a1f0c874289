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

// pscwStep is what a rank does: P posts, S starts, C completes, W waits.
type pscwStep struct {
	do    byte
	group []int
}

func steps(do string, groups ...[]int) (plan []pscwStep) {
	for i := range do {
		plan = append(plan, pscwStep{do[i], groups[i%len(groups)]})
	}
	return plan
}

// pscwModel is the test's own record of a run, by rank.
type pscwModel struct {
	exposed [3]uint32 // the ranks that it is exposed to
	inside  [3]uint32 // the ranks that access it
	lost    [3]uint32 // the ranks whose end it got an error for
	gone    [3]uint32 // the ranks whose end it knows
}

type pscwRank struct {
	i      int
	p      *pscw
	me     *job.Rank
	m      *pscwModel
	t      *explore.Thread
	k      int
	bell   uint32
	gaveUp bool // because another rank has ended
}

func pscwWorld(plans [][]pscwStep, mortal int) func(w *explore.World) {
	return func(w *explore.World) {
		n := len(plans)
		mem := make([]uint64, n*inboxBytes(n)/8)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), n*inboxBytes(n))
		m := &pscwModel{}
		explore.Watch(w, "model", m)
		ranks, at := make([]*job.Rank, n), make([]int, n)
		for i := range n {
			ranks[i], at[i] = &job.Rank{}, i*inboxBytes(n)
			w.Memory(fmt.Sprintf("rank %d", i), unsafe.Pointer(&ranks[i].Doorbell), 8)
			w.Memory(fmt.Sprintf("inbox %d", i), unsafe.Pointer(&bytes[at[i]]), unsafe.Sizeof(counters{})*uintptr(n))
		}
		threads := make([]*explore.Thread, n)
		for i := range n {
			r := &pscwRank{i: i, p: &pscw{}, me: ranks[i], m: m}
			r.p.init(i, ranks, r.dead, bytes, at)
			threads[i] = w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
				r.t = t
				r.run(plans[i], threads)
			})
			if i < mortal {
				threads[i].Mortal()
			}
		}
		for i := range n {
			if mortal > 0 {
				w.Thread(fmt.Sprintf("watcher%d", i), func(t *explore.Thread) {
					for {
						t.Forget()
						t.Await("death", func() bool { return i != 0 && threads[0].Dead() && m.gone[i] == 0 })
						m.gone[i] = 1
						ranks[i].Ring()
					}
				}).Daemon()
			}
		}
		w.Finally(func() error {
			for i := range n {
				if !threads[i].Dead() && m.exposed[i] != 0 {
					return fmt.Errorf("rank %d is still exposed to %#x", i, m.exposed[i])
				}
			}
			return nil
		})
	}
}

func (r *pscwRank) dead(i int) bool {
	d := r.m.gone[r.i]&(1<<i) != 0
	if d {
		r.t.Note(uint64(i) + 1)
	} else {
		r.t.Note(0)
	}
	return d
}

// until waits as engine.wait does once it has stopped yielding.
func (r *pscwRank) until(done func() bool, lost func() bool) bool {
	for !done() {
		atom.Add32(&r.me.Sleepers, 1)
		r.bell = atom.Load32(&r.me.Doorbell)
		if done() {
			atom.Add32(&r.me.Sleepers, ^uint32(0))
			return true
		}
		if lost() {
			atom.Add32(&r.me.Sleepers, ^uint32(0))
			return false
		}
		atom.Wait(&r.me.Doorbell, r.bell, 0)
		atom.Add32(&r.me.Sleepers, ^uint32(0))
		r.t.Forget(uint64(r.k), uint64(r.p.taken[0])<<32|uint64(r.p.due[0]))
	}
	return true
}

func (r *pscwRank) run(plan []pscwStep, all []*explore.Thread) {
	m, p := r.m, r.p
	for k, s := range plan {
		r.k = k
		var mask uint32
		for _, o := range s.group {
			mask |= 1 << o
		}
		switch s.do {
		case 'P':
			m.exposed[r.i] = mask
			p.post(s.group)
		case 'S':
			if r.gaveUp = !r.until(func() bool { return p.start(s.group, true) < 0 }, func() bool {
				for _, o := range s.group {
					if p.dead(o) && !p.posted(o) {
						return true
					}
				}
				return false
			}); r.gaveUp {
				continue
			}
			for _, o := range s.group {
				r.t.Check(m.exposed[o]&(1<<r.i) != 0, "rank %d accesses rank %d, which is exposed to %#x", r.i, o, m.exposed[o])
				m.inside[o] |= 1 << r.i
			}
			r.t.Pause()
		case 'C':
			if r.gaveUp {
				continue
			}
			for _, o := range s.group {
				m.inside[o] &^= 1 << r.i
			}
			p.complete()
		case 'W':
			for ended := false; !ended; {
				ended = r.until(func() bool { return p.wait() < 0 }, func() bool {
					o := p.deserted()
					if o >= 0 {
						r.t.Check(all[o].Dead(), "rank %d is said to have ended", o)
					}
					return o >= 0
				}) || !p.exposed
			}
			for o := range all {
				r.t.Check(m.inside[r.i]&(1<<o) == 0 || all[o].Dead(), "rank %d's exposure ends with rank %d inside", r.i, o)
			}
			m.exposed[r.i] = 0
		}
	}
}

func TestEveryInterleavingOfPSCW(t *testing.T) {
	zero, one, both := []int{0}, []int{1}, []int{1, 2}
	for _, c := range []struct {
		name    string
		plans   [][]pscwStep
		mortal  int
		preempt int
	}{
		{"each exposes to the other", [][]pscwStep{steps("PSCW", one), steps("PSCW", zero)}, 0, 0},
		{"each exposes to the other, twice", [][]pscwStep{steps("PSCWPSCW", one), steps("PSCWPSCW", zero)}, 0, 4},
		{"one way, three times", [][]pscwStep{steps("SCSCSC", one), steps("PWPWPW", zero)}, 0, 0},
		{"one target of two", [][]pscwStep{steps("PWPW", both), steps("SCSC", zero), steps("SCSC", zero)}, 0, 2},
		{"two targets", [][]pscwStep{steps("SCSC", both), steps("PWPW", zero), steps("PWPW", zero)}, 0, 2},
		{"an origin ends", [][]pscwStep{steps("SC", one), steps("PW", zero)}, 1, 0},
		{"a target ends", [][]pscwStep{steps("PWPW", one), steps("SCSC", zero)}, 1, 0},
		{"one of two origins ends", [][]pscwStep{steps("SC", []int{2}), steps("SC", []int{2}), {
			{'P', []int{0, 1}}, {'W', nil}}}, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			explore.Run(t, explore.Options{FreeYield: true, Deaths: min(c.mortal, 1), Preemptions: c.preempt, MaxStates: 20 << 20}, pscwWorld(c.plans, c.mortal))
		})
	}
}
