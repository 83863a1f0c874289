package check

import "gormapy/gocore/check/events"

// localAccess processes a load or store of the program.
func (c *Checker) localAccess(t *thread, e *events.Event) {
	if t.exempt || t.sites[e.Site] == nil {
		return
	}
	w := e.Words
	a := &access{by: t, at: t.now(), writes: w[0] != 0, owner: t.rank, runs: runs{w[1], w[2], w[3], w[4]}, site: t.sites[e.Site]}
	for _, m := range t.mapped {
		part := m.win.parts[m.owner]
		if part != nil && !part.freed && a.runs.start >= m.address && a.runs.start < m.address+m.bytes {
			a.owner = c.ranks[m.owner]
			a.runs.start += part.base - m.address
			break
		}
	}
	for _, win := range a.owner.windows {
		if p := win.parts[a.owner.number]; a.runs.start < p.base+p.bytes && a.runs.end() > p.base {
			a.win = win
			if a.writes && a.owner == t.rank {
				p.stored = a.site
			}
			if win.flavor == flavorShared {
				break
			}
		}
	}
	if a.win == nil {
		for _, old := range c.freedParts {
			if old.rank == a.owner.number && a.runs.start < old.base+old.bytes && a.runs.end() > old.base {
				c.found(MemoryGone, t, a.site, old.freedAt, t.rank, old.win, "the memory of a window is used after the window has been freed")
				return
			}
		}
	}
	c.add(a, t.clock)
}
