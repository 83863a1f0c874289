package check

import "gormapy/gocore/check/events"

// The flavors of windows and assertions, numbered as in MPI.
const (
	flavorShared  = 4
	flavorDynamic = 3
	modeNoCheck   = 1024
	modeNoStore   = 2048
	modeNoPut     = 4096
	modeNoPrecede = 8192
	modeNoSucceed = 16384
	lockExclusive = 1
)

// synchronize processes a call that synchronizes on a window.
func (c *Checker) synchronize(t *thread, e *events.Event) {
	w := e.Words
	win := t.windows[w[0]]
	if win == nil || win.parts[t.number] == nil {
		return
	}
	mine, site, target := win.parts[t.number], t.sites[e.Site], int(w[3])
	begins, assertion := w[2] == 0, w[4]
	if w[2] == 2 {
		mine.wait = nil
		return
	}
	switch kind := events.SyncKind(w[1]); kind {
	case events.Fence:
		c.onFence(t, win, mine, site, begins, assertion)
	case events.Lock:
		if begins {
			return
		}
		if e := mine.epochs[everyTarget]; e.kind == "Fence" && mine.hasPending(e) {
			c.found(EpochNested, t, site, e.site, t.rank, win, "Lock inside the epoch of a Fence, in which operations have been called: a Fence has to end it first")
		}
		c.onLock(t, win, mine, site, target, assertion&lockKind, assertion&^lockKind)
	case events.LockAll:
		if begins {
			return
		}
		for rank := range win.parts {
			c.acquire(t, win, rank, false, assertion, site)
		}
		mine.epochs[everyTarget] = epoch{kind: "Lock_all", site: site}
		mine.sync(t)
	case events.Unlock:
		if !begins {
			return
		}
		c.complete(t, win, target, true, true)
		c.release(t, win, target)
		delete(mine.epochs, target)
		mine.sync(t)
	case events.UnlockAll:
		if !begins {
			return
		}
		c.complete(t, win, everyTarget, true, true)
		for rank := range win.parts {
			c.release(t, win, rank)
		}
		delete(mine.epochs, everyTarget)
		mine.sync(t)
	case events.Flush:
		if !begins {
			c.complete(t, win, target, true, false)
		}
	case events.FlushLocal:
		if !begins {
			c.complete(t, win, target, false, false)
		}
	case events.WinSync:
		mine.sync(t)
	case events.Post, events.Start_, events.Complete, events.Wait:
		c.onExposure(t, win, mine, site, kind, begins, assertion, w[5:])
	case events.Free:
		if begins {
			if e := mine.epochs[everyTarget]; e.kind == "Fence" && mine.hasPending(e) {
				c.found(EpochOpen, t, site, e.site, t.rank, win, "Free inside the epoch of a Fence, in which operations have been called: a Fence has to end it first")
			}
			c.unfinished(t, func(o *operation) bool { return o.win == win })
			mine.freedAt = site
			return
		}
		mine.freed = true
		mine.syncs, mine.pending, mine.exposed = nil, nil, map[int][]*exposure{}
		if assertion != 0 { // its memory stays
			c.freedParts = append(c.freedParts, freedPart{mine, t.number, win})
		}
		delete(t.windows, w[0])
	}
}

// lockKind are the bits of a Lock's assertion in which its type is passed.
const lockKind = 1

// hasPending reports whether operations of an epoch are not complete.
func (p *part) hasPending(e epoch) bool {
	for _, o := range p.pending {
		if o.epoch.site == e.site && o.epoch.kind == e.kind {
			return true
		}
	}
	return false
}

func (p *part) sync(t *thread) {
	p.stored = nil
	p.syncs = append(p.syncs, synced{t.now(), t.clock.clone()})
	if len(p.syncs) > 256 {
		p.syncs = append(p.syncs[:0], p.syncs[128:]...)
	}
}

func (w *window) lock(target int) *lock {
	l := w.locks[target]
	if l == nil {
		l = &lock{held: map[int]holder{}}
		w.locks[target] = l
	}
	return l
}

func (c *Checker) onLock(t *thread, win *window, mine *part, site *site, target int, kind, assertion int64) {
	exclusive := kind == lockExclusive
	l := win.lock(target)
	if assertion&modeNoCheck != 0 {
		for rank, h := range l.held {
			if rank != t.number && (exclusive || h.exclusive) {
				c.found(WrongAssert, t, site, h.site, c.ranks[rank], win, "Lock with MODE_NOCHECK, while another rank holds a conflicting lock")
				break
			}
		}
	}
	c.acquire(t, win, target, exclusive, assertion, site)
	name := "Lock shared"
	if exclusive {
		name = "Lock exclusive"
	}
	mine.epochs[target] = epoch{kind: name, site: site}
	mine.sync(t)
}

// acquire lets a thread that has acquired a lock know what its earlier holders knew.
func (c *Checker) acquire(t *thread, win *window, target int, exclusive bool, assertion int64, site *site) {
	l := win.lock(target)
	l.held[t.number] = holder{exclusive, assertion&modeNoCheck == 0, site}
	if assertion&modeNoCheck != 0 {
		return
	}
	t.clock.join(l.exclusive)
	if exclusive {
		t.clock.join(l.shared)
	}
}

func (c *Checker) release(t *thread, win *window, target int) {
	l := win.lock(target)
	h, held := l.held[t.number]
	delete(l.held, t.number)
	switch {
	case !held || !h.checked:
	case h.exclusive:
		l.exclusive.join(t.clock)
	default:
		l.shared.join(t.clock)
	}
}

