package rma

import (
	"time"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// accLock is the accumulate lock of one target: held for the microseconds in
// which elements are read, combined and written.
//
// # Protocol
//
// One word: 0, or the holder's rank + 1, with the top bit set once somebody
// sleeps for it. Acquire: compare-and-swap 0 to own; else yield for a while,
// then set the top bit and sleep on the word. Who acquires it after having slept
// keeps the top bit set, for there may be more sleepers. Release: swap in 0; if
// the top bit was set, wake all. A waiter that finds the holder dead takes the
// lock from it by compare-and-swap, and does what the next section says before
// it goes on; the death itself is reported as any other.
//
// # No element half written
//
// An element that one store of the processor writes whole (it has 1, 2, 4 or 8
// bytes, is aligned to them, has one field, and the target's memory is mapped
// here) is written in place: a holder that dies has written it or not. All
// others go through the target's journal, a batch of runs at a time. The holder
//
//  1. writes the runs and their new values to the journal;
//  2. stores state = full;
//  3. writes the values where they belong, in whatever pieces;
//  4. stores state = empty.
//
// Who takes the lock from a dead holder finds state empty if that died before 2
// (no element was touched) or after 4 (all are whole), and full otherwise: it
// writes the journal's values where they belong, all of them, and stores
// state = empty. Those are the final values of the elements, and nobody else has
// had the lock since they were computed, so writing them twice is as good as
// once. If it dies in doing so, its state is that of a holder between 2 and 4.
//
// The runs in the journal are offsets into the target's part, so that a rank
// that reaches the target on another way than the dead one did can write them.
// The target does so itself as soon as it knows of the death, for its program may
// look before anybody accumulates again.
//
// Where nobody but the target has the lock (all others ask it by messages), a
// dead holder is a dead target, and there is nothing to write to.
//
// Accesses of 1 and 3 are plain. They can't be seen in another order by who
// takes over: the stores of state and the compare-and-swap of the lock's word
// are sequentially consistent.
type accLock struct {
	word *uint32
	me   uint32
	dead func(rank int) bool
	redo func() // what to do before going on with a dead holder's lock
}

const accSleepers = 1 << 31

// The clock, and how many yields lie between two looks at it; the test of the
// lock's interleavings sets them.
var (
	now      = job.Now
	accSpins = 16
)

func (l accLock) lock() {
	if atom.CAS32(l.word, 0, l.me) {
		return
	}
	l.slow()
}

func (l accLock) slow() {
	start := now()
	mark := uint32(0)
	for i := 1; ; i++ {
		w := atom.Load32(l.word)
		if w == 0 {
			if atom.CAS32(l.word, 0, l.me|mark) {
				return
			}
			continue
		}
		if mark == 0 {
			atom.Yield()
			if i%accSpins != 0 || now()-start < int64(100*time.Microsecond) {
				continue
			}
			mark = accSleepers
		}
		if w&accSleepers == 0 && !atom.CAS32(l.word, w, w|accSleepers) {
			continue
		}
		atom.Wait(l.word, w|accSleepers, 20*time.Millisecond)
		if again := atom.Load32(l.word); again == w|accSleepers && l.dead(int(again&^accSleepers)-1) {
			if atom.CAS32(l.word, again, l.me|accSleepers) {
				l.inherit()
				return
			}
		}
	}
}

// inherit does what a dead holder has left to do. If the target's memory faults, the
// lock is released before the caller hears of it.
func (l accLock) inherit() {
	done := false
	defer func() {
		if !done {
			l.unlock()
		}
	}()
	l.redo()
	done = true
}

func (l accLock) unlock() {
	if atom.Swap32(l.word, 0)&accSleepers != 0 {
		atom.Wake(l.word)
	}
}
