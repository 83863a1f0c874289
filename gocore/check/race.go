package check

import "strings"

// The operations of accumulates, as gormapy/check/kinds.py numbers them; others have larger numbers.
const (
	OpNone    = 0
	OpReplace = 1
	OpSum     = 2
	OpSwap    = 3 // of Compare_and_swap
)

// add checks an access against earlier ones to the same memory, and keeps it for later ones. known is what the thread
// knows when the access begins.
func (c *Checker) add(b *access, known clock) {
	memory := &b.owner.memory
	memory.over(b.runs.start, b.runs.end(), func(a *access) bool {
		before := a.before(known)
		if before && b.covers(a) {
			return false
		}
		stays := !b.replaces(a)
		if a.op != nil && a.op == b.op || !(a.writes || b.writes) || a.op == nil && a.by == b.by {
			return stays
		}
		if before && !c.outOfSync(a, b) {
			return true
		}
		if from, to := a.runs.overlap(b.runs); from < to {
			c.judge(a, b, known, before, from, to)
		}
		return stays
	})
	memory.add(b)
	c.sweep(memory)
}

// covers reports whether every access that conflicts with a, which was complete before b, conflicts with b, too.
func (b *access) covers(a *access) bool {
	return a.runs == b.runs && a.by == b.by && a.role == b.role && a.writes == b.writes && a.atomic == b.atomic && a.accOp == b.accOp && a.basic == b.basic
}

// replaces reports whether every access that conflicts with a conflicts with b, too, although both are pending: the same call at the
// same line, which is complete no sooner. So a loop of updates of one place in one epoch is one access.
func (b *access) replaces(a *access) bool {
	return a.op != nil && b.op != nil && a.op != b.op && a.site == b.site && b.covers(a) && a.op.win == b.op.win && a.op.target == b.op.target &&
		a.op.Kind == b.op.Kind && a.op.epoch.site == b.op.epoch.site && (a.op.Call|b.op.Call)&callRequest == 0 && len(a.op.local)+len(a.op.remote) == 0
}

// atomicTo reports whether two updates are atomic to each other; contested, whether opinions differ.
func (a *access) atomicTo(b *access) (yes, contested bool) {
	if a.basic == 0 || a.basic != b.basic || (a.runs.start-b.runs.start)%max(a.size, 1) != 0 {
		return false, false
	}
	if a.accOp == b.accOp || a.accOp == OpNone || b.accOp == OpNone || a.by.rank == b.by.rank {
		return true, false
	}
	swap := func(op int64) bool { return op == OpSwap || op == OpReplace }
	if swap(a.accOp) && swap(b.accOp) {
		return true, false
	}
	return false, swap(a.accOp) || swap(b.accOp)
}

// judge finds out whether two accesses to the same bytes are a race, and of which class. before: a was complete before b.
func (c *Checker) judge(a, b *access, known clock, before bool, from, to int64) {
	contested := false
	var class Class
	switch {
	case before:
		class = WinsyncMissing
	case a.op == nil && b.op == nil:
		if a.by.rank == b.by.rank {
			return // threads of one rank: the program's own affair
		}
		class = SharedAccess
		if known.has(a.at) {
			class = WinsyncMissing
		}
	case a.by.rank != b.by.rank && a.role != far && b.role == far || a.role == far && b.role != far && a.by.rank != b.by.rank:
		// a rank uses bytes of its part that another one accesses, itself or in its own operation
		class = LocalAccess
		if a.role == far && known.has(a.at) {
			class = FlushMissing
		}
		if a.by.rank != a.owner && b.by.rank != a.owner {
			class = SharedAccess
		} else if load, write := polled(a, b); load != nil {
			class, contested = LocalAccess, true
			load.sees(write)
		}
	case a.role == reads || a.role == compares:
		class = OriginReuse
	case a.role == fills || b.role == fills:
		class = ResultEarly
	case b.role == reads || b.role == compares:
		class = OriginReuse
	case a.atomic && b.atomic:
		yes, doubt := a.atomicTo(b)
		if yes {
			return
		}
		class, contested = AccumulateMix, doubt
	case a.op != nil && b.op != nil && a.by.rank == b.by.rank:
		class = SameOriginOrder
	case a.op != nil && known.has(a.at) && a.by.rank != b.by.rank:
		class = FlushMissing
	case a.op != nil && b.op != nil:
		class = TargetConflict
	default:
		class = LocalAccess
	}
	c.race(class, a, b, from, to, contested)
}

// polled returns the load and the operation if the load is that of a loop that waits for a value in the rank's window: "while part[0] == 0:".
// In the unified model the value appears at some time (MPI 4.1, section 12.7); whether that makes such a loop right, opinions differ.
func polled(a, b *access) (load, write *access) {
	load, write = a, b
	if a.op != nil {
		load, write = b, a
	}
	if load.op != nil || load.writes || load.win == nil || load.by.rank != load.owner || load.runs.count != 1 || load.runs.bytes > 8 ||
		!strings.HasPrefix(load.site.text, "while ") {
		return nil, nil
	}
	return load, write
}

// sees lets the thread of a loop that waits for a value know what the writer knew: the loop ends when it has seen the value. A load tells
// before it loads, so it may see the value of a later operation, unless its thread has gone on since.
func (load *access) sees(write *access) {
	if load.at != load.by.now() {
		return
	}
	load.by.clock.join(write.op.known)
	if r := write.runs; r.count == 1 && r.start == load.runs.start && r.bytes == load.runs.bytes { // the operation writes nothing else there
		write.op.remote.add(load.at)
	}
}

// outOfSync reports whether an access that is before another one is not visible to it for lack of Sync: both are direct
// accesses to a shared window by different ranks.
func (c *Checker) outOfSync(a, b *access) bool {
	if a.op != nil || b.op != nil || a.by.rank == b.by.rank || a.win == nil || a.win != b.win {
		return false
	}
	from, to := a.win.parts[a.by.number], a.win.parts[b.by.number]
	if from == nil || to == nil || len(to.syncs) == 0 {
		return true
	}
	last := to.syncs[len(to.syncs)-1]
	for i := len(from.syncs) - 1; i >= 0; i-- {
		s := from.syncs[i]
		if !s.known.has(a.at) {
			break
		}
		if last.known.has(s.at) {
			return false
		}
	}
	return true
}

// enough is how many accesses to a rank's memory are kept before those are looked for that all threads know of.
const enough = 4096

// sweep removes accesses that every thread knows to be complete: nothing can conflict with them any more.
func (c *Checker) sweep(memory *space) {
	if memory.n < max(enough, 2*memory.swept) {
		return
	}
	var all clock
	for _, t := range c.threads {
		if t.rank.ended || t.over {
			continue
		}
		if all == nil {
			all = t.clock.clone()
			continue
		}
		for i := range all {
			if i >= len(t.clock) {
				all[i] = 0
			} else {
				all[i] = min(all[i], t.clock[i])
			}
		}
	}
	memory.keep(func(a *access) bool {
		return !a.before(all) || a.win != nil && a.win.flavor == flavorShared && a.op == nil
	})
	memory.swept = memory.n
}
