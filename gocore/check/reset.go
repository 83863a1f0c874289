package check

// reset processes the end of gormapy.reset on a rank, which is collective and waits for all ranks: when the first one leaves it nothing
// of before is in flight, each epoch is closed, each lock is free, and nothing that follows can conflict with what was before.
func (c *Checker) reset(t *thread) {
	r := t.rank
	if r.resets++; r.resets <= c.resets {
		return // another rank has left it earlier
	}
	c.resets = r.resets
	var known clock
	for _, other := range c.threads {
		known.join(other.clock)
	}
	for _, other := range c.threads {
		other.clock.join(known)
		other.inside = nil
	}
	for _, other := range c.ranks {
		other.memory = space{}
		other.receiving = nil
		clear(other.ops)
		clear(other.colls)
		clear(other.syncSends)
	}
	clear(c.messages)
	for _, m := range c.comms {
		clear(m.calls)
		clear(m.open)
	}
	for _, wins := range c.windows {
		for _, win := range wins {
			win.reset()
		}
	}
}

// reset forgets the state of a window's epochs, locks and fences.
func (w *window) reset() {
	clear(w.locks)
	clear(w.fences)
	clear(w.barrier)
	clear(w.atomics)
	clear(w.notes)
	for _, p := range w.parts {
		p.pending, p.syncs, p.posted, p.wait, p.stored = nil, nil, nil, nil, nil
		p.assertion, p.fenceSite = 0, nil
		clear(p.epochs)
		clear(p.exposed)
	}
}
