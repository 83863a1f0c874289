package coll

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/workers"
)

// reduction is what the steps of a reduction know. A rank's own slice of its operand is read by itself alone.
type reduction struct {
	e                  elements       // of the operand, without its address
	own, slice, result unsafe.Pointer // this rank's operand, what it folds, and where the result is
	off, n             int            // this rank's slice of the operand, in bytes
	intoRecv           bool           // the result can be folded into the program's buffer
}

// reduction returns the steps of a reduction, as schedule does.
func (d *SingleCopyOp) reduction() []func() bool {
	if d.Kind == KindReduce && d.c.Size == 2 { // the root folds all: of two ranks, the other one's slice would cost a second wait
		if !d.isRoot() {
			return []func() bool{d.publish(&d.k, d.offer), d.leave(&d.k), d.wait(&d.k, true)}
		}
		return []func() bool{d.join(&d.k), d.read(&d.k, d.anyRank), then(func() {
			d.operand()
			d.into()
			d.foldAll(&d.reduced.e, d.reduced.result, d.reduced.own)
		}), d.leave(&d.k), then(d.store)}
	}
	first := []func() bool{d.publish(&d.k, d.offer), d.read(&d.k, d.anyRank), then(d.fold), d.leave(&d.k)}
	if d.Kind == KindReduceScatterBlock {
		return append(first, d.wait(&d.k, false), then(d.storeSlice))
	}
	second := append(first, d.publish(&d.k2, func() source { return d.source(d.reduced.slice, d.reduced.n) }))
	if !d.receives() {
		return append(second, d.leave(&d.k2), d.wait(&d.k2, true))
	}
	second = append(second, d.read(&d.k2, d.anyRank), then(d.collectSlices), d.leave(&d.k2))
	if d.Kind == KindAllreduce {
		second = append(second, d.wait(&d.k2, false))
	}
	return append(second, then(d.store))
}

// receives reports whether this rank has the result of a reduction.
func (d *SingleCopyOp) receives() bool { return d.Kind != KindReduce || d.isRoot() }

// operand prepares this rank's operand.
func (d *SingleCopyOp) operand() {
	r := &d.reduced
	*r = reduction{e: d.elements()}
	if d.Kind != KindReduce || d.c.Size > 2 {
		r.off, r.n = r.e.slice(d.c.Rank, d.c.Size)
	}
	r.intoRecv = d.receives() && d.Recv.Type.Dense() && d.Recv.Type.ElemSize()*d.Recv.Type.Elems() == d.Recv.Type.Size()
	r.own = d.Send.Addr
	if !d.Send.Type.Dense() || r.e.bytes() != d.Send.Bytes() {
		r.own = d.temp(r.e.bytes())
		d.Send.Type.PackElements(unsafe.Slice((*byte)(r.own), r.e.bytes()), d.Send.Addr, d.Send.Count)
	}
}

// offer returns where the others read this rank's operand.
func (d *SingleCopyOp) offer() source {
	d.operand()
	r := &d.reduced
	return d.source(d.exposed(r.own, r.e.bytes(), r.e.bytes(), r.off, r.n), r.e.bytes())
}

// into decides where the result is.
func (d *SingleCopyOp) into() {
	switch r := &d.reduced; {
	case r.intoRecv:
		r.result = d.Recv.Addr
	case d.receives():
		r.result = d.temp(r.e.bytes())
	}
}

// fold folds this rank's slice of all operands.
func (d *SingleCopyOp) fold() {
	r := &d.reduced
	if d.Kind == KindReduceScatterBlock {
		if r.slice = d.Recv.Addr; !r.intoRecv || d.SendInPlace {
			r.slice = d.temp(r.n)
		}
	} else {
		d.into()
		r.slice = d.sliceOf(r.result, r.off, r.n)
	}
	d.foldSlice(&r.e, r.slice, unsafe.Add(r.own, r.off), r.off, r.n)
}

