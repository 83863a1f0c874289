package rma

import (
	"sync"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// NIC atomics: fetch-add and compare-and-swap by the network adapter, without the
// target's processor.
//
// An adapter's atomics are atomic to each other, not to the processor's. So the
// network updates either all aligned elements of 8 bytes in a window, for every rank
// and in every operation, also of a rank on its own part, or none. RMA.nicAtomics
// decides that when the window is made, from what all ranks know: no two ranks share
// memory, the network has Caps.Atomics, all parts are registered, and no part
// has more than nicAtomicsBytes unless the program asks for NIC atomics (the hint
// gormapy_native_atomics). The network is faster for windows of a few counters only:
// it updates an array element by element.
//
// The operations of one rank on one element take effect in program order, as MPI
// requires for accumulates. The network orders nothing, so an operation starts when
// the one before has completed.
//
// Sums of integers and reads are one fetch-add. Other operations read the element,
// combine, and compare and swap until no other update came in between.

// nicAtomicsBytes is the size up to which a part's elements are updated by the
// network without a hint.
const nicAtomicsBytes = 4 << 10

// isInteger reports whether elements of a kind are integers, whose sums are
// fetch-adds.
func isInteger(k dtype.Kind) bool { return op.Band.Valid(k) }

// nicAtomics reports whether the network updates the aligned elements of 8 bytes.
func (m *RMA) nicAtomics(offers []Offer, world []int) bool {
	net := m.eng.Net()
	if net == nil || !net.Caps().Atomics || len(world) == 1 || Flavor(offers[0].Flavor) == FlavorDynamic || !m.eng.Apart(world) {
		return false
	}
	for i := range offers {
		o := &offers[i]
		switch {
		case o.Bytes > 0 && o.Keyed == 0, o.Hints&HintSoftware != 0:
			return false
		case o.Bytes > nicAtomicsBytes && o.Hints&HintNICAtomics == 0:
			return false
		}
	}
	return true
}

// byNIC reports whether the network updates elements of size bytes at an offset of a
// target's part.
func (w *Win) byNIC(rank int, off, size int) bool {
	return w.nicAtomics && size == 8 && (w.skews[rank]+off)%8 == 0
}

// updateNIC is update for a window with NIC atomics. Unaligned elements are updated
// as in any window.
func (w *Win) updateNIC(a update, result *p2p.Buf, s TargetSpec, to location) *errs.Error {
	finish := func() {}
	if result != nil {
		a.out = result.Addr
		if !result.Type.Dense() {
			flat := make([]byte, s.Count*s.Type.Elems()*a.size)
			a.out = unsafe.Pointer(&flat[0])
			finish = func() { result.Type.UnpackElements(result.Addr, flat, result.Count) }
		}
	}
	all := to.outstanding.pend(finish)
	defer all.Completed(nil) // also if an operand faults
	done := 0
	var failed *errs.Error
	s.Type.Elements(s.Count, func(off, elems int) bool {
		at, n := to.off+off, elems*a.size
		part := a.from(done)
		done += n
		if !w.byNIC(to.rank, at, a.size) {
			failed = w.updateUnaligned(part, to, at, n, all)
			return failed == nil
		}
		for i := 0; i < n; i += a.size {
			w.nic(part.from(i), to.rank, at+i, all)
		}
		return true
	})
	return failed
}

// updateUnaligned updates n bytes of elements that the network does not update.
func (w *Win) updateUnaligned(a update, to location, at, n int, all *pending) *errs.Error {
	if to.direct {
		to.off, to.addr = at, to.address(uint64(at))
	} else {
		to.off = at
	}
	b := newBatch(a.limits(), nil)
	if !w.atomicsByMessage(to) {
		b.handle = func(from, _ int, runs []fabric.Run) *errs.Error { return w.combine(to, runs, a.from(from), b) }
		b.add(at, n)
		return b.end()
	}
	b.end()
	var fe *fetch
	if a.out != nil {
		all.begin()
		fe = w.rma.fetchInto(w, to.rank, a.out, n, func() { all.Completed(nil) })
		fe.failed = fe.finish // the answer has reported the error
	}
	err := w.sendAcc(fe, a, func(b *batch) { b.add(at, n) }, to)
	if err != nil && fe != nil {
		all.Completed(nil)
	}
	return err
}

// nicOp is the update of one element by the network.
type nicOp struct {
	w      *Win
	all    *pending
	cookie uint64
	rank   int
	key    fabric.RemoteKey
	a      update

	add     bool // one fetch-add is the whole update
	swap    bool // a compare-and-swap is outstanding, else a read
	operand uint64
	was     uint64 // the expected value of the element
	old     uint64 // the value that the network returned
	put     uint64 // the value that the compare-and-swap writes
	next    *nicOp // the next operation on the same element
	once    bool   // the program's own compare-and-swap: it is not repeated
}

// nic starts the update of one element; a points at its operand and result.
func (w *Win) nic(a update, rank, at int, all *pending) {
	operand := uint64(0)
	if a.in != nil {
		operand = *(*uint64)(a.in) // may fault, so before the operation is counted
	}
	x := w.newNIC(a, rank, at, all)
	x.operand = operand
	x.add = a.f == op.NoOp || a.f == op.Sum && isInteger(a.kind)
	x.start()
}

func (w *Win) newNIC(a update, rank, at int, all *pending) *nicOp {
	x := &nicOp{w: w, all: all, rank: rank, key: w.keys[rank], a: a}
	x.key.Addr += uint64(at)
	x.cookie = w.rma.eng.Enroll(x)
	all.begin()
	return x
}

// nicOps are the latest outstanding operations, by target and address.
type nicOps struct {
	mu   sync.Mutex
	last map[nicElement]*nicOp
}

type nicElement struct {
	rank int
	addr uint64
}

// start posts the operation, or appends it to the one before it on the same element.
func (x *nicOp) start() {
	q, e := &x.w.nics, nicElement{x.rank, x.key.Addr}
	q.mu.Lock()
	if q.last == nil {
		q.last = map[nicElement]*nicOp{}
	}
	before := q.last[e]
	q.last[e] = x
	if before != nil {
		before.next = x
	}
	q.mu.Unlock()
	if before == nil {
		x.post()
	}
}

// end posts the operation that comes after this one.
func (x *nicOp) end() {
	q, e := &x.w.nics, nicElement{x.rank, x.key.Addr}
	q.mu.Lock()
	next := x.next
	if q.last[e] == x {
		delete(q.last, e)
	}
	q.mu.Unlock()
	if next != nil {
		next.post()
	}
}

func (x *nicOp) post() {
	eng, peer, old := x.w.rma.eng, x.w.World[x.rank], unsafe.Pointer(&x.old)
	done, err := false, error(nil)
	switch {
	case x.swap:
		done, err = eng.CompareSwap(peer, old, x.key, x.was, x.put, x.cookie)
	case x.add:
		done, err = eng.FetchAdd(peer, old, x.key, x.operand, x.cookie) // NO_OP has no operand: 0
	default:
		done, err = eng.FetchAdd(peer, old, x.key, 0, x.cookie)
	}
	if done || err != nil {
		x.Completed(err)
	}
}

// Completed implements engine.Completer.
func (x *nicOp) Completed(err error) {
	switch {
	case err != nil || x.add || x.once, x.swap && x.old == x.was:
		x.w.rma.eng.Cancel(x.cookie)
		if err == nil && x.a.out != nil {
			err = sys.Touch(func() { *(*uint64)(x.a.out) = x.old })
		}
		x.all.Completed(err)
		x.end()
		return
	}
	x.was, x.swap = x.old, true
	x.put = x.was
	x.a.f.Apply(x.a.kind, unsafe.Pointer(&x.put), unsafe.Pointer(&x.operand), 1)
	x.post()
}

// compareAndSwapNIC is compareAndSwap of an element that the network updates.
func (w *Win) compareAndSwapNIC(to location, origin, compare, result unsafe.Pointer) {
	was, put := *(*uint64)(compare), *(*uint64)(origin)
	all := to.outstanding.pend(func() {})
	x := w.newNIC(update{out: result}, to.rank, to.off, all)
	x.once, x.swap = true, true
	x.was, x.put = was, put
	x.start()
	all.Completed(nil)
}
