package coll

import (
	"unsafe"

	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// splitFrom is the size in bytes from which a reduction is divided among the ranks, each
// of which reduces a slice.
const splitFrom = 32 << 10

// Reduce starts a reduction to root. recv is significant at root only.
func (c *Comm) Reduce(send p2p.Buf, recv *p2p.Buf, f op.Op, root int) *Op {
	switch {
	case !c.nodes.folds(f.Commutative()):
	case send.Bytes() < splitFrom:
		return c.reduceByNodes(send, recv, f, root)
	case c.nodes.foldsLong(f.Commutative(), send.Bytes()):
		return c.reduceLongByNodes(send, recv, f, root)
	}
	var e elements
	var parts []unsafe.Pointer
	split := send.Bytes() >= splitFrom && c.Size > 2
	return c.newOp(func(o *Op, k int) bool {
		switch {
		case k == 0:
			e = o.operand(send, f)
			if split {
				parts = o.scatterSlices(&e)
				return false
			}
			if c.Rank != root {
				o.send(raw(e.p, e.bytes()), root)
				return false
			}
			parts = make([]unsafe.Pointer, c.Size)
			for i := range c.Size {
				if parts[i] = e.p; i != root {
					parts[i] = o.temp(e.bytes())
					o.recv(raw(parts[i], e.bytes()), i)
				}
			}
			return false
		case k == 1 && split:
			o.foldSlices(&e, parts)
			if c.Rank != root {
				off, n := e.slice(c.Rank, c.Size)
				o.send(raw(unsafe.Add(e.p, off), n), root)
				return false
			}
			for i := range c.Size {
				if i != root {
					off, n := e.slice(i, c.Size)
					o.recv(raw(unsafe.Add(e.p, off), n), i)
				}
			}
			return false
		}
		if c.Rank == root {
			if !split {
				e.p = foldAll(&e, parts)
			}
			e.store(*recv)
		}
		return true
	})
}

// Allreduce starts a reduction whose result every rank receives. All ranks fold in
// the same order, so all have the same bits.
func (c *Comm) Allreduce(send, recv p2p.Buf, f op.Op) *Op {
	switch {
	case !c.nodes.folds(f.Commutative()):
	case send.Bytes() < splitFrom:
		return c.allreduceByNodes(send, recv, f)
	case c.nodes.foldsLong(f.Commutative(), send.Bytes()):
		return c.allreduceLongByNodes(send, recv, f)
	}
	if send.Bytes() >= splitFrom && c.Size > 1 {
		return c.allreduceSplit(send, recv, f)
	}
	var e elements
	var parts []unsafe.Pointer
	return c.newOp(func(o *Op, k int) bool {
		if k == 0 {
			e = o.operand(send, f)
			parts = make([]unsafe.Pointer, c.Size)
			parts[c.Rank] = e.p
			n := e.bytes()
			o.exchange(func(i int) { parts[i] = o.temp(n); o.recv(raw(parts[i], n), i) },
				func(i int) { o.send(raw(e.p, n), i) })
			return false
		}
		e.p = foldAll(&e, parts)
		e.store(recv)
		return true
	})
}

// allreduceSplit is Allreduce of long data: every rank reduces one slice, straight from
// the others' send buffers, and then fetches all slices into the receive buffer. A
// buffer that is not dense is packed first, or unpacked last.
func (c *Comm) allreduceSplit(send, recv p2p.Buf, f op.Op) *Op {
	var e elements // the own operand
	var dst unsafe.Pointer
	parts := make([]unsafe.Pointer, c.Size)
	return c.newOp(func(o *Op, k int) bool {
		switch k {
		case 0:
			if send.Type.Dense() {
				e = elements{p: send.Addr, n: send.Count * send.Type.Elems(), kind: send.Type.Kind(), size: send.Type.ElemSize(), op: f}
			} else {
				e = o.operand(send, f)
			}
			if dst = recv.Addr; !recv.Type.Dense() {
				dst = o.temp(e.bytes())
			}
			off, n := e.slice(c.Rank, c.Size)
			if parts[c.Rank] = unsafe.Add(e.p, off); e.p == dst { // in place: folding overwrites it
				parts[c.Rank] = o.temp(n)
				copyLocal(raw(parts[c.Rank], n), raw(unsafe.Add(e.p, off), n))
			}
			o.exchange(func(i int) { parts[i] = o.temp(n); o.recv(raw(parts[i], n), i) },
				func(i int) { off, n := e.slice(i, c.Size); o.send(raw(unsafe.Add(e.p, off), n), i) })
			return false
		case 1:
			off, n := e.slice(c.Rank, c.Size)
			own := raw(unsafe.Add(dst, off), n)
			f.Fold(e.kind, own.Addr, parts, n/max(e.size, 1))
			o.exchange(func(i int) { off, n := e.slice(i, c.Size); o.recv(raw(unsafe.Add(dst, off), n), i) },
				func(i int) { o.send(own, i) })
			return false
		}
		if !recv.Type.Dense() {
			result := elements{p: dst, n: e.n, kind: e.kind, size: e.size, op: f}
			result.store(recv)
		}
		return true
	})
}

// scatterSlices sends each rank its slice of the operand. It returns the memory into
// which it receives the own slice of all operands.
func (o *Op) scatterSlices(e *elements) []unsafe.Pointer {
	c := o.c
	parts := make([]unsafe.Pointer, c.Size)
	off, n := e.slice(c.Rank, c.Size)
	// The own slice is folded elsewhere, since peers still read the operand.
	parts[c.Rank] = o.temp(n)
	copyLocal(raw(parts[c.Rank], n), raw(unsafe.Add(e.p, off), n))
	o.exchange(func(i int) { parts[i] = o.temp(n); o.recv(raw(parts[i], n), i) },
		func(i int) { off, n := e.slice(i, c.Size); o.send(raw(unsafe.Add(e.p, off), n), i) })
	return parts
}

func (o *Op) foldSlices(e *elements, parts []unsafe.Pointer) {
	off, n := e.slice(o.c.Rank, o.c.Size)
	part := elements{n: n / max(e.size, 1), kind: e.kind, size: e.size, op: e.op}
	copyLocal(raw(unsafe.Add(e.p, off), n), raw(foldAll(&part, parts), n))
}

// foldAll folds the parts of all ranks in rank order and returns the result, which is
// in the memory of the last part.
func foldAll(e *elements, parts []unsafe.Pointer) unsafe.Pointer {
	acc := parts[len(parts)-1]
	e.op.Fold(e.kind, acc, parts, e.n)
	return acc
}

// ReduceScatterBlock starts a reduction of which rank i receives the i-th of Size
// equal blocks. send has Size blocks of recv.Count items.
func (c *Comm) ReduceScatterBlock(send p2p.Buf, recv p2p.Buf, f op.Op) *Op {
	if c.nodes.foldsLong(f.Commutative(), send.Bytes()) {
		return c.reduceScatterByNodes(send, recv, f)
	}
	var e elements
	parts := make([]unsafe.Pointer, c.Size)
	return c.newOp(func(o *Op, k int) bool {
		if k == 0 {
			all := o.operand(send, f)
			e = elements{n: all.n / c.Size, kind: all.kind, size: all.size, op: f}
			n := e.bytes()
			parts[c.Rank] = o.temp(n)
			copyLocal(raw(parts[c.Rank], n), raw(unsafe.Add(all.p, c.Rank*n), n))
			o.exchange(func(i int) { parts[i] = o.temp(n); o.recv(raw(parts[i], n), i) },
				func(i int) { o.send(raw(unsafe.Add(all.p, i*n), n), i) })
			return false
		}
		e.p = foldAll(&e, parts)
		e.store(recv)
		return true
	})
}

// Scan starts an inclusive (or, with exclusive, an exclusive) prefix reduction.
func (c *Comm) Scan(send, recv p2p.Buf, f op.Op, exclusive bool) *Op {
	switch {
	case c.Size <= 4 && send.Bytes() < splitFrom:
	case c.nodes.folds(false):
		return c.scanByNodes(send, recv, f, exclusive)
	default:
		return c.scanDoubling(send, recv, f, exclusive)
	}
	var e elements
	parts := make([]unsafe.Pointer, c.Rank+1)
	return c.newOp(func(o *Op, k int) bool {
		if k == 0 {
			e = o.operand(send, f)
			n := e.bytes()
			for i := range c.Rank {
				parts[i] = o.temp(n)
				o.recv(raw(parts[i], n), i)
			}
			for i := c.Rank + 1; i < c.Size; i++ {
				o.send(raw(e.p, n), i)
			}
			parts[c.Rank] = o.temp(n)
			copyLocal(raw(parts[c.Rank], n), raw(e.p, n))
			return false
		}
		if exclusive {
			parts = parts[:c.Rank]
		}
		if len(parts) > 0 {
			e.p = foldAll(&e, parts)
			e.store(recv)
		}
		return true
	})
}

// scanDoubling is Scan by recursive doubling.
func (c *Comm) scanDoubling(send, recv p2p.Buf, f op.Op, exclusive bool) *Op {
	var d doubling
	all := make([]int, c.Size)
	for i := range all {
		all[i] = i
	}
	return c.repeating(once(func(o *Op) {
		e := o.operand(send, f)
		d.begin(o, &e, all, c.Rank, !exclusive)
	}), d.step, once(func(*Op) {
		if d.before.p != nil {
			d.before.store(recv)
		}
	}))
}

// doubling is a prefix reduction of some ranks by recursive doubling: a rank exchanges partial
// results with those whose indices differ from its own in one bit. After step k it has the
// partial result of the 2^(k+1) ranks that agree with it in the higher bits, and that of those
// among them which come before it. In the last step only the upper ones need anything.
type doubling struct {
	before elements // result of the ranks before this one, inclusive: and its own; p is nil if there are none

	group   elements // partial result of the own group
	arrived unsafe.Pointer
	out     [2]unsafe.Pointer // copies of group for peers to read, used alternately
	ranks   []int
	me, k   int
}

// begin prepares the reduction of e. me is this rank's index.
func (d *doubling) begin(o *Op, e *elements, ranks []int, me int, inclusive bool) {
	d.ranks, d.me, d.group, d.before = ranks, me, *e, *e
	d.group.p, d.arrived, d.out[0], d.out[1] = o.like(e), o.like(e), o.like(e), o.like(e)
	copyLocal(d.group.raw(), e.raw())
	if d.before.p = nil; inclusive {
		d.keep(o, e.p)
	}
}

// keep makes the elements at p those before this rank.
func (d *doubling) keep(o *Op, p unsafe.Pointer) {
	d.before.p = o.like(&d.before)
	copyLocal(d.before.raw(), raw(p, d.before.bytes()))
}

// step is a repeated step of a collective.
func (d *doubling) step(o *Op) (again bool) {
	e, n := &d.group, len(d.ranks)
	last := 2<<d.k >= n
	if p := d.me ^ 1<<d.k>>1; d.k > 0 && p < n && (1<<d.k < n || p < d.me) {
		if p < d.me { // inout = in op inout keeps the lower ranks on the left
			if d.before.p != nil {
				e.op.Apply(e.kind, d.before.p, d.arrived, e.n)
			} else {
				d.keep(o, d.arrived)
			}
			e.op.Apply(e.kind, e.p, d.arrived, e.n)
		} else {
			e.op.Apply(e.kind, d.arrived, e.p, e.n)
			e.p, d.arrived = d.arrived, e.p
		}
	}
	if 1<<d.k >= n {
		return false
	}
	if p := d.me ^ 1<<d.k; p < n {
		if !last || p < d.me {
			o.recv(raw(d.arrived, e.bytes()), d.ranks[p])
		}
		if !last || p > d.me {
			mine := raw(d.out[d.k&1], e.bytes())
			copyLocal(mine, e.raw())
			o.send(mine, d.ranks[p])
		}
	}
	d.k++
	return true
}
