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
// lock from it by compare-and-swap: at most the elements in hand are lost, and
// the death itself is reported as any other.
type accLock struct {
	word *uint32
	me   uint32
	dead func(rank int) bool
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
				return
			}
		}
	}
}

func (l accLock) unlock() {
	if atom.Swap32(l.word, 0)&accSleepers != 0 {
		atom.Wake(l.word)
	}
}
