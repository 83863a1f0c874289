//go:build interleave

package rma

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// journalWorld returns ranks that add 1 to an element of two words, rounds times
// each. Each word written to the journal and to the element is a step, and a rank
// may die after each step.
func journalWorld(ranks, rounds, mortal int) func(w *explore.World) {
	return func(w *explore.World) {
		word := new(uint32)
		j := new(journal)
		element := new([2]uint64)
		m := &struct{ added, begun uint64 }{}
		explore.Watch(w, "word", word)
		explore.Watch(w, "element", element)
		explore.Watch(w, "model", m)
		w.Memory("journal", unsafe.Pointer(j), unsafe.Offsetof(j.runs)+unsafe.Sizeof(j.runs[0]))
		w.Memory("data", unsafe.Pointer(&j.data), 16)
		data := (*[2]uint64)(unsafe.Pointer(&j.data))
		threads := make([]*explore.Thread, ranks)
		now = func() int64 { return w.Current().Now(int64(1e9)) }
		store := func(from *[2]uint64) {
			for i := range element {
				atom.Store64(&element[i], from[i])
			}
		}
		for i := range ranks {
			threads[i] = w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
				l := accLock{word: word, me: uint32(i + 1), dead: func(r int) bool {
					dead := threads[r].Dead()
					if dead {
						t.Note(1)
					}
					return dead
				}, redo: func() {
					j.redo(func(off, n int, values unsafe.Pointer) {
						t.Check(off == 8 && n == 16, "%d bytes at %d", n, off)
						store((*[2]uint64)(values))
					})
				}}
				for k := range rounds {
					t.Forget(uint64(k))
					l.lock()
					v := [2]uint64{atom.Load64(&element[0]), atom.Load64(&element[1])}
					t.Check(v[0] == v[1], "the element is torn: %d, %d", v[0], v[1])
					t.Check(m.added <= v[0] && v[0] <= m.begun, "the element is %d, between %d and %d ranks added", v[0], m.added, m.begun)
					t.Check(j.state == journalEmpty, "the journal is not empty")
					m.begun++
					for i := range data {
						atom.Store64(&data[i], v[i]+1)
					}
					j.setRuns([]fabric.Run{{Addr: 8, N: 16}})
					j.commit(func() *errs.Error {
						store(data)
						return nil
					})
					m.added++
					l.unlock()
				}
			})
			if i < mortal {
				threads[i].Mortal()
			}
		}
		w.Finally(func() error {
			if j.state == journalEmpty && element[0] != element[1] {
				return fmt.Errorf("the element is torn: %d", *element)
			}
			if mortal == 0 && element[0] != uint64(ranks*rounds) {
				return fmt.Errorf("the element is %d", *element)
			}
			return nil
		})
	}
}

func TestEveryInterleavingOfJournal(t *testing.T) {
	spins, clock := accSpins, now
	defer func() { accSpins, now = spins, clock }()
	accSpins = 1
	for _, c := range []struct {
		ranks, rounds, mortal int
		opt                   explore.Options
	}{
		{ranks: 2, rounds: 2},
		{ranks: 2, rounds: 2, mortal: 2, opt: explore.Options{Deaths: 1, Timeouts: true}},
		{ranks: 3, rounds: 1, mortal: 3, opt: explore.Options{Deaths: 2, Timeouts: true}},
		{ranks: 2, rounds: 2, mortal: 2, opt: explore.Options{Deaths: 1, Timeouts: true, EarlyTimeouts: 1}},
	} {
		c.opt.FreeYield = true
		t.Run(fmt.Sprintf("%d ranks %d rounds %+v", c.ranks, c.rounds, c.opt), func(t *testing.T) {
			explore.Run(t, c.opt, journalWorld(c.ranks, c.rounds, c.mortal))
		})
	}
}