// onFence processes a Fence: it completes all operations, and each rank knows afterwards what all knew before.
func (c *Checker) onFence(t *thread, win *window, mine *part, site *site, begins bool, assertion int64) {
	n := win.fences[t.number]
	x := win.barrier[n]
	if begins {
		if x == nil {
			x = c.newCollective(win.comm, "Fence", -1)
			win.barrier[n] = x
		}
		if assertion&modeNoPrecede != 0 {
			for _, o := range mine.pending {
				c.found(WrongAssert, t, site, o.site, o.by.rank, win, "Fence with MODE_NOPRECEDE, although this rank has called an operation since the last Fence")
				break
			}
		}
		if x.asserted == nil {
			x.asserted = map[int]int64{}
		}
		x.asserted[t.number] = assertion
		for rank, other := range x.asserted {
			if differ := (assertion ^ other) & (modeNoPrecede | modeNoSucceed); differ != 0 {
				by, at, second := t, site, x.sites[rank]
				if other&differ != 0 {
					by, at, second = c.anyThread(rank), x.sites[rank], site
				}
				c.found(WrongAssert, by, at, second, nil, win, "Fence with MODE_NOPRECEDE or MODE_NOSUCCEED on some ranks only: all have to give it, or none")
				break
			}
		}
		c.noStore(t, win, mine, site, assertion)
		mine.wait = site
		c.complete(t, win, everyTarget, true, true)
		mine.sync(t)
		x.begun[t.number], x.sites[t.number] = t.clock.clone(), site
		if assertion&modeNoPut != 0 {
			c.assertsNoPut(win, t.number, x)
		}
		return
	}
	if x == nil {
		return
	}
	mine.wait = nil
	win.fences[t.number]++
	for _, known := range x.begun {
		t.clock.join(known)
	}
	if x.left--; x.left == 0 {
		delete(win.barrier, n)
	}
	mine.sync(t)
	mine.assertion, mine.fenceSite = assertion, site
	delete(mine.epochs, everyTarget)
	if assertion&modeNoSucceed == 0 {
		mine.epochs[everyTarget] = epoch{kind: "Fence", site: site, fence: x}
	}
}

// onExposure processes Post, Start, Complete and Wait.
func (c *Checker) onExposure(t *thread, win *window, mine *part, site *site, kind events.SyncKind, begins bool, assertion int64, group []int64) {
	switch {
	case kind == events.Post && begins:
		c.noStore(t, win, mine, site, assertion)
		mine.sync(t)
		x := &exposure{target: t.number, known: t.clock.clone(), site: site, nocheck: assertion&modeNoCheck != 0, posted: t.now()}
		if assertion&modeNoPut != 0 {
			x.noput = site
		}
		for _, g := range group {
			origin := int(g)
			x.origins = append(x.origins, origin)
			p := win.parts[origin]
			if p == nil {
				continue
			}
			if e, open := p.epochs[everyTarget]; open && e.kind == "Start" && e.waits(t.number) {
				e.met[t.number] = x
			} else {
				p.exposed[t.number] = append(p.exposed[t.number], x)
			}
		}
		mine.posted = x
	case kind == events.Post: // what counts is its begin
	case kind == events.Start_ && begins:
		mine.wait = site
	case kind == events.Start_:
		mine.wait = nil
		e := epoch{kind: "Start", site: site, met: map[int]*exposure{}}
		for _, g := range group {
			target := int(g)
			e.group = append(e.group, target)
			if queue := mine.exposed[target]; len(queue) > 0 {
				x := queue[0]
				e.met[target], mine.exposed[target] = x, queue[1:]
				if assertion&modeNoCheck != 0 && !t.clock.has(x.posted) {
					c.found(WrongAssert, t, site, x.site, c.ranks[target], win, "Start with MODE_NOCHECK, although nothing orders it after the Post of a rank of its group")
				}
				if checked := assertion&modeNoCheck == 0; checked == x.nocheck {
					c.found(WrongAssert, t, site, x.site, c.ranks[target], win, "MODE_NOCHECK is given to Start, or to Post, but not to both")
				}
			} else if assertion&modeNoCheck != 0 {
				c.found(WrongAssert, t, site, nil, nil, win, "Start with MODE_NOCHECK, although a rank of the group has not called Post")
			}
		}
		mine.epochs[everyTarget] = e
		mine.sync(t)
	case kind == events.Complete && begins:
		mine.wait = site
		mine.sync(t)
		c.complete(t, win, everyTarget, false, true)
		for _, x := range mine.epochs[everyTarget].met {
			x.completed.join(t.clock)
		}
	case kind == events.Complete:
		mine.wait = nil
		e := mine.epochs[everyTarget]
		for _, a := range e.late {
			if x := e.met[a.op.target]; x != nil {
				c.add(a, joined(a.known, x.known))
				x.ops = append(x.ops, a.op)
				c.noPut(a.op, x.noput)
				x.completed.join(t.clock)
			}
		}
		delete(mine.epochs, everyTarget)
		mine.sync(t)
	case kind == events.Wait && begins:
		mine.wait = site
	case kind == events.Wait:
		mine.wait = nil
		x := mine.posted
		if x == nil {
			return
		}
		t.clock.join(x.completed)
		now := t.now()
		for _, o := range x.ops {
			o.remote.add(now)
			if p := win.parts[o.by.number]; p != nil {
				p.drop(func(other *operation) bool { return other == o && len(o.local) > 0 })
			}
		}
		mine.posted = nil
		mine.sync(t)
	}
}

// waits reports whether the epoch of a Start has not met a Post of the target.
func (e epoch) waits(target int) bool {
	if e.met[target] != nil {
		return false
	}
	for _, g := range e.group {
		if g == target {
			return true
		}
	}
	return false
}
