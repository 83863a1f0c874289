package coll

import (
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Args are the arguments of a collective with equal counts. The Count of Send and
// Recv is that of one rank's part; where the operation has a part for each rank, the
// parts follow each other. An argument that is not significant on this rank is
// ignored.
type Args struct {
	Call
	Send, Recv  p2p.Buf
	SendInPlace bool
	RecvInPlace bool // root of a scatter
	// SendV and RecvV are the sides that have a count for each rank.
	SendV, RecvV *Vec
	// Objects is not nil if the parts are heads of objects. The own one need not be copied.
	Objects *Objects

	from int // see Together; 0: all ranks, else the rank and 1
}

// BoardOp is a blocking collective through the board; see Board for the protocol.
type BoardOp struct {
	boardData
	generation uint32 // a collective reset ends it
	filled     bool   // this rank has published its data, if it contributes any
	announced  bool   // this rank has published its call without data
	waiting    bool   // this operation is counted in Board.waiters
	at         int    // this rank has read the slots of so many others, see Comm.after; a leader in groups: has found so many groups to have published
	fin        bool
	differs    bool // another rank has made another call
	err        *errs.Error

	grouped bool   // see boardGroups
	members int    // this leader has found so many others of its group to have published
	reduced []byte // of a group, or of all

	AdvanceFunc func() bool // Advance and Check as values, so that a call allocates none
	CheckFunc   func() error
}

// BoardOp starts a collective through the board, or returns nil if it has to use
// messages: there is no board, or no room for the data. All ranks decide alike.
func (c *Comm) BoardOp(a *Args) *BoardOp {
	if c.board == nil || !c.board.holds(c.need(a)) || c.copiesOnce(a) {
		return nil
	}
	s := c.spareOp.Swap(nil)
	if s == nil {
		s = new(BoardOp)
		s.c = c
		s.AdvanceFunc, s.CheckFunc = s.Advance, s.Check
	}
	c.seq++
	s.Args, s.seq, s.at, s.err = *a, c.seq, 0, nil
	s.generation = c.Chan.Generation()
	s.grouped, s.members = c.divides(a), 0
	s.filled, s.announced, s.waiting, s.fin, s.differs = false, false, false, false, false
	return s
}

// pairMost is the most bytes of a part that two ranks with a core each move by the board: a copy to it and one from it, one after the
// other, take longer than one by the kernel for more. Where copies by the kernel are slow, all that has room goes by the board.
const pairMost = 16 << 10

// copiesOnce reports whether two ranks copy data from rank to rank although the board has room for it.
func (c *Comm) copiesOnce(a *Args) bool {
	return c.Size == 2 && a.Bytes > pairMost && !c.slowKernel && (a.Op == 0 || a.Kind == KindReduce) && a.Objects == nil && a.Kind != KindComm &&
		c.singleCopy != singleCopyNo && !c.eng.CoresShared()
}

// Number returns the collective's number.
func (s *BoardOp) Number() uint32 { return s.seq }

// Name returns what the program has called.
func (s *BoardOp) Name() string { return s.Call.name() }

// Together starts a call that makes or frees an object: an allgather of what each rank contributes, which is of the same
// size at all ranks and may be of no bytes. If from is a rank, and not -1, this one waits for that rank only, and all is
// what that contributes. It returns nil if this has to use messages, as BoardOp does.
func (c *Comm) Together(mine, all p2p.Buf, from int) *BoardOp {
	return c.BoardOp(&Args{Call: Call{Kind: KindComm, Bytes: mine.Bytes()}, Send: mine, Recv: all, from: from + 1})
}

// Skip gives up the next collective, one by Together.
func (c *Comm) Skip() {
	c.seq++
	c.giveUp(c.seq)
}

// Pass counts the next collective, one by Together, that no rank takes part in.
func (c *Comm) Pass() {
	c.seq++
	c.done(c.seq)
}

// giveUp tells the other ranks that this one does not take part in the blocking collective k any more. The
// ranks' numbers still agree.
func (c *Comm) giveUp(k uint32) {
	c.done(k)
	c.refuse(k) // rings: those that wait look at done
}

// Release returns a completed collective to the communicator, which reuses it.
func (s *BoardOp) Release() { s.c.spareOp.Store(s) }

// need returns how many bytes a contributing rank publishes.
func (c *Comm) need(a *Args) int {
	n := a.Bytes
	if a.Op != 0 {
		e := a.elements()
		n = e.bytes()
	}
	switch a.Kind {
	case KindScatter, KindAlltoall:
		n *= c.Size
	}
	return n
}

// elements returns the operand of a reduction, without its address; for
// Reduce_scatter_block that is the blocks of all ranks.
func (a *Args) elements() elements {
	return elements{n: a.Send.Count * a.Send.Type.Elems(), kind: a.Send.Type.Kind(), size: a.Send.Type.ElemSize(), op: a.Op}
}

// Advance continues as far as it can without waiting and reports whether the
// collective has completed.
func (s *BoardOp) Advance() bool {
	if s.fin {
		return true
	}
	b := s.c.board
	if over, e := s.c.Chan.Ended(s.generation); e != nil { // the board is that of later collectives
		s.waiting = false // the reset has cleared the count
		if over {
			s.err, s.fin = e, true
		}
		return over
	}
	if !s.filled {
		if s.contributes() {
			n := s.c.need(&s.Args)
			if !b.room(s.seq, n) {
				b.wait(&s.waiting, true)
				if !b.room(s.seq, n) {
					return false
				}
			}
			if fault := sys.Touch(s.write); fault != nil {
				s.err = s.faulted(fault)
				b.publish(s.seq, &givenUp)
				s.c.ringOthers()
			} else {
				b.publish(s.seq, &s.Call)
				s.ring()
			}
		}
		b.wait(&s.waiting, false)
		s.filled = true
	}
	switch {
	case s.err != nil:
	case s.grouped:
		if !s.advanceGroups() {
			return false
		}
	case !s.advanceRanks():
		return false
	}
	if s.differs {
		s.refuse()
	}
	if s.err == nil {
		if s.needsAll() {
			b.learn(s.seq - 1)
		}
		if fault := sys.Touch(s.collected); fault != nil {
			s.err = s.faulted(fault)
		}
	}
	if s.err == nil && s.Kind == KindComm && s.Bytes > 0 {
		s.err = s.givenUp()
	}
	s.fin = true
	s.c.done(s.seq)
	return true
}

// collected reads what the others have published.
func (s *BoardOp) collected() {
	if s.grouped {
		s.readResult()
	} else {
		s.read()
	}
}

// advanceRanks is the part of Advance that waits for the others. It reports whether the wait is over.
func (s *BoardOp) advanceRanks() bool {
	b := s.c.board
	for ; s.err == nil && s.at < s.c.Size-1; s.at++ {
		r := s.c.after(s.at)
		if !s.needs(r) {
			continue
		}
		if !b.filled(r, s.seq) {
			return false
		}
		s.compareWith(r, b.slot(r, s.seq))
	}
	return true
}

// compareWith compares the call in slot p, of rank r, with the own one.
func (s *BoardOp) compareWith(r int, p *slot) {
	if s.err = s.c.board.compareSlot(&s.Call, p, r, s.seq, true); s.err != nil {
		s.differs = !s.c.board.gaveUp(r, s.seq)
	}
}

// givenUp returns an error if a rank that this one needs has given the collective up after it had contributed: what
// is made would lack that rank. This finds those that did so before the last rank came, which is when it happens.
func (s *BoardOp) givenUp() *errs.Error {
	for r := range s.c.Size {
		if s.needs(r) && s.c.board.refused(r, s.seq) {
			return s.c.refusedBy(&s.Call, r)
		}
	}
	return nil
}

// ring wakes the ranks that may wait for what this rank has published.
func (s *BoardOp) ring() {
	switch {
	case s.Kind == KindGather || s.Kind == KindReduce:
		s.c.ranks[s.Root].Ring()
	case s.grouped:
		g := s.c.board.groups
		if leader, _ := g.ranks(g.of(s.c.Rank), s.c.Size); leader == s.c.Rank {
			s.ringGroup() // they may stand in
		} else {
			s.c.ranks[leader].Ring()
		}
	default:
		s.c.ringOthers()
	}
}

// Err returns the error of a completed collective.
func (s *BoardOp) Err() *errs.Error { return s.err }

// Awaited returns the rank of the communicator that the collective waits for next, as far as Advance has found. It looks at nothing that other
// ranks write, so that a call can say what it waits for before each wait.
func (s *BoardOp) Awaited() int {
	if s.grouped {
		return s.awaitedInGroups()
	}
	return s.c.after(min(s.at, s.c.Size-2))
}

// Pending is Awaited that looks at other ranks' slots, if that is needed to find a rank that has not come.
func (s *BoardOp) Pending() int {
	if !s.grouped {
		return s.Awaited()
	}
	for i := range s.c.Size - 1 {
		if r := s.c.after(i); !s.c.board.filled(r, s.seq) {
			return r
		}
	}
	return s.c.after(0)
}

// Abandon gives the collective up. From here on the ranks' sequence numbers differ,
// until a collective reset, unless it is one of objects, or makes or frees an object.
func (s *BoardOp) Abandon() {
	if s.c.Chan.Dropped(s.generation) == nil {
		s.c.board.wait(&s.waiting, false)
		if (s.Objects != nil || s.Kind == KindComm) && !s.fin {
			s.c.giveUp(s.seq)
		}
	}
	s.fin = true
}

// Contributed reports whether other ranks may have read what this rank contributes.
func (s *BoardOp) Contributed() bool { return s.filled }

// Differs reports whether the collective has failed because another rank has made another call. Then each rank has
// taken the number of its own one.
func (s *BoardOp) Differs() bool { return s.differs }

// Check returns why the collective can't complete any more, nil if it can.
func (s *BoardOp) Check() error {
	if e := s.c.Chan.Revoked(); e != nil {
		s.Abandon()
		return e
	}
	if s.c.Chan.Dropped(s.generation) != nil {
		return nil // Advance ends it
	}
	b := s.c.board
	if !s.filled {
		for r := range b.ranks {
			if r != s.c.Rank && int32(atom.Load32(&b.ranks[r].done)-(s.seq-b.ahead(s.c.need(&s.Args)))) < 0 {
				if err := checkPeer(s.c.eng, s.c.Chan.World, r, &s.Call); err != nil {
					s.c.giveUp(s.seq) // others may await only this rank
					return err
				}
			}
		}
		return nil
	}
	s.announce()
	for r := range s.c.Size {
		if r == s.c.Rank {
			continue
		}
		if e := b.compare(&s.Call, r, s.seq); e != nil {
			s.differs = !b.gaveUp(r, s.seq)
			return s.mismatched(e)
		}
	}
	first := s.at
	if s.grouped {
		first = 0
		if s.standIn(); s.err != nil {
			return s.mismatched(s.err)
		}
	}
	for i := first; i < s.c.Size-1; i++ {
		r := s.c.after(i)
		if !s.needs(r) || b.filled(r, s.seq) {
			continue
		}
		if b.missed(r, s.seq) {
			s.Abandon()
			return s.c.refusedBy(&s.Call, r)
		}
		if err := checkPeer(s.c.eng, s.c.Chan.World, r, &s.Call); err != nil && !b.filled(r, s.seq) {
			return err
		}
	}
	return nil
}

// announce publishes at least the call of a rank that contributes no data, if there is room: two ranks that take each other for the root
// would wait for ever. A rank that reads it finds another call than its own, never data.
func (s *BoardOp) announce() {
	if b := s.c.board; !s.contributes() && !s.announced && b.room(s.seq, 0) {
		s.announced = true
		b.publish(s.seq, &s.Call)
		s.c.ringOthers()
	}
}

// refuse tells the others that this rank has made another call. They may await messages of this one, and look only when what this rank has
// published is overwritten already.
func (s *BoardOp) refuse() {
	s.announce()
	s.c.refuse(s.seq)
}

// mismatched gives the collective up because of another rank's call, and returns e.
func (s *BoardOp) mismatched(e *errs.Error) error {
	if s.Abandon(); s.differs {
		s.refuse()
	} else {
		s.c.done(s.seq) // the ranks' numbers still agree
	}
	return e
}
