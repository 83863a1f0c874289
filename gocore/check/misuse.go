package check

import (
	"fmt"
	"slices"

	"gormapy/gocore/check/events"
)

// misuse processes a wrong call that the rank itself has found.
func (c *Checker) misuse(t *thread, e *events.Event) {
	if t.exempt {
		return
	}
	w, win := e.Words, t.windows[e.Words[1]]
	class, at := Class(w[0]), t.sites[e.Site]
	if at == nil {
		return
	}
	var second *site
	if win != nil && win.parts[t.number] != nil {
		p := win.parts[t.number]
		if class == EpochMissing && p.assertion&modeNoSucceed != 0 && p.fenceSite != nil {
			class, second = WrongAssert, p.fenceSite
		}
		if class == EpochNested || class == EpochOpen {
			for target, open := range p.epochs {
				if second == nil || target == int(w[2]) {
					second = open.site
				}
			}
			if second == nil && p.posted != nil {
				second = p.posted.site
			}
		}
	}
	var by *rank
	if second != nil {
		by = t.rank
	}
	if class == BadArgument && win != nil && win.flavor == flavorDynamic {
		if p := win.parts[int(w[2])]; p != nil && p.detached != nil {
			class, second, by = MemoryGone, p.detached, c.ranks[w[2]]
		}
	}
	if len(w) > 3 { // the number of an operation
		if o := t.ops[w[3]]; o != nil {
			second, by = o.site, t.rank
			o.requested = false
		}
	}
	if class == WrongAssert { // what is wrong is the assertion
		at, second = second, at
	}
	c.found(class, t, at, second, by, win, e.Text)
}

// checkAssertions reports an operation that contradicts the assertion of the target's Fence, if the target has come to it.
func (c *Checker) checkAssertions(o *operation) {
	if x := o.epoch.fence; x != nil && x.asserted[o.target]&modeNoPut != 0 {
		c.noPut(o, x.sites[o.target])
	}
}

// assertsNoPut reports operations on a rank that comes later than their origins to a Fence that it calls with MODE_NOPUT.
func (c *Checker) assertsNoPut(win *window, rank int, x *collective) {
	for _, p := range win.parts {
		for _, o := range p.pending {
			if o.epoch.fence == x && o.target == rank {
				c.noPut(o, x.sites[rank])
			}
		}
	}
}

// noPut reports an operation that changes a part of which its owner has said in a call that it would not be changed.
func (c *Checker) noPut(o *operation, said *site) {
	if said != nil && (o.Kind == events.Put || o.Kind >= events.Accumulate && o.Op != OpNone) {
		c.found(WrongAssert, c.anyThread(o.target), said, o.site, o.by.rank, o.win,
			fmt.Sprintf("%s with MODE_NOPUT, although rank %d changes the part by %s", said.call, o.by.number, o.site.call))
	}
}

// noStore reports a store of the rank of whose absence its Fence or Post has assured.
func (c *Checker) noStore(t *thread, win *window, mine *part, said *site, assertion int64) {
	if assertion&modeNoStore != 0 && mine.stored != nil {
		c.found(WrongAssert, t, said, mine.stored, t.rank, win,
			fmt.Sprintf("%s with MODE_NOSTORE, although the rank has stored to its part since it last synchronized", said.call))
	}
	mine.stored = nil
}

// freed processes memory that the program frees or moves, or, without a site, that nobody uses any more.
func (c *Checker) freed(t *thread, e *events.Event) {
	address, bytes, at := e.Words[0], e.Words[1], t.sites[e.Site]
	buffers := len(e.Words) > 2
	t.memory.over(address, address+bytes, func(a *access) bool {
		open := len(a.done()) == 0 || buffers && (a.op == nil || a.role == far)
		if at != nil && a.op != nil && a.role != far && open {
			c.found(MemoryGone, t, at, a.site, a.by.rank, a.win, fmt.Sprintf("memory is freed or moved that %s may still access", a.call()))
		}
		return at != nil || open
	})
	if at == nil {
		return
	}
	for _, win := range t.windows {
		if p := win.parts[t.number]; !p.freed && p.bytes > 0 && address < p.base+p.bytes && address+bytes > p.base {
			c.found(MemoryGone, t, at, p.made, t.rank, win, "memory of a window is freed or moved before the window is freed")
		}
	}
}

// gone reports operations that are not complete when the memory that they access is taken away.
func (c *Checker) gone(t *thread, e *events.Event, win *window, address, bytes int64) {
	at := t.sites[e.Site]
	t.memory.over(address, address+bytes, func(a *access) bool {
		if a.role == far && a.win == win && !a.before(t.clock) && at != nil {
			c.found(MemoryGone, t, at, a.site, a.by.rank, win, fmt.Sprintf("memory is detached that %s of rank %d may still access", a.call(), a.by.number))
		}
		return true
	})
}

