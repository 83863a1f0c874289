//go:build interleave

package rma

import (
	"fmt"
	"math/bits"
	"os"
	"testing"
	"unsafe"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// lockCase describes the ranks that use the lock of one target.
type lockCase struct {
	plans   []string // by rank: its acquisitions, X exclusive, S shared, T shared if it is free
	leave   int      // the rank that a signal interrupts while it waits, and that gives up once; -1: none
	mortal  int      // ranks from 0 to mortal-1 may die
	deaths  int      // how many of them
	preempt int
	full    bool // only with EXPLORE=full
}

// lockModel is the test's own record of a run.
type lockModel struct {
	in      uint32 // ranks that hold the lock
	inX     uint32 // those that hold it exclusively
	died    uint32 // those that died holding it exclusively
	last    uint32 // highest ticket granted + 1
	lastX   uint32 // highest exclusive ticket granted + 1
	reports uint32 // ranks whose death as an exclusive holder was reported
	signal  uint32
	gone    [3]uint32 // by rank: the ranks that it knows to be dead
}

func (c lockCase) world(w *explore.World) {
	n := len(c.plans)
	mem := make([]uint64, lockBytes(n)/8)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), lockBytes(n))
	ranks := make([]*job.Rank, n)
	m := &lockModel{}
	explore.Watch(w, "model", m)
	locks := make([]*lock, n)
	for i := range n {
		ranks[i] = &job.Rank{}
		w.Memory(fmt.Sprintf("rank %d", i), unsafe.Pointer(&ranks[i].Doorbell), 8)
		w.Name(unsafe.Pointer(&ranks[i].Doorbell), fmt.Sprintf("doorbell[%d]", i))
		w.Name(unsafe.Pointer(&ranks[i].Sleepers), fmt.Sprintf("sleepers[%d]", i))
	}
	for i := range n {
		locks[i] = newLock(bytes, i, ranks)
		w.Name(unsafe.Pointer(&locks[0].slots[i]), fmt.Sprintf("slot[%d]", i))
	}
	w.Memory("words", unsafe.Pointer(locks[0].words), 8)
	w.Memory("slots", unsafe.Pointer(&locks[0].slots[0]), uintptr(8*n))
	w.Name(unsafe.Pointer(&locks[0].words.users), "users")
	w.Name(unsafe.Pointer(&locks[0].words.serving), "serving")

	threads := make([]*explore.Thread, n)
	for i := range n {
		r := lockRank{i: i, l: locks[i], me: ranks[i], m: m, c: c}
		threads[i] = w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
			r.t, r.all = t, threads
			r.run()
		})
		if i < c.mortal {
			threads[i].Mortal().OnDeath(func() {
				l := locks[i]
				if s := l.slots[i]; s == slotHeldX|uint64(l.words.serving) {
					m.died |= 1 << i
				}
			})
		}
	}
	if c.deaths > 0 {
		for i := range n {
			w.Thread(fmt.Sprintf("watcher%d", i), func(t *explore.Thread) { lockWatcher(t, i, c.mortal, threads, ranks[i], m) }).Daemon()
		}
	}
	if c.leave >= 0 {
		w.Thread("signal", func(t *explore.Thread) {
			t.Pause()
			m.signal = 1
			atom.Wake(&ranks[c.leave].Doorbell) // a sleep that EINTR ends
		})
	}
	w.Finally(func() error {
		l := locks[0]
		if c.deaths == 0 && l.words.serving != l.words.users {
			return fmt.Errorf("serving %d, users %d", l.words.serving, l.words.users)
		}
		if lost := m.died &^ m.reports; lost != 0 && c.deaths == 1 && l.slots[bits.TrailingZeros32(lost)]&slotState != slotHeldX {
			return fmt.Errorf("the death of the exclusive holder %#x was not reported", lost)
		}
		for i := range n {
			if s := l.slots[i]; !threads[i].Dead() && s != slotFree && (c.deaths == 0 || s&slotState != slotLeft) {
				return fmt.Errorf("slot %d is %#x", i, l.slots[i])
			}
		}
		return nil
	})
}

// lockWatcher reports the others' deaths to rank i as engine.ended does: first the
// flag, then the doorbell.
func lockWatcher(t *explore.Thread, i, mortal int, threads []*explore.Thread, me *job.Rank, m *lockModel) {
	for {
		t.Forget()
		news := func() uint32 {
			for r := range mortal {
				if r != i && threads[r].Dead() && m.gone[i]&(1<<r) == 0 {
					return 1 << r
				}
			}
			return 0
		}
		t.Await("death", func() bool { return news() != 0 })
		m.gone[i] |= news()
		me.Ring()
	}
}

