package rma

import (
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
)

// Short accumulates and compare-and-swaps on the path copy, without what the general call does for runs, datatypes and
// transports. They take the same lock and write through the same journal as it, so both are atomic against each
// other: see acclock.go. What the general call can do better, or has to say why it can't, is left to it before anything
// has happened. The hot calls have checked bounds, and that a passive-target epoch is open and the target Settled.

// ShortUpdate is the length up to which HotUpdate does it. The caller may hold the GIL.
const ShortUpdate = 256

// HotUpdate combines n elements at an offset of a target's part; with out it fetches too. It returns false if Accumulate
// is to do it.
func (w *Win) HotUpdate(f op.Op, t *dtype.Type, in, out unsafe.Pointer, n, rank int, at int64) (done bool, err *errs.Error) {
	kind, size := t.Kind(), t.ElemSize()
	if kind == dtype.KindNone || t.Size() != size || !f.Valid(kind) { // a pair has padding, which is not in the origin's bytes
		return false, nil
	}
	return w.hotUpdate("Accumulate", n*size, rank, at, func(values unsafe.Pointer) {
		if out != nil {
			fabric.Copy(out, values, n*size)
		}
		f.Apply(kind, values, in, n)
	})
}

// HotCompareAndSwap is CompareAndSwap, likewise.
func (w *Win) HotCompareAndSwap(t *dtype.Type, origin, compare, result unsafe.Pointer, rank int, at int64) (done bool, err *errs.Error) {
	if !comparable(t) {
		return false, nil
	}
	size := t.Size()
	return w.hotUpdate("Compare_and_swap", size, rank, at, func(values unsafe.Pointer) {
		same := string(engine.Bytes(values, size)) == string(engine.Bytes(compare, size))
		copy(engine.Bytes(result, size), engine.Bytes(values, size))
		if same {
			copy(engine.Bytes(values, size), engine.Bytes(origin, size))
		}
	})
}

// hotUpdate reads bytes of a target, has them changed, and writes them back if they are other ones then.
func (w *Win) hotUpdate(call string, bytes, rank int, at int64, change func(values unsafe.Pointer)) (done bool, err *errs.Error) {
	if w.nicAtomics || w.paths[rank] != pathCopy || bytes == 0 || bytes > ShortUpdate {
		return false, nil
	}
	lock, j, eng, world, key := &w.acc[rank], w.journals[rank], w.rma.eng, w.World[rank], w.keys[rank]
	key.Addr += uint64(at)
	if !lock.try() {
		return false, nil
	}
	defer lock.unlock() // even if the memory of the origin faults
	values := unsafe.Pointer(&j.data)
	if _, err := eng.Get(world, values, key, bytes, 0); err != nil {
		return false, nil
	}
	var old [ShortUpdate]byte
	copy(old[:bytes], engine.Bytes(values, bytes))
	change(values)
	if string(old[:bytes]) == string(engine.Bytes(values, bytes)) {
		return true, nil
	}
	j.runs[0], j.used = fabric.Run{Addr: uint64(at), N: bytes}, 1
	return true, j.commit(func() *errs.Error {
		if _, err := eng.Put(world, values, key, bytes, 0); err != nil {
			return w.failed(call, rank, values, bytes, err)
		}
		return nil
	})
}