// unfinished reports requests that were never completed.
func (c *Checker) unfinished(t *thread, is func(*operation) bool) {
	for number, o := range t.ops {
		if o.requested && is(o) {
			o.requested = false
			delete(t.ops, number)
			c.found(RequestLost, o.by, o.site, nil, nil, o.win, fmt.Sprintf("the request of %s was never completed by Wait or Test", o.site.call))
		}
	}
}

// atEnd looks for what a rank that ends has left open.
func (c *Checker) atEnd(t *thread, e *events.Event) {
	if e.Text != "" { // it has failed: what it has left undone is a consequence
		return
	}
	c.unfinished(t, func(*operation) bool { return true })
	for _, win := range t.windows {
		p := win.parts[t.number]
		for _, open := range p.epochs {
			if open.kind != "Fence" && open.site != nil {
				c.found(EpochOpen, t, open.site, nil, nil, win, fmt.Sprintf("the rank has ended inside the epoch of %s", open.kind))
			}
		}
		if p.posted != nil {
			c.found(EpochOpen, t, p.posted.site, nil, nil, win, "the rank has ended inside the epoch of Post")
		}
	}
}

// leftovers looks, after the end of all ranks, for calls for which ranks have waited for ever.
func (c *Checker) leftovers() {
	waiting := map[int]bool{}
	for _, wins := range c.windows {
		for _, win := range wins {
			for number, p := range win.parts {
				if p.wait != nil && p.wait.call != "Fence" {
					waiting[number] = true
					t := c.anyThread(number)
					c.found(CollectiveMismatch, t, p.wait, nil, nil, win, fmt.Sprintf("rank %d waits in %s for ever: a rank of its group has not made the call that it waits for", number, p.wait.call))
				}
			}
		}
	}
	for _, m := range c.comms {
		for _, x := range m.open {
			c.abandoned(x, waiting)
		}
	}
	for _, wins := range c.windows {
		for _, win := range wins {
			for _, x := range win.barrier {
				c.abandoned(x, waiting)
			}
		}
	}
}

// abandoned reports a collective call that some ranks have begun and others never; not if the others wait in a call that has been
// reported.
func (c *Checker) abandoned(x *collective, waiting map[int]bool) {
	var missing []int
	for _, other := range x.comm.ranks {
		if x.begun[other] == nil {
			missing = append(missing, other)
		}
	}
	if len(missing) == 0 || slices.ContainsFunc(missing, func(rank int) bool { return waiting[rank] }) {
		return
	}
	for _, number := range x.comm.ranks {
		if at := x.sites[number]; at != nil {
			c.found(CollectiveMismatch, c.anyThread(number), at, nil, nil, nil, fmt.Sprintf("rank %d waits in %s for ranks %v, which have never called it", number, x.name, missing))
			return
		}
	}
}

func (c *Checker) anyThread(rank int) *thread {
	for _, t := range c.ranks[rank].threads {
		return t
	}
	return nil
}

// checkArguments reports buffers and datatypes of an operation that do not fit each other.
func (c *Checker) checkArguments(o *operation) {
	types := o.by.types
	origin, target, result := types[o.OriginType], types[o.TargetType], types[o.ResultType]
	wrong := func(text string) { c.found(BadArgument, o.by, o.site, nil, nil, o.win, text) }
	if origin != nil && target != nil && o.OriginCount > 0 && origin.basic != 0 && target.basic != 0 && origin.basic != target.basic &&
		!origin.bytes() && !target.bytes() {
		wrong(fmt.Sprintf("%s: the elements of the origin and those of the target are not of the same datatype", o.site.call))
	}
	if target != nil && o.Kind != events.Get && target.overlaps(o.TargetCount) {
		wrong(fmt.Sprintf("%s: elements of the target overlap", o.site.call))
	}
	if o.Kind == events.Get && origin != nil && origin.overlaps(o.OriginCount) || result != nil && result.overlaps(o.ResultCount) {
		wrong(fmt.Sprintf("%s: elements of the buffer that it fills overlap", o.site.call))
	}
	if result != nil && origin != nil && o.Op != OpNone && touch(origin.spread(o.Origin, o.OriginCount), result.spread(o.Result, o.ResultCount)) {
		wrong(fmt.Sprintf("%s: the result is in the origin", o.site.call))
	}
}

func touch(a, b []runs) bool {
	for _, r := range a {
		for _, s := range b {
			if from, to := r.overlap(s); from < to {
				return true
			}
		}
	}
	return false
}
