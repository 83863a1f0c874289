package coll

import (
	"unsafe"

	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// reduceScatterByNodes is ReduceScatterBlock. In each node some ranks fold the node's operands:
// the first one, or of long data several, each the blocks of the ranks whose indices in their
// nodes have the same remainder. These send the results to the node whose ranks get them, and
// those fold them and hand out the blocks.
func (c *Comm) reduceScatterByNodes(send p2p.Buf, recv p2p.Buf, f op.Op) *Op {
	d := c.nodes
	near, me := d.near(), d.at[c.Rank]
	classes := d.slices(send.Bytes())
	// blocks calls f with the ranks of a node that are of class j.
	blocks := func(node, j int, f func(r int)) {
		for i := j; i < len(d.ranks[node]); i += classes {
			f(d.ranks[node][i])
		}
	}
	count := func(node, j int) int { return (len(d.ranks[node]) - j + classes - 1) / classes }
	var all, block elements
	var parts, sums []unsafe.Pointer
	// of returns the elements at p for n ranks.
	of := func(p unsafe.Pointer, n int) elements {
		e := block
		e.p, e.n = p, n*block.n
		return e
	}
	// whole returns the elements at p for all ranks of class j.
	whole := func(p unsafe.Pointer, j int) elements {
		n := 0
		for i := range d.ranks {
			n += count(i, j)
		}
		return of(p, n)
	}
	begin := func(o *Op) {
		all = o.operand(send, f)
		block = elements{n: all.n / c.Size, kind: all.kind, size: all.size, op: f}
		n := block.bytes()
		class := make([]elements, classes)
		for j := range class {
			class[j] = whole(nil, j)
			class[j].p = o.like(&class[j])
			at := 0
			for i := range d.ranks {
				blocks(i, j, func(r int) {
					copyLocal(raw(unsafe.Add(class[j].p, at), n), raw(unsafe.Add(all.p, r*n), n))
					at += n
				})
			}
		}
		if me < classes {
			parts = o.recvOperands(&class[me], near, me)
		} else {
			block.p = o.like(&block)
			o.recv(block.raw(), near[me%classes])
		}
		c.others(near, me, func(j, r int) {
			if j < classes {
				o.send(class[j].raw(), r)
			}
		})
	}
	end := func(*Op) { block.store(recv) }
	if me >= classes {
		return c.stages(begin, end)
	}
	return c.stages(begin, func(o *Op) {
		sum := whole(nil, me)
		sum.p = foldAll(&sum, parts)
		own, at := elements{}, 0
		for i := range d.ranks {
			e := of(unsafe.Add(sum.p, at), count(i, me))
			if at += e.bytes(); i == d.mine {
				own = e
			} else {
				o.send(e.raw(), d.ranks[i][me])
			}
		}
		sums = o.recvOperands(&own, d.peers(me), d.mine)
	}, func(o *Op) {
		own := of(nil, count(d.mine, me))
		own.p = foldAll(&own, sums)
		at := 0
		blocks(d.mine, me, func(r int) {
			b := of(unsafe.Add(own.p, at), 1)
			if at += b.bytes(); r == c.Rank {
				block = b
			} else {
				o.send(b.raw(), r)
			}
		})
	}, end)
}

// scanByNodes is Scan of ranks that are contiguous in each node: each node scans, its last rank
// takes part in a scan of the nodes for it, and tells the others what the nodes before have.
func (c *Comm) scanByNodes(send, recv p2p.Buf, f op.Op, exclusive bool) *Op {
	d := c.nodes
	near, me := d.near(), d.at[c.Rank]
	last := len(near) - 1
	var e, before elements       // the own operand; the result of the ranks before this one in the node
	var earlier elements         // that of the nodes before this one
	var inside, between doubling // scans of the node, and of the nodes
	result := func(*Op) {
		switch {
		case d.mine > 0 && me > 0:
			f.Apply(e.kind, before.p, earlier.p, e.n)
		case d.mine > 0:
			before = earlier
		case me == 0 && exclusive:
			return // undefined
		}
		if exclusive {
			before.store(recv)
			return
		}
		if before.p != nil {
			f.Apply(e.kind, e.p, before.p, e.n)
		}
		e.store(recv)
	}
	begin := func(o *Op) {
		e = o.operand(send, f)
		inside.begin(o, &e, near, me, false)
	}
	if me != last {
		return c.repeating(once(begin), inside.step, once(func(o *Op) {
			if before = inside.before; d.mine > 0 {
				earlier = e
				earlier.p = o.like(&e)
				o.recv(earlier.raw(), near[last])
			}
		}), once(result))
	}
	return c.repeating(once(begin), inside.step, once(func(o *Op) {
		before = inside.before
		total := e
		total.p = o.like(&e)
		copyLocal(total.raw(), e.raw())
		if before.p != nil {
			f.Apply(e.kind, total.p, before.p, e.n)
		}
		lasts := make([]int, len(d.ranks))
		for i, ranks := range d.ranks {
			lasts[i] = ranks[len(ranks)-1]
		}
		between.begin(o, &total, lasts, d.mine, false)
	}), between.step, once(func(o *Op) {
		if earlier = between.before; d.mine > 0 {
			c.others(near, me, func(_, r int) { o.send(earlier.raw(), r) })
		}
	}), once(result))
}