// lockRank is a rank that runs its plan.
type lockRank struct {
	i   int
	l   *lock
	me  *job.Rank
	m   *lockModel
	c   lockCase
	t   *explore.Thread
	all []*explore.Thread

	k     int // acquisition of the plan
	drawn bool
	left  bool // has given up once
	bell  uint32
}

func (r *lockRank) dead(i int) bool {
	d := i != r.i && r.m.gone[r.i]&(1<<i) != 0
	if d {
		r.t.Note(uint64(i) + 1)
	} else {
		r.t.Note(0)
	}
	return d
}

// advance is Lock.Advance for one target.
func (r *lockRank) advance(mode lockMode, phase uint64) bool {
	if !r.drawn {
		if mode == shared && r.l.tryShared() {
			r.forget(phase + 16)
			return true
		}
		if !r.l.begin(mode) {
			return false
		}
		r.drawn = true
		r.forget(phase + 32)
	}
	if !r.l.try() {
		r.forget(phase)
		return false
	}
	r.drawn = false
	r.forget(phase + 16)
	return true
}

// forget tells the explorer the whole state that a rank keeps between two calls.
func (r *lockRank) forget(phase uint64) {
	key := uint64(r.k)<<40 | uint64(r.l.ticket)<<8 | phase
	if r.drawn {
		key |= 1 << 6
	}
	if r.left {
		key |= 1 << 7
	}
	r.t.Forget(key, uint64(r.bell))
}

func (r *lockRank) run() {
	for k, c := range r.c.plans[r.i] {
		r.k, r.bell = k, 0
		if c == 'T' {
			r.forget(9)
			if r.l.tryShared() {
				r.hold(shared)
				r.l.release()
			} else {
				r.left = true
			}
			r.forget(10)
			continue
		}
		mode := shared
		if c == 'X' {
			mode = exclusive
		}
		if r.acquire(mode) {
			r.hold(mode)
			r.l.release()
		}
	}
	// Giving up leaves the slot to others; the test's final check needs it free.
	if r.left && r.l.slots[r.i] != slotFree {
		r.t.Await("that the turn given up is skipped", func() bool { return r.l.slots[r.i] == slotFree })
	}
}

// acquire waits as engine.wait does once it has stopped yielding, with Lock.Advance
// as the condition and Lock.Check as the check.
func (r *lockRank) acquire(mode lockMode) bool {
	if r.advance(mode, 1) {
		return true
	}
	for {
		r.forget(2)
		atom.Add32(&r.me.Sleepers, 1)
		r.forget(3)
		r.bell = atom.Load32(&r.me.Doorbell)
		if r.advance(mode, 4) {
			atom.Add32(&r.me.Sleepers, ^uint32(0))
			return true
		}
		if holder := r.l.skip(r.dead); holder >= 0 {
			r.report(holder)
			r.abandon()
			atom.Add32(&r.me.Sleepers, ^uint32(0))
			return false
		}
		r.forget(5)
		atom.Wait(&r.me.Doorbell, r.bell, 0)
		r.bell = 0
		r.forget(6)
		atom.Add32(&r.me.Sleepers, ^uint32(0))
		if r.advance(mode, 7) {
			return true
		}
		if r.i == r.c.leave && !r.left && r.m.signal != 0 {
			r.left = true
			r.forget(8)
			r.abandon()
			return false
		}
	}
}

func (r *lockRank) abandon() {
	if r.drawn {
		r.l.leave()
		r.drawn = false
	}
}

func (r *lockRank) report(holder int) {
	m := r.m
	r.t.Check(r.all[holder].Dead(), "rank %d is reported as a dead holder and lives", holder)
	r.t.Check(m.died&(1<<holder) != 0, "rank %d is reported as a dead holder and had released", holder)
	r.t.Check(m.reports&(1<<holder) == 0, "the death of holder %d is reported twice", holder)
	m.reports |= 1 << holder
}

