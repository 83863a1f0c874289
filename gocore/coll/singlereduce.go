package coll

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/workers"
)

// reduction returns the steps of a reduction. A rank's own slice of its operand is read by itself alone.
func (d *SingleCopyOp) reduction() []func() bool {
	c, me := d.c, d.c.Rank
	var k, k2 uint32
	number := func() uint32 { return k }
	e := d.elements()
	var own, slice, result unsafe.Pointer
	off, n := e.slice(me, c.Size)
	operand := func() {
		own = d.Send.Addr
		if !d.Send.Type.Dense() || e.bytes() != d.Send.Bytes() {
			own = d.temp(e.bytes())
			d.Send.Type.PackElements(unsafe.Slice((*byte)(own), e.bytes()), d.Send.Addr, d.Send.Count)
		}
	}
	offer := func() source {
		operand()
		return d.source(d.exposed(own, e.bytes(), e.bytes(), off, n), e.bytes())
	}
	receives := d.Kind != KindReduce || me == d.Root
	intoRecv := receives && d.Recv.Type.Dense() && d.Recv.Type.ElemSize()*d.Recv.Type.Elems() == d.Recv.Type.Size()
	into := func() {
		switch {
		case intoRecv:
			result = d.Recv.Addr
		case receives:
			result = d.temp(e.bytes())
		}
	}
	store := then(func() {
		if !intoRecv && d.err == nil {
			all := e
			all.p = result
			all.store(d.Recv)
		}
	})
	if d.Kind == KindReduce && c.Size == 2 { // the root folds all: of two ranks, the other one's slice would cost a second wait
		off, n = 0, 0
		if me != d.Root {
			return []func() bool{d.publish(&k, offer), d.leave(&k), d.wait(number, d.Root)}
		}
		return []func() bool{d.join(&k), d.read(&k, d.anyRank), then(func() {
			operand()
			into()
			d.foldAll(&e, result, own)
		}), d.leave(&k), store}
	}
	fold := func() {
		if d.Kind == KindReduceScatterBlock {
			if slice = d.Recv.Addr; !intoRecv || d.SendInPlace {
				slice = d.temp(n)
			}
		} else {
			into()
			slice = d.sliceOf(result, off, n)
		}
		d.foldSlice(&e, slice, unsafe.Add(own, off), off, n)
	}
	first := []func() bool{d.publish(&k, offer), d.read(&k, d.anyRank), then(fold), d.leave(&k)}
	if d.Kind == KindReduceScatterBlock {
		return append(first, d.wait(number, -1), then(func() {
			if slice != d.Recv.Addr && d.err == nil {
				part := elements{p: slice, n: e.n / c.Size, kind: e.kind, size: e.size, op: e.op}
				part.store(d.Recv)
			}
		}))
	}
	second := append(first, d.publish(&k2, func() source { return d.source(slice, n) }))
	if !receives {
		return append(second, d.leave(&k2), d.wait(func() uint32 { return k2 }, d.Root))
	}
	second = append(second, d.read(&k2, d.anyRank), then(func() {
		for i := 1; i < c.Size; i++ {
			r := (me + i) % c.Size
			at, length := e.slice(r, c.Size)
			d.get(unsafe.Add(result, at), r, 0, length)
		}
		if mine := unsafe.Add(result, off); mine != slice {
			fabric.Copy(mine, slice, n)
		}
	}), d.leave(&k2))
	if d.Kind == KindAllreduce {
		second = append(second, d.wait(func() uint32 { return k2 }, -1))
	}
	return append(second, store)
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
