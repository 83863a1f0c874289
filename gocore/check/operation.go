package check

import "gormapy/gocore/check/events"

// operation processes the begin of an operation.
func (c *Checker) operation(t *thread, e *events.Event) {
	r, w := t.rank, e.Words
	win := r.windows[w[0]]
	if win == nil || t.exempt {
		return
	}
	o := &operation{Operation: events.Operation{Window: w[0], Kind: w[1], Number: w[2], Target: w[3], Disp: w[4], TargetType: w[5], TargetCount: w[6],
		Origin: w[7], OriginType: w[8], OriginCount: w[9], Result: w[10], ResultType: w[11], ResultCount: w[12],
		Compare: w[13], Op: w[14], Value: w[15], ValueKnown: w[16], Call: w[17]},
		by: t, began: t.now(), site: r.sites[e.Site], win: win, target: int(w[3]), known: t.clock.clone()}
	mine, target := win.parts[r.number], win.parts[o.target]
	if mine == nil || target == nil || o.site == nil {
		return
	}
	o.requested = o.Call&callRequest != 0
	if o.Call != 0 {
		r.ops[o.Number] = o
	}
	var open bool
	if o.epoch, open = mine.epochs[o.target]; !open {
		o.epoch = mine.epochs[everyTarget]
	}
	mine.pending = append(mine.pending, o)
	c.checkAssertions(o)
	c.checkArguments(o)

	// its buffers
	updates := o.Kind >= events.Accumulate
	noOp := o.Op == OpNone
	if o.Kind == events.Put || updates && !noOp {
		c.buffer(o, reads, o.Origin, o.OriginType, o.OriginCount)
	}
	if o.Kind == events.CompareAndSwap {
		c.buffer(o, compares, o.Compare, o.OriginType, 1)
	}
	if o.Kind == events.Get {
		c.buffer(o, fills, o.Origin, o.OriginType, o.OriginCount)
	} else if o.Kind >= events.GetAccumulate {
		c.buffer(o, fills, o.Result, o.ResultType, o.ResultCount)
	}

	// its target
	shape := r.types[o.TargetType]
	if shape == nil {
		return
	}
	owner := c.ranks[o.target]
	late := o.epoch.kind == "Start" && o.epoch.met[o.target] == nil
	for _, b := range shape.spread(target.base+o.Disp*target.unit, o.TargetCount) {
		a := &access{by: t, at: o.began, op: o, role: far, writes: o.Kind == events.Put || updates && !noOp, owner: owner, win: win, runs: b, site: o.site,
			atomic: updates, basic: shape.basic, size: shape.element, accOp: o.Op}
		o.accesses = append(o.accesses, a)
		if late {
			a.known = t.clock.clone()
			mine.late(a)
			continue
		}
		known := t.clock
		if x := o.epoch.met[o.target]; x != nil {
			known = joined(known, x.known)
		}
		c.add(a, known)
	}
	if x := o.epoch.met[o.target]; x != nil {
		x.ops = append(x.ops, o)
		c.noPut(o, x.noput)
	}
	if updates && len(o.accesses) > 0 {
		c.update(o)
	}
}

// The bits of Operation.Call.
const (
	callRequest = 1
	callValue   = 2
)

// late keeps an access in the epoch of Start until the target's Post is known.
func (p *part) late(a *access) {
	e := p.epochs[everyTarget]
	e.late = append(e.late, a)
	p.epochs[everyTarget] = e
}

// buffer adds the accesses to one of an operation's buffers.
func (c *Checker) buffer(o *operation, role role, address, typ, count int64) {
	shape := o.by.types[typ]
	if shape == nil {
		return
	}
	for _, b := range shape.spread(address, count) {
		a := &access{by: o.by, at: o.began, op: o, role: role, writes: role == fills, owner: o.by.rank, win: o.win, runs: b, site: o.site}
		o.accesses = append(o.accesses, a)
		c.add(a, o.by.clock)
	}
}

// withdraw takes back an operation that has raised an error.
func (c *Checker) withdraw(o *operation) {
	o.failed, o.requested = true, false
	delete(o.by.ops, o.Number)
	done := points{o.by.now()}
	o.local, o.remote = done, done
	for _, a := range o.accesses {
		a.owner.memory.over(a.runs.start, a.runs.end(), func(other *access) bool { return other != a })
	}
	o.win.parts[o.by.number].drop(func(p *operation) bool { return p == o })
	if o.element != nil {
		o.element.remove(o)
	}
}

func (p *part) drop(is func(*operation) bool) {
	kept := p.pending[:0]
	for _, o := range p.pending {
		if !is(o) {
			kept = append(kept, o)
		}
	}
	clear(p.pending[len(kept):])
	p.pending = kept
}

// complete completes the operations of a rank on a window that the thread knows of, at its buffers and, if far is true, at the target.
// ends: the epoch ends with it.
func (c *Checker) complete(t *thread, win *window, target int, atTarget, ends bool) {
	mine, now := win.parts[t.number], t.now()
	if mine == nil {
		return
	}
	mine.drop(func(o *operation) bool {
		if target != everyTarget && o.target != target || !t.clock.has(o.began) {
			return false
		}
		o.completeLocally(now)
		if atTarget {
			o.remote.add(now)
		}
		return len(o.remote) > 0 && (ends || o.by == t)
	})
}

// completeLocally records that the buffers of an operation are free; that of a Get has read its target.
func (o *operation) completeLocally(now at) {
	o.local.add(now)
	if o.Kind == events.Get {
		o.remote.add(now)
	}
}

// completed processes the completion of a request.
func (c *Checker) completed(t *thread, number int64) {
	if x := t.colls[number]; x != nil {
		delete(t.colls, number)
		c.stands(t, x, false)
		c.leave(t, x)
		return
	}
	if to := t.syncSends[number]; to != nil {
		delete(t.syncSends, number)
		t.clock.join(to.receiving)
		return
	}
	if o := t.ops[number]; o != nil {
		o.requested = false
		o.completeLocally(t.now())
		if o.Call&callValue == 0 || o.valued {
			delete(t.ops, number)
		}
	}
}

func (c *Checker) attach(t *thread, e *events.Event) {
	w := e.Words
	win := t.windows[w[0]]
	if win == nil {
		return
	}
	if p := win.parts[t.number]; w[3] != 0 {
		p.attached[w[1]] = w[2]
	} else {
		c.gone(t, e, win, w[1], p.attached[w[1]])
		delete(p.attached, w[1])
		p.detached = t.sites[e.Site]
	}
}

// pendingOperation returns the operation with a number, if it is not complete.
func (r *rank) pendingOperation(number int64) *operation {
	for _, win := range r.windows {
		for _, o := range win.parts[r.number].pending {
			if o.Number == number {
				return o
			}
		}
	}
	return nil
}

// finishOne completes one operation, here and at its target.
func (c *Checker) finishOne(t *thread, number int64) {
	if o := t.pendingOperation(number); o != nil {
		o.local.add(t.now())
		o.remote.add(t.now())
		o.win.parts[t.number].drop(func(other *operation) bool { return other == o })
	}
}
