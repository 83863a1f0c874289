package rma

import (
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// accPiece bounds what is read, combined and written under the accumulate lock
// at a time. MPI asks for atomic elements, not for atomic calls.
const accPiece = 32 << 10

// Accumulate combines origin into the target; with a result it returns what was
// there before (Get_accumulate). origin.Type may be nil for NO_OP.
func (w *Win) Accumulate(origin p2p.Buf, result *p2p.Buf, s Spot, f op.Op) *errs.Error {
	bytes := s.Count * s.Type.Size()
	if f != op.NoOp {
		bytes = origin.Bytes()
	}
	to, err := w.locate(s, bytes, s.Type.CellSpan) // padding included, which is written back
	if err != nil {
		return err
	}
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
	var operand unsafe.Pointer
	if f != op.NoOp {
		operand = cells(origin)
	}
	return w.accRuns(operand, result, s, f, to, kind)
}

// cells is b's elements as an array, as reductions and targets see them (pairs
// keep their padding).
func cells(b p2p.Buf) unsafe.Pointer {
	if b.Type.Dense() {
		return b.Addr
	}
	flat := make([]byte, max(b.Count*b.Type.Elems()*b.Type.ElemSize(), 1))
	b.Type.PackCells(flat, b.Addr, b.Count)
	return unsafe.Pointer(&flat[0])
}

// accRuns combines run by run, on the way that the target has.
func (w *Win) accRuns(operand unsafe.Pointer, result *p2p.Buf, s Spot, f op.Op, to place, kind dtype.Kind) (err *errs.Error) {
	size := s.Type.ElemSize()
	bytes := s.Count * s.Type.Elems() * size
	var old unsafe.Pointer
	finish := func() {}
	if result != nil {
		old = result.Addr
		if !result.Type.Dense() {
			flat := make([]byte, bytes)
			old = unsafe.Pointer(&flat[0])
			finish = func() { result.Type.UnpackCells(result.Addr, flat, result.Count) }
		}
	}
	byMessage := w.byMessage(to)
	var fe *fetch
	if byMessage && old != nil {
		fe = w.rma.fetchInto(w, s.Rank, old, bytes, finish)
	}
	from := 0
	s.Type.Cells(s.Count, func(at, elems int) bool {
		n := elems * size
		var in, out unsafe.Pointer
		if operand != nil {
			in = unsafe.Add(operand, from)
		}
		if old != nil {
			out = unsafe.Add(old, from)
		}
		if byMessage {
			w.sendAcc(fe, s.Rank, to.off+at, from, n, in, f, kind, size)
		} else {
			err = w.combine(to, at, n, in, out, f, kind, size)
		}
		from += n
		return err == nil
	})
	if err == nil && !byMessage {
		finish()
	}
	return err
}

// combine does one run: see "One arbiter" in the package comment.
func (w *Win) combine(to place, at, n int, in, out unsafe.Pointer, f op.Op, kind dtype.Kind, size int) *errs.Error {
	if op.Atomic(kind) && w.byCPU(to, at, size) {
		f.AtomicApply(kind, unsafe.Add(to.addr, at), in, out, n/size)
		return nil
	}
	rank := to.rank
	piece := max(accPiece/size, 1) * size
	var local []byte
	for done := 0; done < n; done += piece {
		m := min(piece, n-done)
		var inPart, outPart unsafe.Pointer
		if in != nil {
			inPart = unsafe.Add(in, done)
		}
		if out != nil {
			outPart = unsafe.Add(out, done)
		}
		if to.direct {
			w.acc[rank].lock()
			apply(f, kind, unsafe.Add(to.addr, at+done), inPart, outPart, m, size)
			w.acc[rank].unlock()
			continue
		}
		if local == nil {
			local = make([]byte, min(piece, n))
		}
		tmp := unsafe.Pointer(&local[0])
		w.acc[rank].lock()
		err := w.read("Accumulate", to, at+done, tmp, m)
		if err == nil {
			apply(f, kind, tmp, inPart, outPart, m, size)
			if f != op.NoOp {
				err = w.write("Accumulate", to, at+done, tmp, m)
			}
		}
		w.acc[rank].unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// byCPU tells whether elements of size bytes, from at on, are updated by CPU
// atomics.
func (w *Win) byCPU(to place, at, size int) bool {
	return to.direct && w.Desc.Target(to.rank).Flags&TargetAtomic != 0 && uintptr(unsafe.Add(to.addr, at))%uintptr(size) == 0
}

// apply saves the old values and combines, under the accumulate lock.
func apply(f op.Op, kind dtype.Kind, target, in, out unsafe.Pointer, bytes, size int) {
	if out != nil {
		fabric.Copy(out, target, bytes)
	}
	if f != op.NoOp && in != nil {
		f.Apply(kind, target, in, bytes/size)
	}
}

// CompareAndSwap replaces one element at the target by origin if it equals
// compare, and returns what was there.
func (w *Win) CompareAndSwap(origin, compare, result unsafe.Pointer, t *dtype.Type, rank, disp int) *errs.Error {
	to, err := w.locate(Spot{Rank: rank, Disp: disp, Count: 1, Type: t}, t.Size(), t.Span)
	if err != nil {
		return err
	}
	size := t.Size()
	if !comparable(t) {
		return errs.New(errs.Type, "Compare_and_swap takes integer, logical and byte types, not %s", t.Name())
	}
	switch {
	case w.byMessage(to):
		w.sendCAS(rank, to.off, origin, compare, result, size)
	case op.Atomic(t.Kind()) && w.byCPU(to, 0, size):
		op.AtomicCAS(size, to.addr, compare, origin, result)
	default:
		w.acc[rank].lock()
		defer w.acc[rank].unlock()
		var old [16]byte
		if err := w.read("Compare_and_swap", to, 0, unsafe.Pointer(&old), size); err != nil {
			return err
		}
		same := string(old[:size]) == string(engine.Bytes(compare, size))
		if same {
			if err := w.write("Compare_and_swap", to, 0, origin, size); err != nil {
				return err
			}
		}
		copy(engine.Bytes(result, size), old[:size])
	}
	return nil
}

// comparable tells whether MPI allows Compare_and_swap on t.
func comparable(t *dtype.Type) bool {
	return t.IsPredefined() && t.Size() <= 8 && (op.Bor.Valid(t.Kind()) || op.Lor.Valid(t.Kind()))
}

// Accumulates by message: Tag is the kind and the operation, Aux the size of an
// element, A the offset in the target's part, B the fetch's token (0: none),
// Len where in the fetch the old values belong.

// sendAcc sends n bytes of elements; from is where they are in the fetch.
func (w *Win) sendAcc(fe *fetch, rank, at, from, n int, operand unsafe.Pointer, f op.Op, kind dtype.Kind, size int) {
	to := w.World[rank]
	piece := w.rma.eng.MaxShort(to) / size * size
	for done := 0; done < n; done += piece {
		m := min(piece, n-done)
		h := w.header(fabric.KindAcc)
		h.Tag, h.Aux = int32(kind)|int32(f)<<8, uint32(size)
		h.A, h.Len = uint64(at+done), uint64(from+done)
		var data []byte
		if operand != nil {
			data = engine.Bytes(unsafe.Add(operand, done), m)
		} else {
			h.Src, data = int32(m), nil // NO_OP carries no data, only how much is asked for
		}
		if fe != nil {
			h.B = fe.token
		} else {
			w.expect(rank)
		}
		w.rma.eng.Post(to, &h, data, w, nil)
	}
}

func (m *RMA) onAcc(src int, h *fabric.Header, payload []byte) {
	w := m.window(h.Ctx)
	f, kind, size := op.Op(h.Tag>>8), dtype.Kind(h.Tag&0xff), int(h.Aux)
	n := len(payload)
	if f == op.NoOp {
		n = int(h.Src)
	}
	var class uint32
	var old []byte
	var p unsafe.Pointer
	if w != nil && size >= 1 && size <= 32 && n >= 0 && n%size == 0 && n <= m.eng.MaxShort(src) && f.Valid(kind) {
		p = w.inside(h.A, uint64(n))
	}
	switch {
	case w == nil:
		class = uint32(errs.Win)
	case p == nil:
		class = uint32(errs.RMARange)
	default:
		var in, out unsafe.Pointer
		if len(payload) > 0 {
			in = unsafe.Pointer(&payload[0])
		}
		if h.B != 0 {
			old = make([]byte, max(n, 1))
			out = unsafe.Pointer(&old[0])
		}
		if e := w.combine(place{rank: w.Rank, direct: true, addr: p}, 0, n, in, out, f, kind, size); e != nil {
			class = uint32(e.Class)
		}
	}
	if h.B == 0 {
		m.answer(src, w, &fabric.Header{Kind: fabric.KindAck, Gen: h.Gen, Ctx: h.Ctx, Aux: class})
		return
	}
	reply := fabric.Header{Kind: fabric.KindGetData, Gen: h.Gen, Ctx: h.Ctx, A: h.B, Aux: class, Len: h.Len}
	if class != 0 {
		old, n = nil, 0
	}
	m.eng.Post(src, &reply, old[:n], nil, nil)
}

func (w *Win) sendCAS(rank, off int, origin, compare, result unsafe.Pointer, size int) {
	f := w.rma.fetchInto(w, rank, result, size, func() {})
	h := w.header(fabric.KindCAS)
	h.A, h.B, h.Aux = uint64(off), f.token, uint32(size)
	data := append(append([]byte(nil), engine.Bytes(compare, size)...), engine.Bytes(origin, size)...)
	w.rma.eng.Post(w.World[rank], &h, data, w, nil)
}

func (m *RMA) onCAS(src int, h *fabric.Header, payload []byte) {
	w := m.window(h.Ctx)
	size := int(h.Aux)
	reply := fabric.Header{Kind: fabric.KindGetData, Gen: h.Gen, Ctx: h.Ctx, A: h.B}
	var p unsafe.Pointer
	if w != nil && size >= 1 && size <= 8 && len(payload) == 2*size {
		p = w.inside(h.A, uint64(size))
	}
	if p == nil {
		reply.Aux = uint32(errs.RMARange)
		m.eng.Post(src, &reply, nil, nil, nil)
		return
	}
	old := make([]byte, size)
	w.acc[w.Rank].lock()
	copy(old, engine.Bytes(p, size))
	if string(old) == string(payload[:size]) {
		copy(engine.Bytes(p, size), payload[size:])
	}
	w.acc[w.Rank].unlock()
	m.eng.Post(src, &reply, old, nil, nil)
}

// FastAcc combines n elements (with a result: fetches too) of a direct target
// in a segment; false: Accumulate finds out why.
func FastAcc(d *Desc, f op.Op, kind dtype.Kind, size int, in, out unsafe.Pointer, n, rank, disp int) bool {
	if !op.Atomic(kind) || !f.Valid(kind) {
		return false
	}
	to := fast(d, n*size, rank, disp)
	if to == nil || uintptr(to)%uintptr(size) != 0 || d.Target(rank).Flags&TargetAtomic == 0 {
		return false
	}
	f.AtomicApply(kind, to, in, out, n)
	return true
}

// FastCAS is CompareAndSwap on a direct target in a segment.
func FastCAS(d *Desc, size int, origin, compare, result unsafe.Pointer, rank, disp int) bool {
	if size != 4 && size != 8 {
		return false
	}
	to := fast(d, size, rank, disp)
	if to == nil || uintptr(to)%uintptr(size) != 0 || d.Target(rank).Flags&TargetAtomic == 0 {
		return false
	}
	op.AtomicCAS(size, to, compare, origin, result)
	return true
}
