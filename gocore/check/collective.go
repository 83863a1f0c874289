package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gormapy/gocore/check/events"
)

func (c *Checker) newCollective(m *comm, name string, root int) *collective {
	return &collective{comm: m, name: name, root: root, begun: map[int]clock{}, sites: map[int]*site{}, sources: map[int][]int64{}, calls: map[int]called{},
		left: len(m.ranks), first: -1, standing: -1}
}

// collective processes the begin or end of a collective call.
func (c *Checker) collective(t *thread, e *events.Event) {
	w := e.Words
	m := t.comms[w[0]]
	if m == nil {
		return
	}
	request, root := w[1], int(w[3])
	switch w[2] {
	case collEnds:
		if x := t.inside; x != nil && x.comm == m {
			t.inside = nil
			c.stands(t, x, false)
			c.leave(t, x)
		}
		return
	case collFails:
		if x := t.leaves(request); x != nil {
			c.stands(t, x, true)
		}
		return
	case collRefused:
		if x := t.leaves(request); x != nil && x.comm == m {
			c.refused(t, x)
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
	}
	x.begun[t.number], x.sites[t.number], x.calls[t.number] = t.clock.clone(), t.sites[e.Site], called{e.Text, root}
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

// Phases of a collective call. One that is refused has done nothing: its arguments are wrong.
const (
	collEnds    = 1
	collFails   = 2
	collRefused = 3
)

// stands looks whether a call that can't be refused any more fits to those of other ranks: to one that can't be either, or, if it has
// failed, to all.
func (c *Checker) stands(t *thread, x *collective, failed bool) {
	others := []int{x.standing}
	if failed {
		others = x.comm.ranks
	}
	if x.standing < 0 {
		x.standing = t.number
	}
	for _, other := range others {
		if theirs, begun := x.calls[other]; begun && theirs != x.calls[t.number] && !x.told {
			x.told = true
			c.mismatch(x, max(t.number, other), min(t.number, other))
		}
	}
}

// leaves ends a call that has raised an error, and returns it.
func (t *thread) leaves(request int64) *collective {
	x := t.inside
	if request != 0 {
		x = t.colls[request]
		delete(t.colls, request)
	} else {
		t.inside = nil
	}
	return x
}

// refused takes back a call that has done nothing.
func (c *Checker) refused(t *thread, x *collective) {
	m := x.comm
	m.calls[t.number]--
	n := m.calls[t.number]
	delete(x.begun, t.number)
	delete(x.sites, t.number)
	delete(x.sources, t.number)
	delete(x.calls, t.number)
	if len(x.begun) == 0 {
		delete(m.open, n)
		return
	}
	m.open[n] = x
	if x.first == t.number {
		x.first = slices.Min(slices.Collect(maps.Keys(x.begun)))
		x.name, x.root = x.calls[x.first].name, x.calls[x.first].root
	}
}

func (c *Checker) mismatch(x *collective, one, other int) {
	by := c.anyThread(one)
	if by == nil { // its threads have ended
		one, other = other, one
		if by = c.anyThread(one); by == nil {
			return
		}
	}
	c.found(CollectiveMismatch, by, x.sites[one], x.sites[other], c.ranks[other], nil,
		fmt.Sprintf("rank %d calls %s, where rank %d calls %s", one, x.calls[one], other, x.calls[other]))
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
