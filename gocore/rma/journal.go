package rma

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys/atom"
)

// journal is what the holder of a target's accumulate lock is about to write
// there, kept in the window's control segment so that it outlives the holder:
// see acclock.go. Its pages exist only once they are used.
type journal struct {
	state uint32 // journalEmpty or journalFull
	used  uint32 // runs
	_     [56]byte
	runs  [journalRuns]fabric.Run // Addr is the offset in the target's part
	data  [journalData]byte       // of all runs, one after the other
}

const (
	journalEmpty uint32 = iota
	journalFull
)

const (
	journalRuns = 512
	journalData = 16 << 10
)

// journalBytes is the room that the journal of one target takes.
const journalBytes = (int(unsafe.Sizeof(journal{})) + 4095) / 4096 * 4096

func newJournal(mem []byte) *journal { return (*journal)(unsafe.Pointer(&mem[0])) }

// setRuns says where the data belongs. The journal is empty.
func (j *journal) setRuns(runs []fabric.Run) {
	copy(j.runs[:], runs)
	j.used = uint32(len(runs))
}

// commit has write put the journal's data where it belongs. Who dies in write
// leaves the journal full, and the lock with it.
func (j *journal) commit(write func() *errs.Error) *errs.Error {
	atom.Store32(&j.state, journalFull)
	defer atom.Store32(&j.state, journalEmpty) // even if write faults
	return write()
}

// redo is called by who has taken the lock from a dead holder: write puts one
// run where it belongs. It does no harm if it was there already.
func (j *journal) redo(write func(off, n int, data unsafe.Pointer)) {
	if atom.Load32(&j.state) != journalFull {
		return
	}
	defer atom.Store32(&j.state, journalEmpty) // even if write faults
	from := 0
	for _, r := range j.runs[:min(j.used, journalRuns)] {
		if r.N < 0 || r.N > journalData-from {
			break
		}
		write(int(r.Addr), r.N, unsafe.Pointer(&j.data[from]))
		from += r.N
	}
}

// redo completes what a dead holder of target's lock had begun to write.
func (w *Win) redo(target int) {
	w.journals[target].redo(func(off, n int, data unsafe.Pointer) {
		to, err := w.at(target, off, n)
		if err != nil || w.byMessage(to) {
			return // detached since: there is nothing left to complete
		}
		_ = w.write("Accumulate", to, 0, data, n) // fails if the target is gone too
	})
}

// complete has what world rank gone had begun to write to this process's parts
// of windows completed, when it is known that it is gone: the next accumulate
// would do it, but the program may look at its memory before there is one.
func (m *RMA) complete(gone int) {
	m.mu.RLock()
	defer m.mu.RUnlock() // no window is freed meanwhile
	for _, w := range m.wins {
		l := w.acc[w.Rank]
		if holder := int(atom.Load32(l.word)&^accSleepers) - 1; holder >= 0 && holder < w.Size && w.World[holder] == gone {
			l.lock()
			l.unlock()
		}
	}
}

// at is the place of n bytes, off into a target's part.
func (w *Win) at(target, off, n int) (place, *errs.Error) {
	p := place{rank: target, off: off}
	if w.Flavor == FlavorDynamic {
		return p, w.locateAttached(&p, off, 0, n)
	}
	t := w.Desc.Target(target)
	if off < 0 || off > int(t.Bytes)-n {
		return p, errs.New(errs.RMARange, "bytes %d to %d of rank %d's part of %s, which has %d bytes", off, off+n, target, w.name(), t.Bytes)
	}
	if t.Base != nil {
		p.direct, p.addr = true, unsafe.Add(t.Base, off)
	}
	return p, nil
}
