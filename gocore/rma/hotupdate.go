package rma

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Short accumulates and compare-and-swaps on the path copy, without what the general call does for runs, datatypes and
// transports. They take the same lock and write through the same journal as it, so both are atomic against each
// other: see acclock.go. What the general call can do better, or has to say why it can't, is left to it before anything
// has happened. The hot calls have checked bounds, and that a passive-target epoch is open and the target Settled.

// ShortUpdate is the length up to which HotUpdate does it. The caller may hold the GIL.
const ShortUpdate = 256

// HotUpdate combines n elements at an offset of a target's part; with out it fetches too. It returns false if
// Accumulate is to do it.
func (w *Win) HotUpdate(f op.Op, t *dtype.Type, in, out unsafe.Pointer, n, rank int, at int64) (bool, *errs.Error) {
	kind, size := t.Kind(), t.ElemSize()
	if kind == dtype.KindNone || t.Size() != size || !f.Valid(kind) { // the size of a pair is without its padding
		return false, nil
	}
	var u hotUpdate
	if !u.begin(w, rank, at, n*size) {
		return false, nil
	}
	defer u.lock.unlock() // even if the memory of the origin faults
	if out != nil {
		fabric.Copy(out, u.values, u.n)
	}
	f.Apply(kind, u.values, in, n)
	return u.end("Accumulate")
}

// HotCompareAndSwap is CompareAndSwap, likewise.
func (w *Win) HotCompareAndSwap(t *dtype.Type, origin, compare, result unsafe.Pointer, rank int,
	at int64) (bool, *errs.Error) {
	size := t.Size()
	var u hotUpdate
	if !comparable(t) || !u.begin(w, rank, at, size) {
		return false, nil
	}
	defer u.lock.unlock()
	same := string(engine.Bytes(u.values, size)) == string(engine.Bytes(compare, size))
	copy(engine.Bytes(result, size), engine.Bytes(u.values, size))
	if !same {
		return true, nil
	}
	copy(engine.Bytes(u.values, size), engine.Bytes(origin, size))
	return u.end("Compare_and_swap")
}

// hotUpdate is an update of n bytes under the accumulate lock.
type hotUpdate struct {
	w       *Win
	lock    *accLock
	journal *journal
	target  *Target
	rank    int
	at      int64
	n       int
	values  unsafe.Pointer // in the journal
	old     [ShortUpdate]byte
}

// begin takes the lock if it is free, and reads. If it returns false nothing has happened.
func (u *hotUpdate) begin(w *Win, rank int, at int64, n int) bool {
	if w.nicAtomics || w.paths[rank] != pathCopy || n == 0 || n > ShortUpdate {
		return false
	}
	u.w, u.rank, u.at, u.n = w, rank, at, n
	u.lock, u.journal, u.target = &w.acc[rank], w.journals[rank], w.Desc.Target(rank)
	u.values = unsafe.Pointer(&u.journal.data)
	if u.gone() || !u.lock.try() {
		return false
	}
	if err := sys.ReadProcess(int(u.target.PID), u.values, u.target.Remote+uint64(at), n); err != nil || u.gone() {
		u.lock.unlock()
		return false
	}
	copy(u.old[:n], engine.Bytes(u.values, n))
	return true
}

// gone reports whether the target has ended, so that its memory may be another process's.
func (u *hotUpdate) gone() bool { return atom.Load32(u.target.Ended) != 0 }

// end writes the values if they are other ones now. It returns false if the target has ended: the general call says so, and
// waits without the lock.
func (u *hotUpdate) end(call string) (done bool, e *errs.Error) {
	if string(u.old[:u.n]) == string(engine.Bytes(u.values, u.n)) {
		return true, nil
	}
	u.journal.runs[0], u.journal.used = fabric.Run{Addr: uint64(u.at), N: u.n}, 1
	atom.Store32(&u.journal.state, journalFull)
	err := sys.WriteProcess(int(u.target.PID), u.values, u.target.Remote+uint64(u.at), u.n)
	atom.Store32(&u.journal.state, journalEmpty)
	switch {
	case u.gone() || errors.Is(err, unix.ESRCH):
		return false, nil
	case err != nil:
		return true, u.w.failed(call, u.rank, u.values, u.n, err)
	}
	return true, nil
}
