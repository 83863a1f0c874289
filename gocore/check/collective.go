package check

import (
	"fmt"
	"strings"

	"gormapy/gocore/check/events"
)

func (c *Checker) newCollective(m *comm, name string, root int) *collective {
	return &collective{comm: m, name: name, root: root, begun: map[int]clock{}, sites: map[int]*site{}, sources: map[int][]int64{}, left: len(m.ranks), first: -1}
}

// collective processes the begin or end of a collective call.
func (c *Checker) collective(t *thread, e *events.Event) {
	w := e.Words
	m := t.comms[w[0]]
	if m == nil {
		return
	}
	request, begins, root := w[1], w[2] == 0, int(w[3])
	if w[2] == 2 {
		t.inside = nil
		return
	}
	if !begins {
		if x := t.inside; x != nil && x.comm == m {
			t.inside = nil
			c.leave(t, x)
		}
		return
	}
	n := m.calls[t.number]
	m.calls[t.number]++
	x := m.open[n]
	if x == nil {
		x = c.newCollective(m, e.Text, root)
		x.first = t.number
		m.open[n] = x
	} else if x.name != e.Text || x.root != root {
		c.mismatch(t, x, e.Text, root, t.sites[e.Site])
	}
	x.begun[t.number], x.sites[t.number] = t.clock.clone(), t.sites[e.Site]
	if len(w) > 4 {
		x.sources[t.number] = w[4:]
	}
	if len(x.begun) == len(m.ranks) {
		delete(m.open, n)
	}
	if request != 0 {
		t.colls[request] = x
	} else {
		t.inside = x
	}
}

func (c *Checker) mismatch(t *thread, x *collective, name string, root int, at *site) {
	say := func(name string, root int) string {
		if root < 0 {
			return name
		}
		return fmt.Sprintf("%s with root %d", name, root)
	}
	one, other, said, against := t, c.ranks[x.first], say(name, root), say(x.name, x.root)
	second := x.sites[x.first]
	if by := c.anyThread(x.first); by != nil && by.number > one.number { // so that it is the same whichever came first
		one, other, said, against, at, second = by, t.rank, against, said, second, at
	}
	c.found(CollectiveMismatch, one, at, second, other, nil,
		fmt.Sprintf("rank %d calls %s, where rank %d calls %s", one.number, said, other.number, against))
}

// leave lets a thread that has completed a collective call know what the ranks knew whose data it has got.
func (c *Checker) leave(t *thread, x *collective) {
	if sources, some := x.sources[t.number]; some {
		for _, rank := range sources {
			t.clock.join(x.begun[int(rank)])
		}
		return
	}
	name := strings.TrimPrefix(x.name, "I") // Ibcast
	switch strings.ToLower(name) {
	case "bcast", "scatter", "scatterv":
		if x.root >= 0 { // it is not known in an intercommunicator
			t.clock.join(x.begun[x.root])
			return
		}
	case "gather", "gatherv", "reduce":
		if x.root >= 0 && x.root != t.number {
			return
		}
	case "scan", "exscan":
		for _, rank := range x.comm.ranks {
			if rank == t.number {
				return
			}
			t.clock.join(x.begun[rank])
		}
	}
	x.joinAll(t)
}

func (x *collective) joinAll(t *thread) {
	for _, known := range x.begun {
		t.clock.join(known)
	}
}
