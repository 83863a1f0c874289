package coll

import (
	"unsafe"

	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// sliceBytes is the least that a rank folds for its node in a long reduction, before a further
// rank folds, too.
const sliceBytes = 128 << 10

// slices returns how many ranks of each node fold a slice of a long reduction.
func (d *nodes) slices(bytes int) int { return min(d.least, bytes/sliceBytes+1) }

// foldsLong is folds for so many bytes. If one node has too few ranks for the slices that
// the others could fold, these would bring whole operands together at few of their ranks.
func (d *nodes) foldsLong(commutative bool, bytes int) bool {
	return d.folds(commutative) && 2*d.least >= min(d.most, bytes/sliceBytes+1)
}

// longReduction is a reduction of long data by nodes. A few ranks of each node fold a slice of
// its operands each (slices). Then the ranks of all nodes with the same slice divide it among
// themselves, or among some nodes, the owners; each folds what it owns. What crosses the
// network does not grow with the number of ranks of a node.
type longReduction struct {
	c      *Comm
	e      elements // the own operand
	result elements // as long; of it this rank has at first its slice
	slices int
	owners []int // nodes
	parts  []unsafe.Pointer
}

// owned returns what the i-th owner folds of slice j.
func (l *longReduction) owned(j, i int) elements {
	s := l.result.sub(j, l.slices)
	return s.sub(i, len(l.owners))
}

// folding returns the index of this rank's slice, false if it has none.
func (l *longReduction) folding() (j int, yes bool) {
	j = l.c.nodes.at[l.c.Rank]
	return j, j < l.slices
}

// inNode begins to bring the node's operands together.
func (l *longReduction) inNode(o *Op) {
	near := l.c.nodes.near()
	if j, yes := l.folding(); yes {
		own := l.e.sub(j, l.slices)
		l.parts = o.recvOperands(&own, near, j)
		if l.e.p == l.result.p { // in place: folding overwrites it
			l.parts[j] = o.like(&own)
			copyLocal(raw(l.parts[j], own.bytes()), own.raw())
		}
	}
	l.c.others(near, l.c.nodes.at[l.c.Rank], func(i, r int) {
		if i < l.slices {
			s := l.e.sub(i, l.slices)
			o.send(s.raw(), r)
		}
	})
}

// across folds the node's operands, and begins to bring the nodes' results together.
func (l *longReduction) across(o *Op) {
	j, yes := l.folding()
	if !yes {
		return
	}
	d := l.c.nodes
	slice := l.result.sub(j, l.slices)
	slice.op.Fold(slice.kind, slice.p, l.parts, slice.n)
	l.parts = nil
	for k, node := range l.owners {
		if s := l.owned(j, k); node == d.mine {
			l.parts = o.recvOperands(&s, d.peers(j), d.mine)
			l.parts[d.mine] = o.like(&s)
			copyLocal(raw(l.parts[d.mine], s.bytes()), s.raw())
		} else {
			o.send(s.raw(), d.ranks[node][j])
		}
	}
}

// fold folds what this rank owns.
func (l *longReduction) fold() (owned elements, yes bool) {
	if l.parts == nil {
		return owned, false
	}
	j, _ := l.folding()
	for k, node := range l.owners {
		if node == l.c.nodes.mine {
			owned = l.owned(j, k)
		}
	}
	owned.op.Fold(owned.kind, owned.p, l.parts, owned.n)
	return owned, true
}

// peers returns the j-th rank of each node.
func (d *nodes) peers(j int) []int {
	all := make([]int, len(d.ranks))
	for i := range all {
		all[i] = d.ranks[i][j]
	}
	return all
}

// allreduceLongByNodes is Allreduce of long data.
func (c *Comm) allreduceLongByNodes(send, recv p2p.Buf, f op.Op) *Op {
	d := c.nodes
	near := d.near()
	l := &longReduction{c: c, slices: d.slices(send.Bytes())}
	for i := range d.ranks {
		l.owners = append(l.owners, i)
	}
	me := d.at[c.Rank]
	return c.stages(func(o *Op) {
		if send.Type.Dense() {
			l.e = elements{p: send.Addr, n: send.Count * send.Type.Elems(), kind: send.Type.Kind(), size: send.Type.ElemSize(), op: f}
		} else {
			l.e = o.operand(send, f)
		}
		l.result = l.e
		if l.result.p = recv.Addr; !recv.Type.Dense() {
			l.result.p = o.like(&l.e)
		}
		l.inNode(o)
	}, l.across, func(o *Op) {
		owned, yes := l.fold()
		if !yes {
			return
		}
		for i := range d.ranks {
			if i != d.mine {
				s := l.owned(me, i)
				o.recv(s.raw(), d.ranks[i][me])
			}
		}
		c.others(d.peers(me), d.mine, func(_, r int) { o.send(owned.raw(), r) })
	}, func(o *Op) {
		c.others(near, me, func(i, r int) {
			if i < l.slices {
				s := l.result.sub(i, l.slices)
				o.recv(s.raw(), r)
			}
		})
		if me < l.slices {
			s := l.result.sub(me, l.slices)
			c.others(near, me, func(_, r int) { o.send(s.raw(), r) })
		}
	}, func(*Op) {
		if !recv.Type.Dense() {
			l.result.store(recv)
		}
	})
}

// reduceLongByNodes is Reduce of long data. Up to rootFolds nodes send their results to the
// root's node; of more, each folds a part.
func (c *Comm) reduceLongByNodes(send p2p.Buf, recv *p2p.Buf, f op.Op, root int) *Op {
	d := c.nodes
	l := &longReduction{c: c, slices: d.slices(send.Bytes()), owners: []int{d.of[root]}}
	if len(d.ranks) > rootFolds {
		l.owners = l.owners[:0]
		for i := range d.ranks {
			l.owners = append(l.owners, i)
		}
	}
	return c.stages(func(o *Op) {
		l.e = o.operand(send, f)
		l.result = l.e
		l.result.p = o.like(&l.e)
		l.inNode(o)
	}, l.across, func(o *Op) {
		owned, yes := l.fold()
		if c.Rank != root {
			if yes {
				o.send(owned.raw(), root)
			}
			return
		}
		for j := range l.slices {
			for k, node := range l.owners {
				if from := d.ranks[node][j]; from != root {
					s := l.owned(j, k)
					o.recv(s.raw(), from)
				}
			}
		}
	}, func(*Op) {
		if c.Rank == root {
			l.result.store(*recv)
		}
	})
}

// rootFolds is up to how many nodes the root's node folds the results of all in a long
// Reduce.
const rootFolds = 4
