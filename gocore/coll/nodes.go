package coll

import (
	"unsafe"

	"gormapy/gocore/p2p"
)

// nodes is how the ranks of a communicator lie on nodes, whose ranks share memory. A
// communicator has it only if its ranks are on several nodes, and some of them on the same
// one. See "Several nodes" in the package's comment.
type nodes struct {
	ranks [][]int // of each node, ascending; the nodes are in the order of their first ranks
	of    []int   // the node of each rank
	at    []int   // the index of each rank in its node
	mine  int     // this rank's node
	least int     // number of ranks of the smallest node
	most  int     // and of the largest
	// contiguous: the ranks of each node follow each other, so that the results of nodes can
	// be combined in the order of the ranks.
	contiguous bool
}

// Divide tells the communicator on which node each of its ranks is. All its ranks call it
// with the same, before any of them calls a collective.
func (c *Comm) Divide(places []int) {
	d := &nodes{of: make([]int, len(places)), at: make([]int, len(places)), least: len(places), contiguous: true}
	index := map[int]int{}
	for r, place := range places {
		i, seen := index[place]
		if !seen {
			i = len(d.ranks)
			index[place] = i
			d.ranks = append(d.ranks, nil)
		}
		d.contiguous = d.contiguous && i == len(d.ranks)-1
		d.of[r], d.at[r] = i, len(d.ranks[i])
		d.ranks[i] = append(d.ranks[i], r)
	}
	for _, ranks := range d.ranks {
		d.least, d.most = min(d.least, len(ranks)), max(d.most, len(ranks))
	}
	if len(d.ranks) == 1 || len(d.ranks) == len(places) {
		return // flat algorithms are as good
	}
	d.mine = d.of[c.Rank]
	c.nodes = d
}

// near returns the ranks of this rank's node.
func (d *nodes) near() []int { return d.ranks[d.mine] }

// leader returns the rank that communicates for node i in a call without a root.
func (d *nodes) leader(i int) int { return d.ranks[i][0] }

// leaderFor returns the rank that communicates for node i in a call with a root, which is
// the leader of its own node.
func (d *nodes) leaderFor(i, root int) int {
	if d.of[root] == i {
		return root
	}
	return d.leader(i)
}

// far returns the number of ranks on other nodes.
func (d *nodes) far() int { return len(d.of) - len(d.near()) }

// folds reports whether nodes can fold their operands before they combine the results.
func (d *nodes) folds(commutative bool) bool { return d != nil && (commutative || d.contiguous) }

// stages starts a collective with these steps.
func (c *Comm) stages(steps ...func(o *Op)) *Op {
	return c.newOp(func(o *Op, k int) bool {
		if k == len(steps) {
			return true
		}
		steps[k](o)
		return false
	})
}

// repeating starts a collective with these steps, each of which is repeated as long as it
// returns true.
func (c *Comm) repeating(steps ...func(o *Op) (again bool)) *Op {
	at := 0
	return c.newOp(func(o *Op, _ int) bool {
		if at == len(steps) {
			return true
		}
		if !steps[at](o) {
			at++
		}
		return false
	})
}

// once makes a step that is not repeated.
func once(step func(o *Op)) func(o *Op) bool {
	return func(o *Op) bool {
		step(o)
		return false
	}
}

// branches returns the parent, -1 if there is none, and the children of i in a binomial tree
// of 0 to n-1 with root 0, the child with the largest subtree first. The parent of i is i
// without its lowest bit; the subtree of child i+d is i+d to i+2d-1.
func branches(i, n int) (parent int, children []int) {
	low := i & -i
	parent = i - low
	if i == 0 {
		parent = -1
		for low = 1; low < n; low <<= 1 {
		}
	}
	for d := low >> 1; d > 0; d >>= 1 {
		if i+d < n {
			children = append(children, i+d)
		}
	}
	return parent, children
}

// tree returns this rank's parent, -1 if it is the root, and its children in the tree of a
// broadcast: a binomial tree of the ranks or, if they are on several nodes, one of the
// leaders and one in each node. The children on other nodes come first.
func (c *Comm) tree(root int) (parent int, children []int) {
	d := c.nodes
	if d == nil {
		up, down := branches((c.Rank-root+c.Size)%c.Size, c.Size)
		return relative(up, down, func(i int) int { return (i + root) % c.Size })
	}
	near, lead := d.near(), d.leaderFor(d.mine, root)
	// In the node the leader changes places with the first rank.
	member := func(i int) int {
		switch i {
		case 0:
			return lead
		case d.at[lead]:
			return near[0]
		}
		return near[i]
	}
	me := d.at[c.Rank]
	switch c.Rank {
	case lead:
		me = 0
	case near[0]:
		me = d.at[lead]
	}
	up, down := branches(me, len(near))
	parent, children = relative(up, down, member)
	if c.Rank != lead {
		return parent, children
	}
	n, first := len(d.ranks), d.of[root]
	up, down = branches((d.mine-first+n)%n, n)
	parent, far := relative(up, down, func(i int) int { return d.leaderFor((i+first)%n, root) })
	return parent, append(far, children...)
}

// relative translates parent and children to ranks.
func relative(parent int, children []int, rank func(i int) int) (int, []int) {
	for k, i := range children {
		children[k] = rank(i)
	}
	if parent >= 0 {
		parent = rank(parent)
	}
	return parent, children
}

// others calls f with all of these ranks but this one, from the next one on, so that they
// do not all send to the same one.
func (c *Comm) others(ranks []int, me int, f func(i, rank int)) {
	for d := 1; d < len(ranks); d++ {
		i := (me + d) % len(ranks)
		f(i, ranks[i])
	}
}

// block is the parts of a node's ranks one after the other: in place if they are so in the
// buffer, else packed in temporary memory.
type block struct {
	p2p.Buf
	packed bool
}

// block returns the block of these ranks, whose memory is not packed yet.
func (o *Op) block(all *Vec, ranks []int) block {
	adjacent, next, bytes := all.Type.Dense(), 0, 0
	b := p2p.Buf{Addr: all.Addr, Type: all.Type}
	for _, r := range ranks {
		n := all.Counts[r]
		if bytes += n * all.Type.Size(); n == 0 {
			continue
		}
		if b.Count == 0 {
			b.Addr = all.part(r).Addr
		} else {
			adjacent = adjacent && all.Displs[r] == next
		}
		next = all.Displs[r] + n
		b.Count += n
	}
	if adjacent {
		return block{Buf: b}
	}
	return block{raw(o.temp(bytes), bytes), true}
}

// gather packs the ranks' parts.
func (b *block) gather(all *Vec, ranks []int) {
	at := 0
	for _, r := range ranks {
		if part := all.part(r); b.packed && part.Bytes() > 0 {
			pack(b.bytes()[at:at+part.Bytes()], part)
			at += part.Bytes()
		}
	}
}

// scatter unpacks the ranks' parts, but for that of a rank whose part is there.
func (b *block) scatter(all *Vec, ranks []int, there int) {
	at := 0
	for _, r := range ranks {
		if part := all.part(r); b.packed && part.Bytes() > 0 {
			if r != there {
				part.Type.Unpack(part.Addr, b.bytes()[at:at+part.Bytes()], part.Count)
			}
			at += part.Bytes()
		}
	}
}

// bytes returns the memory of a buffer of bytes.
func (b *block) bytes() []byte { return unsafe.Slice((*byte)(b.Addr), b.Count) }
