package check

import "math/rand/v2"

// space is the memory of one rank, with the accesses to it that later ones may conflict with: a treap by address, in
// which each node knows how far the accesses below it reach.
type space struct {
	root  *node
	n     int
	swept int // number of accesses after the last sweep
}

type node struct {
	*access
	low, high   int64
	reach       int64 // the highest end in this subtree
	priority    uint32
	left, right *node
}

func (n *node) update() {
	n.reach = n.high
	for _, child := range []*node{n.left, n.right} {
		if child != nil {
			n.reach = max(n.reach, child.reach)
		}
	}
}

// add adds an access.
func (s *space) add(a *access) {
	n := &node{access: a, low: a.runs.start, high: a.runs.end(), priority: rand.Uint32()}
	n.update()
	below, above := split(s.root, n.low)
	s.root = merge(merge(below, n), above)
	s.n++
}

// split divides a tree into what begins before an address, and the rest.
func split(n *node, low int64) (below, above *node) {
	if n == nil {
		return nil, nil
	}
	if n.low < low {
		n.right, above = split(n.right, low)
		n.update()
		return n, above
	}
	below, n.left = split(n.left, low)
	n.update()
	return below, n
}

// merge joins two trees; all of a begins before b.
func merge(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		a.right = merge(a.right, b)
		a.update()
		return a
	}
	b.left = merge(a, b.left)
	b.update()
	return b
}

// over calls f for each access that may overlap the bytes from low to high, and removes it if f returns false.
func (s *space) over(low, high int64, f func(*access) bool) { s.root = s.visit(s.root, low, high, f) }

func (s *space) visit(n *node, low, high int64, f func(*access) bool) *node {
	if n == nil || n.reach <= low {
		return n
	}
	n.left = s.visit(n.left, low, high, f)
	stays := true
	if n.low < high {
		if n.high > low {
			stays = f(n.access)
		}
		n.right = s.visit(n.right, low, high, f)
	}
	if !stays {
		s.n--
		return merge(n.left, n.right)
	}
	n.update()
	return n
}

const lowest, highest = -1 << 62, 1 << 62

// keep removes all accesses for which f returns false.
func (s *space) keep(f func(*access) bool) { s.over(lowest, highest, f) }
