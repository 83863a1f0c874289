package rma

import (
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Accumulate combines origin into the target. If result is not nil, it receives the
// previous values (Get_accumulate). origin.Type may be nil for NO_OP.
func (w *Win) Accumulate(origin p2p.Buf, result *p2p.Buf, s TargetSpec, f op.Op) *errs.Error {
	bytes := accumulated(origin, s, f)
	to, err := w.locate(s, bytes, s.Type.CellSpan) // padding included, which is written back
	if err == nil {
		err = checkElements(origin, result, s, f, bytes)
	}
	if err != nil || bytes == 0 {
		return err
	}
	a := update{f: f, kind: s.Type.Kind(), size: s.Type.ElemSize()}
	if f != op.NoOp {
		a.in = packedElements(origin)
	}
	return w.update(a, result, s, to)
}

// CheckAccumulate returns the error that an Accumulate has whenever it is done, to a rank of the window.
func (w *Win) CheckAccumulate(origin p2p.Buf, result *p2p.Buf, s TargetSpec, f op.Op) *errs.Error {
	bytes := accumulated(origin, s, f)
	if e := w.checkPlace(s, bytes, s.Type.CellSpan); e != nil {
		return e
	}
	return checkElements(origin, result, s, f, bytes)
}

// accumulated returns how many bytes an accumulate is about.
func accumulated(origin p2p.Buf, s TargetSpec, f op.Op) int {
	if f != op.NoOp {
		return origin.Bytes()
	}
	return s.Count * s.Type.Size()
}

// checkElements returns an error if an accumulate of so many bytes can't be done with the elements that there are.
func checkElements(origin p2p.Buf, result *p2p.Buf, s TargetSpec, f op.Op, bytes int) *errs.Error {
	if bytes == 0 {
		return nil
	}
	kind := s.Type.Kind()
	if kind == dtype.KindNone {
		return errs.New(errs.Type, "the target type %s of an accumulate is not made of one predefined type", s.Type.Name())
	}
	if f != op.NoOp && origin.Type.Kind() != kind {
		return errs.New(errs.Type, "an accumulate needs the same predefined type at origin (%s) and target (%s)", origin.Type.Name(), s.Type.Name())
	}
	if !f.Valid(kind) {
		return errs.New(errs.Op, "the operation %v does not exist for elements of %s", f, s.Type.Name())
	}
	if result != nil && result.Bytes() != bytes {
		return errs.New(errs.Type, "the result buffer describes %d bytes, the target side %d", result.Bytes(), bytes)
	}
	return nil
}

// update is what an accumulate does to an array of elements at a target.
type update struct {
	f    op.Op
	kind dtype.Kind
	size int            // of an element, padding included
	in   unsafe.Pointer // the operands, nil for NO_OP
	out  unsafe.Pointer // receives the previous values, or nil
}

// from returns a for the elements from byte at on. There must be at least one, since
// a pointer past the end of Go's memory must not exist.
func (a update) from(at int) update {
	if a.in != nil {
		a.in = unsafe.Add(a.in, at)
	}
	if a.out != nil {
		a.out = unsafe.Add(a.out, at)
	}
	return a
}

// limits returns how much is read, combined and written under the accumulate lock
// at a time. MPI requires atomic elements, not atomic calls.
func (a update) limits() limits {
	return limits{runs: journalRuns, bytes: journalData, unit: a.size}
}

// packedElements returns b's elements as an array, as reductions and targets see them (pairs
// keep their padding).
func packedElements(b p2p.Buf) unsafe.Pointer {
	if b.Type.Dense() {
		return b.Addr
	}
	flat := make([]byte, max(b.Count*b.Type.Elems()*b.Type.ElemSize(), 1))
	b.Type.PackElements(flat, b.Addr, b.Count)
	return unsafe.Pointer(&flat[0])
}

// update applies a to the elements that s describes, by the path of their target.
func (w *Win) update(a update, result *p2p.Buf, s TargetSpec, to location) *errs.Error {
	if w.nicAtomics && a.size == 8 {
		return w.updateNIC(a, result, s, to)
	}
	bytes := s.Count * s.Type.Elems() * a.size
	finish := func() {}
	if result != nil {
		a.out = result.Addr
		if !result.Type.Dense() {
			flat := make([]byte, bytes)
			a.out = unsafe.Pointer(&flat[0])
			finish = func() { result.Type.UnpackElements(result.Addr, flat, result.Count) }
		}
	}
	if w.atomicsByMessage(to) {
		var fe *fetch
		if result != nil {
			fe = w.rma.fetchInto(w, s.Rank, a.out, bytes, finish)
		}
		return w.sendAcc(fe, a, func(b *batch) { b.addElements(s, to.off) }, to)
	}
	var b *batch
	b = newBatch(a.limits(), func(from, _ int, runs []fabric.Run) *errs.Error {
		return w.combine(to, runs, a.from(from), b)
	})
	b.addElements(s, to.off)
	err := b.end()
	if err == nil {
		finish()
	}
	return err
}

// combine applies a to runs of one target: see "One arbiter" in the package comment.
func (w *Win) combine(to location, runs []fabric.Run, a update, b *batch) *errs.Error {
	atomic := op.Atomic(a.kind)
	for len(runs) > 0 {
		n, bytes := 0, 0
		for ; n < len(runs) && !(atomic && w.byCPU(to, runs[n].Addr, a.size)); n++ {
			bytes += runs[n].N
		}
		if n > 0 {
			if err := w.combineLocked(to, runs[:n], bytes, a, b); err != nil {
				return err
			}
		} else {
			n, bytes = 1, runs[0].N
			a.f.AtomicApply(a.kind, to.address(runs[0].Addr), a.in, a.out, bytes/a.size)
		}
		if runs = runs[n:]; len(runs) > 0 {
			a = a.from(bytes)
		}
	}
	return nil
}

// combineLocked applies a to runs of bytes in all under the accumulate lock.
func (w *Win) combineLocked(to location, runs []fabric.Run, bytes int, a update, b *batch) *errs.Error {
	lock, j := w.acc[to.rank], w.journals[to.rank]
	lock.lock()
	defer lock.unlock() // even if the memory of either side faults
	if to.direct && a.inPlace(to, runs) {
		done := 0
		for _, r := range runs {
			p, at := to.address(r.Addr), a.from(done)
			if a.out != nil {
				fabric.Copy(at.out, p, r.N)
			}
			if a.f != op.NoOp {
				a.f.Apply(a.kind, p, at.in, r.N/a.size)
			}
			done += r.N
		}
		return nil
	}
	values := unsafe.Pointer(&j.data)
	if err := w.readRuns(to, runs, values, b); err != nil {
		return err
	}
	if a.out != nil {
		fabric.Copy(a.out, values, bytes)
	}
	if a.f == op.NoOp {
		return nil
	}
	a.f.Apply(a.kind, values, a.in, bytes/a.size)
	j.setRuns(runs)
	return j.commit(func() *errs.Error { return w.writeRuns(to, runs, values, b) })
}

// inPlace reports whether the elements need no journal: see acclock.go.
func (a update) inPlace(to location, runs []fabric.Run) bool {
	if a.f == op.NoOp || a.size == 1 {
		return true
	}
	if a.f == op.Replace || !op.Whole(a.kind) {
		return false // a copy of memory writes pieces of any size
	}
	for _, r := range runs {
		if uintptr(to.address(r.Addr))%uintptr(a.size) != 0 {
			return false
		}
	}
	return true
}

// readRuns copies runs of a target that is direct or reached by copies to values,
// where they are contiguous.
func (w *Win) readRuns(to location, runs []fabric.Run, values unsafe.Pointer, b *batch) *errs.Error {
	if !to.direct {
		return w.transfer("Accumulate", false, to.rank, values, runs, b)
	}
	done := 0
	for _, r := range runs {
		fabric.Copy(unsafe.Add(values, done), to.address(r.Addr), r.N)
		done += r.N
	}
	return nil
}

// writeRuns copies values to runs of such a target.
func (w *Win) writeRuns(to location, runs []fabric.Run, values unsafe.Pointer, b *batch) *errs.Error {
	if !to.direct {
		return w.transfer("Accumulate", true, to.rank, values, runs, b)
	}
	done := 0
	for _, r := range runs {
		fabric.Copy(to.address(r.Addr), unsafe.Add(values, done), r.N)
		done += r.N
	}
	return nil
}

// address returns where the byte at an offset of the target's part is mapped here.
func (p location) address(off uint64) unsafe.Pointer { return unsafe.Add(p.addr, int(off)-p.off) }

// byCPU reports whether CPU atomics update elements of size bytes at an offset of
// the target's part.
func (w *Win) byCPU(to location, off uint64, size int) bool {
	return to.direct && w.Desc.Target(to.rank).Flags&TargetAtomic != 0 && uintptr(to.address(off))%uintptr(size) == 0
}

// CompareAndSwap replaces one element at the target by origin if it equals
// compare. result receives the previous value.
func (w *Win) CompareAndSwap(origin, compare, result unsafe.Pointer, t *dtype.Type, rank, disp int) *errs.Error {
	to, err := w.locate(TargetSpec{Rank: rank, Disp: disp, Count: 1, Type: t}, t.Size(), t.Span)
	if err == nil {
		err = checkCompared(t)
	}
	if err != nil {
		return err
	}
	size := t.Size()
	if w.byNIC(rank, to.off, size) {
		w.compareAndSwapNIC(to, origin, compare, result)
		return nil
	}
	if w.atomicsByMessage(to) {
		w.sendCAS(rank, to.off, origin, compare, result, size)
		return nil
	}
	return w.compareAndSwap(to, origin, compare, result, size)
}

// compareAndSwap is CompareAndSwap for an element of 1, 2, 4 or 8 bytes that is
// direct or reached by copies.
func (w *Win) compareAndSwap(to location, origin, compare, result unsafe.Pointer, size int) *errs.Error {
	off := uint64(to.off)
	if size >= 4 && w.byCPU(to, off, size) {
		op.AtomicCAS(size, to.addr, compare, origin, result)
		return nil
	}
	b := batches.Get().(*batch)
	defer batches.Put(b)
	runs := b.runs[:1]
	runs[0] = fabric.Run{Addr: off, N: size}
	lock, j := w.acc[to.rank], w.journals[to.rank]
	lock.lock()
	defer lock.unlock()
	values := unsafe.Pointer(&j.data)
	if err := w.readRuns(to, runs, values, b); err != nil {
		return err
	}
	same := string(engine.Bytes(values, size)) == string(engine.Bytes(compare, size))
	copy(engine.Bytes(result, size), engine.Bytes(values, size))
	if !same || string(engine.Bytes(origin, size)) == string(engine.Bytes(values, size)) {
		return nil
	}
	copy(engine.Bytes(values, size), engine.Bytes(origin, size))
	j.setRuns(runs)
	return j.commit(func() *errs.Error { return w.writeRuns(to, runs, values, b) })
}

// CheckCompareAndSwap returns the error that a CompareAndSwap has whenever it is done, to a rank of the window.
func (w *Win) CheckCompareAndSwap(t *dtype.Type, rank, disp int) *errs.Error {
	if e := w.checkPlace(TargetSpec{Rank: rank, Disp: disp, Count: 1, Type: t}, t.Size(), t.Span); e != nil {
		return e
	}
	return checkCompared(t)
}

func checkCompared(t *dtype.Type) *errs.Error {
	if !comparable(t) {
		return errs.New(errs.Type, "Compare_and_swap takes integer, logical and byte types, not %s", t.Name())
	}
	return nil
}

// comparable reports whether MPI allows Compare_and_swap on t.
func comparable(t *dtype.Type) bool {
	return t.IsPredefined() && t.Size() <= 8 && (op.Bor.Valid(t.Kind()) || op.Lor.Valid(t.Kind()))
}

// sendAcc sends accumulates as messages. Tag is the kind, the operation and the
// number of runs at the head of the payload (see runs.go), Aux the size of an
// element, Src the bytes of elements, B the token of the fetch (0: none), Len the
// offset in the fetch at which the previous values belong. The operands follow the
// runs.
func (w *Win) sendAcc(fe *fetch, a update, add func(b *batch), to location) *errs.Error {
	peer := w.World[to.rank]
	limit := limits{runs: sys.MaxRuns, bytes: w.rma.eng.MaxShort(peer), perRun: runBytes, unit: a.size}
	b := newBatch(limit, func(from, n int, runs []fabric.Run) *errs.Error {
		h := w.header(fabric.KindAcc)
		h.Tag, h.Aux, h.Src = int32(a.kind)|int32(a.f)<<8|int32(len(runs))<<16, uint32(a.size), int32(n)
		h.Len = uint64(from)
		payload := append(make([]byte, 0, len(runs)*runBytes+n), runsAsBytes(runs)...)
		if a.in != nil {
			fault := sys.Touch(func() { payload = append(payload, engine.Bytes(unsafe.Add(a.in, from), n)...) })
			if fault != nil {
				return errs.New(errs.Buffer, "an accumulate on rank %d of the window: %v", to.rank, fault)
			}
		}
		if fe != nil {
			h.B = fe.token
			w.rma.eng.Send(peer, &h, payload, w, nil)
		} else {
			_ = w.ask(to.rank, &h, payload, nil) // the payload is this process's, it can't fault
		}
		return nil
	})
	add(b)
	err := b.end()
	if err != nil && fe != nil {
		fe.cancel()
	}
	return err
}

func (m *RMA) onAcc(src int, h *fabric.Header, payload []byte) {
	w := m.window(h.Ctx)
	a := update{f: op.Op(h.Tag >> 8 & 0xff), kind: dtype.Kind(h.Tag & 0xff), size: int(h.Aux)}
	n := int(h.Src)
	class := uint32(errs.RMARange)
	var old []byte
	if w == nil {
		class = uint32(errs.Win)
	} else if n >= 0 && n <= m.eng.MaxShort(src) && a.f.Valid(a.kind) && a.size == a.kind.Size() && n%a.size == 0 {
		runs, operands, ok := w.runsIn(payload, int(h.Tag>>16), n)
		for _, r := range runs {
			ok = ok && r.N%a.size == 0
		}
		if ok && (a.f == op.NoOp || len(operands) == n) {
			if a.f != op.NoOp {
				a.in = unsafe.Pointer(unsafe.SliceData(operands))
			}
			if h.B != 0 {
				old = make([]byte, n)
				a.out = unsafe.Pointer(unsafe.SliceData(old))
			}
			if sys.Touch(func() { class = uint32(w.serve(a, runs)) }) != nil {
				class = uint32(errs.Buffer)
			}
		}
	}
	if h.B == 0 {
		m.answer(src, w, &fabric.Header{Kind: fabric.KindAck, Gen: h.Gen, Ctx: h.Ctx, Aux: class})
		return
	}
	if class != 0 {
		old = nil
	}
	m.eng.Send(src, &fabric.Header{Kind: fabric.KindGetData, Gen: h.Gen, Ctx: h.Ctx, A: h.B, Aux: class, Len: h.Len}, old, nil, nil)
}

// serve applies a to runs of this process's part, which have been checked.
func (w *Win) serve(a update, runs []fabric.Run) errs.Class {
	var b *batch
	b = newBatch(a.limits(), func(from, _ int, runs []fabric.Run) *errs.Error {
		// In a dynamic window an offset is an address: the distance of a run from
		// this place is the difference of their addresses.
		p, err := w.at(w.Rank, int(runs[0].Addr), runs[0].N)
		if err != nil {
			return err
		}
		return w.combine(p, runs, a.from(from), b)
	})
	for _, r := range runs {
		b.add(int(r.Addr), r.N)
	}
	if err := b.end(); err != nil {
		return err.Class
	}
	return 0
}

func (w *Win) sendCAS(rank, off int, origin, compare, result unsafe.Pointer, size int) {
	data := append(append([]byte(nil), engine.Bytes(compare, size)...), engine.Bytes(origin, size)...)
	f := w.rma.fetchInto(w, rank, result, size, func() {})
	h := w.header(fabric.KindCAS)
	h.A, h.B, h.Aux = uint64(off), f.token, uint32(size)
	w.rma.eng.Send(w.World[rank], &h, data, w, nil)
}

func (m *RMA) onCAS(src int, h *fabric.Header, payload []byte) {
	w := m.window(h.Ctx)
	size := int(h.Aux)
	reply := fabric.Header{Kind: fabric.KindGetData, Gen: h.Gen, Ctx: h.Ctx, A: h.B}
	if w == nil || (size != 1 && size != 2 && size != 4 && size != 8) || len(payload) != 2*size || w.inside(h.A, uint64(size)) == nil {
		reply.Aux = uint32(errs.RMARange)
		m.eng.Send(src, &reply, nil, nil, nil)
		return
	}
	old := make([]byte, size)
	at, err := w.at(w.Rank, int(h.A), size)
	var fault error
	if err == nil {
		fault = sys.Touch(func() {
			err = w.compareAndSwap(at, unsafe.Pointer(&payload[size]), unsafe.Pointer(&payload[0]), unsafe.Pointer(&old[0]), size)
		})
	}
	if fault != nil {
		err = errs.New(errs.Buffer, "%v", fault)
	}
	if err != nil {
		reply.Aux, old = uint32(err.Class), nil
	}
	m.eng.Send(src, &reply, old, nil, nil)
}

// HotAcc combines n elements at to, in a target's part that every rank of the window
// maps; with out it fetches too. The shim has checked bounds and epoch. It returns
// false if Accumulate has to do it, or to report why it can't.
func HotAcc(to unsafe.Pointer, f op.Op, kind dtype.Kind, size int, in, out unsafe.Pointer, n int) bool {
	if !op.Atomic(kind) || !f.Valid(kind) || uintptr(to)%uintptr(size) != 0 {
		return false
	}
	f.AtomicApply(kind, to, in, out, n)
	return true
}

// HotCAS is CompareAndSwap, likewise.
func HotCAS(to unsafe.Pointer, size int, origin, compare, result unsafe.Pointer) bool {
	if size != 4 && size != 8 || uintptr(to)%uintptr(size) != 0 {
		return false
	}
	op.AtomicCAS(size, to, compare, origin, result)
	return true
}
