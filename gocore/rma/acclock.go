package rma

import (
	"time"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// accLock is the accumulate lock of one target. It is held for the microseconds in
// which elements are read, combined and written.
//
// # Protocol
//
// The lock is one word: 0, or the holder's rank + 1, with the top bit set while a
// waiter sleeps. Acquire: compare-and-swap 0 to own; else yield for a while, then
// set the top bit and sleep on the word. A rank that acquires the lock after it
// slept keeps the top bit set, since there may be more sleepers. Release: swap in
// 0; if the top bit was set, wake all. A waiter that finds the holder dead takes
// the lock from it by compare-and-swap, and completes the holder's writes (see the
// next section) before it continues. The death itself is reported as any other.
//
// # No element half written
//
// An element is written in place if one store of the processor writes it whole: it
// has 1, 2, 4 or 8 bytes, is aligned to its size, has one field, and the target's
// memory is mapped here. A holder that dies has written it or not. All other
// elements go through the target's journal, a batch of runs at a time. The holder
//
//  1. writes the runs and their new values to the journal;
//  2. stores state = full;
//  3. writes the values to the target, in pieces of any size;
//  4. stores state = empty.
//
// A rank that takes the lock from a dead holder finds state empty if the holder
// died before 2 (no element was touched) or after 4 (all are whole). It finds state
// full otherwise; then it writes all of the journal's values to the target and
// stores state = empty. Those are the final values of the elements, and no other
// rank has had the lock since they were computed, so writing them twice has the
// same effect as once. If this rank dies in doing so, it leaves the state of a
// holder that died between 2 and 4.
//
// The runs in the journal are offsets into the target's part, so that a rank that
// reaches the target by another path than the dead one did can write them. The
// target itself writes them as soon as it learns of the death, since its program
// may read the memory before the next accumulate.
//
// Where only the target takes the lock (all others send it messages), a dead
// holder is a dead target, and there is no memory to complete.
//
// Accesses of 1 and 3 are plain. The rank that takes over can't see them in another
// order: the stores of state and the compare-and-swap of the lock's word are
// sequentially consistent.
type accLock struct {
	word *uint32
	me   uint32
	dead func(rank int) bool
	redo func() // completes the writes of a dead holder, under the lock
}

const accSleepers = 1 << 31

// now is the clock, accSpins the number of yields between two readings of it. The
// test of the lock's interleavings replaces them.
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

// try acquires the lock if it is free.
func (l accLock) try() bool { return atom.CAS32(l.word, 0, l.me) }

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

// inherit completes the writes of a dead holder. If the target's memory faults, the
// lock is released before the panic reaches the caller.
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
