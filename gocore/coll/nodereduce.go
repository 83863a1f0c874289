package coll

import (
	"unsafe"

	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// exchangeNodes is up to how many nodes the leaders exchange short partial results, each with
// each. Of more nodes they combine them along a tree.
const exchangeNodes = 8

// sub returns the i-th of n slices of the elements.
func (e *elements) sub(i, n int) elements {
	off, length := e.slice(i, n)
	s := *e
	s.p, s.n = unsafe.Add(e.p, off), length/max(e.size, 1)
	return s
}

func (e *elements) raw() p2p.Buf { return raw(e.p, e.bytes()) }

// like returns memory for as many elements.
func (o *Op) like(e *elements) unsafe.Pointer { return o.temp(e.bytes()) }

// recvOperands receives the elements that correspond to e from all these ranks but the me-th.
// It returns where, with e's own in its place.
func (o *Op) recvOperands(e *elements, ranks []int, me int) []unsafe.Pointer {
	parts := make([]unsafe.Pointer, len(ranks))
	parts[me] = e.p
	o.c.others(ranks, me, func(i, r int) {
		parts[i] = o.like(e)
		o.recv(raw(parts[i], e.bytes()), r)
	})
	return parts
}

// reduceByNodes is Reduce of short data: each leader folds its node's operands, the root those
// of the leaders.
func (c *Comm) reduceByNodes(send p2p.Buf, recv *p2p.Buf, f op.Op, root int) *Op {
	d := c.nodes
	lead, near := d.leaderFor(d.mine, root), d.near()
	var e elements
	var parts, sums []unsafe.Pointer
	if c.Rank != lead {
		return c.stages(func(o *Op) {
			e = o.operand(send, f)
			o.send(e.raw(), lead)
		})
	}
	steps := []func(o *Op){func(o *Op) {
		e = o.operand(send, f)
		parts = o.recvOperands(&e, near, d.at[c.Rank])
	}}
	if c.Rank != root {
		return c.stages(append(steps, func(o *Op) {
			e.p = foldAll(&e, parts)
			o.send(e.raw(), root)
		})...)
	}
	return c.stages(append(steps, func(o *Op) {
		e.p = foldAll(&e, parts)
		sums = o.recvOperands(&e, d.leaders(root), d.mine)
	}, func(o *Op) {
		e.p = foldAll(&e, sums)
		e.store(*recv)
	})...)
}

// leaders returns the leaders of all nodes in a call with this root.
func (d *nodes) leaders(root int) []int {
	all := make([]int, len(d.ranks))
	for i := range all {
		all[i] = d.leaderFor(i, root)
	}
	return all
}

// allreduceByNodes is Allreduce of short data: each leader folds its node's operands, the
// leaders combine their results, and pass on what they get. All fold in the same order.
func (c *Comm) allreduceByNodes(send, recv p2p.Buf, f op.Op) *Op {
	d := c.nodes
	near, lead := d.near(), d.leader(d.mine)
	var e elements
	if c.Rank != lead {
		var own elements
		return c.stages(func(o *Op) {
			own = o.operand(send, f)
			e = own
			e.p = o.like(&e)
			o.recv(e.raw(), lead)
			o.send(own.raw(), lead)
		}, func(o *Op) { e.store(recv) })
	}
	var parts []unsafe.Pointer
	begin := func(o *Op) {
		e = o.operand(send, f)
		parts = o.recvOperands(&e, near, 0)
	}
	pass := func(o *Op) {
		c.others(near, 0, func(_, r int) { o.send(e.raw(), r) })
		e.store(recv)
	}
	leaders := d.leaders(d.leader(0))
	if len(leaders) <= exchangeNodes {
		return c.stages(begin, func(o *Op) {
			e.p = foldAll(&e, parts)
			parts = o.recvOperands(&e, leaders, d.mine)
			c.others(leaders, d.mine, func(_, r int) { o.send(e.raw(), r) })
		}, func(o *Op) {
			e.p = foldAll(&e, parts)
			pass(o)
		})
	}
	parent, children := branches(d.mine, len(leaders))
	var below []int // ascending, as their nodes: the subtree of each begins where the one before ends
	below = append(below, lead)
	for i := len(children) - 1; i >= 0; i-- {
		below = append(below, leaders[children[i]])
	}
	steps := []func(o *Op){begin, func(o *Op) {
		e.p = foldAll(&e, parts)
		parts = o.recvOperands(&e, below, 0)
	}, func(o *Op) {
		e.p = foldAll(&e, parts)
		if parent >= 0 {
			o.send(e.raw(), leaders[parent])
			e.p = o.like(&e)
			o.recv(e.raw(), leaders[parent])
		}
	}, func(o *Op) {
		for i := len(below) - 1; i > 0; i-- {
			o.send(e.raw(), below[i])
		}
		pass(o)
	}}
	return c.stages(steps...)
}
