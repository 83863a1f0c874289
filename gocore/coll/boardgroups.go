package coll

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// boardGroups are the groups of the ranks of a board. In an allreduce each rank reads what all others have published, at least a
// cache line of each. In groups it reads a line, and the leader of a group one of each rank of its group and one of each group.
//
// # Protocol
//
// A group is of ranks that follow each other, as in a barrier (Barrier); the lowest is its leader. A group has BoardSlots slots for
// its operand, and as many for its result. In collective k, if that is divided (divides), a rank
//
//  1. publishes its data in its own slot, as in others (Board), and rings its leader; a leader rings its group;
//  2. if it is a leader: waits until all ranks of its group have published, compares their calls, reduces what they have published in a
//     buffer of its own, copies that to the slot k mod BoardSlots for the group's operand, stores k there, and rings all ranks;
//  3. if it is a leader: waits until the operands of all groups have k, compares the calls, reduces the operands in the same buffer, copies
//     that to the slot for its group's result, stores k there, and rings the ranks of its group;
//  4. waits until the result of its group has k, and reads it;
//  5. stores k in done.
//
// The slots of a group belong to collective k until all ranks have k in done: its leader looks at that before it publishes for
// collective k+BoardSlots, and no other one's data can be complete without the leader's.
//
// A rank that waits takes steps 2, for any group, and 3, for its own, before it sleeps, if the slots that are read there have k (standIn). So a
// leader that has published and died, or that was interrupted and does not look, holds nobody up. Several ranks may write one slot at once,
// also while others read it: they write the same bytes. And none that writes has k in done, so the slot still belongs to k.
//
// If the ranks have made different calls, or one has published that it gives up, nobody writes the slot whose operands differ. All ranks
// find the cause in the ranks' own slots.
type boardGroups struct {
	size     int // number of ranks in each group but the last one
	operands groupSlots
	results  groupSlots
}

// groupSlots has a slot of each group for each of BoardSlots collectives.
type groupSlots struct {
	slots [][job.BoardSlots]slot
	data  unsafe.Pointer
	bytes int // size of the data of one slot
}

// boardGroupsFrom is the number of ranks from which on boards are divided, if each rank has a core, and boardGroup that of the ranks in a group. By the
// model (package cachemodel) there are 30 transfers on the critical path of 64 ranks in groups, and 66 without: the first number of
// ranks, of powers of two, at which that is more than the model's error. Groups of 8 have the shortest path up to 256 ranks.
const (
	boardGroupsFrom = 64
	boardGroup      = job.LeastBarrierGroup
)

// DivideBoard divides the board, if there is one, into groups of size ranks; 0: not. All ranks do so alike, and before the first collective.
func (c *Comm) DivideBoard(size int) {
	if c.board == nil {
		return
	}
	c.board.groups = nil
	if size == 0 {
		return
	}
	all, mem := len(c.eng.Job.Ranks), c.eng.Job.Block(c.Bar.Index)
	most := job.BarrierGroups(all)
	slots := unsafe.Slice((*[job.BoardSlots]slot)(unsafe.Pointer(&mem[job.GroupSlotsOffset(all)])), 2*most)
	data := unsafe.Pointer(&mem[job.GroupDataOffset(all)])
	n, bytes := (c.Size+size-1)/size, c.board.bytes
	c.board.groups = &boardGroups{size: size, operands: groupSlots{slots[:n], data, bytes},
		results: groupSlots{slots[most : most+n], unsafe.Add(data, most*job.BoardSlots*bytes), bytes}}
}

// divides reports whether collective a is one in groups. All ranks decide alike. Operands of two bytes are accumulated in wider numbers, and
// the result is rounded once: not in groups, whose results would be rounded first.
func (c *Comm) divides(a *Args) bool {
	return c.board.groups != nil && a.Kind == KindAllreduce && a.Objects == nil && c.need(a) <= c.board.bytes && !a.Elem.IsHalf()
}

// of returns the group of a rank.
func (g *boardGroups) of(rank int) int { return rank / g.size }

// ranks returns the ranks of group i of n: from first on, and before end.
func (g *boardGroups) ranks(i, n int) (first, end int) { return i * g.size, min((i+1)*g.size, n) }

func (g *groupSlots) slot(i int, k uint32) *slot { return &g.slots[i][k%job.BoardSlots] }

func (g *groupSlots) filled(i int, k uint32) bool {
	return uint32(atom.Load64(&g.slot(i, k).word)>>32) == k
}

// place returns the address of the data of group i of collective k, which has n bytes.
func (g *groupSlots) place(i int, k uint32, n int) unsafe.Pointer {
	if n <= shortSlot {
		return unsafe.Pointer(&g.slot(i, k).short)
	}
	return unsafe.Add(g.data, (i*job.BoardSlots+int(k%job.BoardSlots))*g.bytes)
}

func (g *groupSlots) zero() {
	for i := range g.slots {
		for k := range g.slots[i] {
			atom.Store64(&g.slots[i][k].word, 0)
		}
	}
}