// hold checks that the living holders may hold the lock together, and that turns
// come in the order of tickets.
func (r *lockRank) hold(mode lockMode) {
	t, m, ticket := r.t, r.m, r.l.ticket
	t.Log("GRANTED %d", ticket)
	var alive uint32
	for i, o := range r.all {
		if !o.Dead() {
			alive |= 1 << i
		}
	}
	me := uint32(1) << r.i
	if mode == exclusive {
		t.Check(m.in&alive == 0, "exclusive with %#x inside", m.in&alive)
		t.Check(m.last <= ticket, "ticket %d after %d", ticket, m.last-1)
		m.inX |= me
		m.lastX = ticket + 1
	} else {
		t.Check(m.in&m.inX&alive == 0, "shared with exclusive %#x inside", m.inX)
		if r.l.slots[r.i] == slotJoined {
			ticket = m.last - 1 // it has none
		} else {
			t.Check(m.lastX <= ticket, "shared ticket %d after exclusive %d", ticket, m.lastX-1)
		}
	}
	m.last = max(m.last, ticket+1)
	m.in |= me
	t.Pause()
	m.in &^= me
	m.inX &^= me
}

func (c lockCase) test(t *testing.T) {
	name := fmt.Sprint(c.plans)
	if c.leave >= 0 {
		name += fmt.Sprintf(" leave %d", c.leave)
	}
	if c.deaths > 0 {
		name += fmt.Sprintf(" %d of %d die", c.deaths, c.mortal)
	}
	full := os.Getenv("EXPLORE") == "full"
	if full && !c.full && c.preempt > 0 {
		c.preempt++
	}
	t.Run(name, func(t *testing.T) {
		if c.full && !full {
			t.Skip("takes half a minute; set EXPLORE=full")
		}
		explore.Run(t, explore.Options{FreeYield: true, Deaths: c.deaths, Preemptions: c.preempt, MaxStates: 20 << 20}, c.world)
	})
}

// TestEveryInterleavingOfLock explores two ranks in full, and three with a bound on
// preemptions, which EXPLORE=full in the environment makes one larger (minutes).
func TestEveryInterleavingOfLock(t *testing.T) {
	for _, c := range []lockCase{
		{plans: []string{"XX", "XX"}},
		{plans: []string{"XS", "SX"}},
		{plans: []string{"SS", "XX"}},
		{plans: []string{"X", "X", "X"}, preempt: 2},
		{plans: []string{"X", "X", "S"}, preempt: 2},
		{plans: []string{"X", "S", "S"}, preempt: 2},
		{plans: []string{"TX", "XT"}},
		{plans: []string{"TS", "ST"}},
		{plans: []string{"T", "T", "X"}, preempt: 2},
		{plans: []string{"T", "S", "X"}, preempt: 2},
		{plans: []string{"TT", "X", "S"}, preempt: 1},
	} {
		c.leave = -1
		c.test(t)
	}
}

func TestEveryInterleavingOfLockLeft(t *testing.T) {
	for _, c := range []lockCase{
		{plans: []string{"XX", "X"}, leave: 0},
		{plans: []string{"SX", "X"}, leave: 0},
		{plans: []string{"XS", "S"}, leave: 0, full: true},
		{plans: []string{"X", "X", "X"}, leave: 1, preempt: 1},
		{plans: []string{"XX", "S", "X"}, leave: 0, preempt: 1},
	} {
		c.test(t)
	}
}

func TestEveryInterleavingOfLockDeath(t *testing.T) {
	for _, c := range []lockCase{
		{plans: []string{"X", "X"}, mortal: 1, deaths: 1},
		{plans: []string{"X", "S"}, mortal: 1, deaths: 1},
		{plans: []string{"S", "X"}, mortal: 1, deaths: 1},
		{plans: []string{"S", "S"}, mortal: 1, deaths: 1},
		{plans: []string{"T", "X"}, mortal: 1, deaths: 1},
		{plans: []string{"X", "TS"}, mortal: 1, deaths: 1},
		{plans: []string{"S", "TX"}, mortal: 1, deaths: 1},
		{plans: []string{"X", "X", "X"}, mortal: 1, deaths: 1, preempt: 1},
		{plans: []string{"S", "X", "X"}, mortal: 1, deaths: 1, preempt: 1},
		{plans: []string{"X", "S", "X"}, mortal: 1, deaths: 1, preempt: 1},
		{plans: []string{"X", "X", "X"}, mortal: 2, deaths: 2, preempt: 1, full: true},
	} {
		c.leave = -1
		c.test(t)
	}
}