// collectSlices reads the slices of the result that the others have folded.
func (d *SingleCopyOp) collectSlices() {
	r, me := &d.reduced, d.c.Rank
	for i := 1; i < d.c.Size; i++ {
		other := (me + i) % d.c.Size
		at, length := r.e.slice(other, d.c.Size)
		d.get(unsafe.Add(r.result, at), other, 0, length)
	}
	if mine := unsafe.Add(r.result, r.off); mine != r.slice {
		fabric.Copy(mine, r.slice, r.n)
	}
}

// store writes the result to the program's buffer, unless it was folded there.
func (d *SingleCopyOp) store() {
	if r := &d.reduced; !r.intoRecv && d.err == nil {
		all := r.e
		all.p = r.result
		all.store(d.Recv)
	}
}

// storeSlice does so with a rank's slice.
func (d *SingleCopyOp) storeSlice() {
	if r := &d.reduced; r.slice != d.Recv.Addr && d.err == nil {
		e := r.e
		e.p, e.n = r.slice, r.e.n/d.c.Size
		e.store(d.Recv)
	}
}

// sliceOf returns where this rank folds its slice of a result, which the others read: in the result itself, unless they
// can read it faster in a stage.
func (d *SingleCopyOp) sliceOf(result unsafe.Pointer, off, n int) unsafe.Pointer {
	var in unsafe.Pointer
	if result != nil {
		in = unsafe.Add(result, off)
	}
	unread := d.Kind == KindReduce && d.c.Rank == d.Root
	if !unread && (in == nil || d.c.eng.Share(in, n) == 0) && d.stages(n) {
		if s := d.stage(n); s != nil {
			return s
		}
	}
	if in == nil {
		in = d.temp(n)
	}
	return in
}

// foldPiece is how many bytes of an operand are folded at a time, so that they are
// still in the cache after they were copied.
const foldPiece = 64 << 10

// streamFrom is the size of a slice from which on its result goes past the caches: it would not stay there until the
// others read it.
const streamFrom = 4 << 20

// foldSlice folds n bytes at offset off of all operands into to. own is this rank's operand at that offset, which may be the
// same memory.
func (d *SingleCopyOp) foldSlice(e *elements, to, own unsafe.Pointer, off, n int) {
	d.copied(d.foldPart(e, to, own, off, n, n >= streamFrom))
}

// foldAll folds all operands into to at the root, likewise, by one thread or several: the other ranks wait for it.
func (d *SingleCopyOp) foldAll(e *elements, to, own unsafe.Pointer) {
	n := e.bytes()
	fold := func(at, m int) error {
		return d.foldPart(e, unsafe.Add(to, at), unsafe.Add(own, at), at, m, n >= streamFrom)
	}
	if d.c.eng.Divides(n, d.copying()) && workers.PieceBytes%e.size == 0 {
		d.copied(d.c.eng.Fastest(engine.FoldReduce, n, d.copying(), fold))
	} else {
		d.copied(fold(0, n))
	}
}

// foldPart folds n bytes at offset off of all operands, past the caches if stream is set. Several threads may call it at the
// same time.
func (d *SingleCopyOp) foldPart(e *elements, to, own unsafe.Pointer, off, n int, stream bool) error {
	c, fold := d.c, op.Op.Fold
	if stream {
		fold = op.Op.FoldStream
	}
	piece := foldPiece / e.size * e.size
	temps, parts := make([][]byte, c.Size), make([]unsafe.Pointer, c.Size)
	defer func() { pool.give(temps) }()
	for at := 0; at < n; at += piece {
		m := min(n-at, piece)
		for r := range parts {
			if r == c.Rank {
				parts[r] = unsafe.Add(own, at)
				continue
			}
			if parts[r] = d.mapped(r, off+at, m); parts[r] != nil {
				atom.Reads(parts[r], m)
				continue
			}
			if temps[r] == nil {
				temps[r] = pool.take(min(n, piece))
			}
			parts[r] = unsafe.Pointer(&temps[r][0])
			if err := d.copyFrom(r, off+at, parts[r], m); err != nil {
				return err
			}
		}
		atom.Writes(unsafe.Add(to, at), m)
		fold(e.op, e.kind, unsafe.Add(to, at), parts, m/e.size)
	}
	return nil
}