// advanceGroups is the part of Advance that waits for the others. It reports whether the wait is over.
func (s *BoardOp) advanceGroups() bool {
	g, me := s.c.board.groups, s.c.Rank
	own := g.of(me)
	first, end := g.ranks(own, s.c.Size)
	if me == first && !g.results.filled(own, s.seq) {
		for ; s.members < end-first-1; s.members++ {
			if !s.c.board.filled(first+1+s.members, s.seq) {
				return false
			}
		}
		if !g.operands.filled(own, s.seq) {
			s.reduceGroup(own)
			s.c.ringOthers() // if calls differ, they look for the cause
			if s.err != nil {
				return true
			}
		}
		for ; s.at < len(g.operands.slots); s.at++ {
			if !g.operands.filled((own+s.at)%len(g.operands.slots), s.seq) {
				return false
			}
		}
		if s.reduceGroups(own); s.err != nil {
			s.c.ringOthers()
			return true
		}
		s.ringGroup()
	}
	if !g.results.filled(own, s.seq) {
		return false
	}
	s.compareWith(first, g.results.slot(own, s.seq))
	return true
}

// reduceGroup publishes the operand of group i, all ranks of which have published. If their calls are not the own one, that is the error.
func (s *BoardOp) reduceGroup(i int) {
	b := s.c.board
	first, end := b.groups.ranks(i, s.c.Size)
	for r := first; r < end && s.err == nil; r++ {
		if r != s.c.Rank {
			s.compareWith(r, b.slot(r, s.seq))
		}
	}
	if s.err != nil {
		return
	}
	n := s.c.need(&s.Args)
	s.collect(first, end-1, n, 0, n)
	s.publishReduced(&b.groups.operands, i)
}

// reduceGroups publishes the result of group i. All groups have published operands. If their calls are not the own one, that is the error.
func (s *BoardOp) reduceGroups(i int) {
	g := s.c.board.groups
	n := s.c.need(&s.Args)
	s.operands = s.operands[:0]
	for j := range g.operands.slots {
		leader, _ := g.ranks(j, s.c.Size)
		if s.compareWith(leader, g.operands.slot(j, s.seq)); s.err != nil {
			return
		}
		p := g.operands.place(j, s.seq, n)
		atom.Reads(p, n)
		s.operands = append(s.operands, p)
	}
	s.publishReduced(&g.results, i)
}

// publishReduced reduces the operands, and publishes that in the slot of group i. Others that do so, and those that read it, find the same bytes at all
// times: so the reduction is made elsewhere.
func (s *BoardOp) publishReduced(to *groupSlots, i int) {
	if n := s.c.need(&s.Args); n > 0 {
		if len(s.reduced) < n {
			s.reduced = make([]byte, s.c.board.bytes)
		}
		from := unsafe.Pointer(&s.reduced[0])
		e := s.elements()
		e.op.Fold(e.kind, from, s.operands, e.n)
		place := to.place(i, s.seq, n)
		atom.Writes(place, n)
		fabric.Copy(place, from, n)
	}
	slot := to.slot(i, s.seq)
	slot.length = int64(s.Bytes)
	atom.Publish64(&slot.word, uint64(s.seq)<<32|uint64(s.Call.signature()))
}

// standIn does what leaders have not yet done: see boardGroups.
func (s *BoardOp) standIn() {
	g, did := s.c.board.groups, false
	all := true // groups have published operands
	for i := range g.operands.slots {
		if s.err == nil && !g.operands.filled(i, s.seq) && s.allFilled(i) {
			s.reduceGroup(i)
			did = true
		}
		all = all && g.operands.filled(i, s.seq)
	}
	if own := g.of(s.c.Rank); s.err == nil && all && !g.results.filled(own, s.seq) {
		s.reduceGroups(own)
		did = true
	}
	if did {
		for _, r := range s.c.ranks { // this one, too: it may be about to sleep
			r.Ring()
		}
	}
}

// awaitedInGroups is Awaited: ranks wait for their leader, that for its group's ranks, and then for the other leaders.
func (s *BoardOp) awaitedInGroups() int {
	g, me := s.c.board.groups, s.c.Rank
	own := g.of(me)
	first, end := g.ranks(own, s.c.Size)
	switch {
	case me != first:
		return first
	case s.members < end-first-1:
		return first + 1 + s.members
	}
	if leader, _ := g.ranks((own+max(s.at, 1))%len(g.operands.slots), s.c.Size); leader != me {
		return leader
	}
	return s.c.after(0)
}

// ringGroup wakes the ranks of this rank's group.
func (s *BoardOp) ringGroup() {
	g := s.c.board.groups
	first, end := g.ranks(g.of(s.c.Rank), s.c.Size)
	for _, r := range s.c.ranks[first:end] {
		r.Ring()
	}
}

// allFilled reports whether all ranks of group i have published.
func (s *BoardOp) allFilled(i int) bool {
	first, end := s.c.board.groups.ranks(i, s.c.Size)
	for r := first; r < end; r++ {
		if !s.c.board.filled(r, s.seq) {
			return false
		}
	}
	return true
}

// readResult copies the result of this rank's group.
func (s *BoardOp) readResult() {
	g, n := s.c.board.groups, s.c.need(&s.Args)
	if n == 0 {
		return
	}
	e := s.elements()
	e.p = g.results.place(g.of(s.c.Rank), s.seq, n)
	atom.Reads(e.p, n)
	if s.Recv.Type.Dense() && s.Recv.Bytes() == n {
		fabric.Copy(s.Recv.Addr, e.p, n)
		return
	}
	e.store(s.Recv)
}
