package rma

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys/atom"
)

// journal holds the data that the holder of a target's accumulate lock is about to
// write there. It lies in the window's control segment so that it outlives the
// holder: see acclock.go. Its pages are allocated when they are first used.
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

// journalBytes is the size of one target's journal in the segment.
const journalBytes = (int(unsafe.Sizeof(journal{})) + 4095) / 4096 * 4096

func newJournal(mem []byte) *journal { return (*journal)(unsafe.Pointer(&mem[0])) }

// setRuns records where the data belongs. The state must be journalEmpty.
func (j *journal) setRuns(runs []fabric.Run) {
	copy(j.runs[:], runs)
	j.used = uint32(len(runs))
}

// commit calls write to store the journal's data at the target. A rank that dies in
// write leaves the journal full and the lock held.
func (j *journal) commit(write func() *errs.Error) *errs.Error {
	atom.Store32(&j.state, journalFull)
	defer atom.Store32(&j.state, journalEmpty) // even if write faults
	return write()
}

// redo calls write for each run of a full journal. The caller has taken the lock from
// a dead holder. Runs that were already written are written again.
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

// redo completes the writes that a dead holder of target's lock had begun.
func (w *Win) redo(target int) {
	w.journals[target].redo(func(off, n int, data unsafe.Pointer) {
		to, err := w.at(target, off, n)
		if err != nil || w.atomicsByMessage(to) {
			return // detached since: there is nothing left to complete
		}
		_ = w.write("Accumulate", to, 0, data, n) // fails if the target is gone too
	})
}

// complete completes the writes that world rank gone had begun to this process's
// parts of windows, once its end is known. The next accumulate would do so, but the
// program may read its memory before there is one.
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

// at returns the place of n bytes at offset off of a target's part.
func (w *Win) at(target, off, n int) (location, *errs.Error) {
	p := location{rank: target, off: off}
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
