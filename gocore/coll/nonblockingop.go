package coll

import (
	"gormapy/gocore/errs"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// NonblockingOp is a nonblocking collective through the board; see nonblockingBoard for the protocol. It is safe for concurrent use: every
// thread that waits advances it, see engine.Background.
type NonblockingOp struct {
	boardData
	number     uint64 // seq in 64 bits
	before     uint64 // see nonblockingBoard.claim
	generation uint32 // a collective reset ends it
	filled     bool   // this rank has published its data, if it contributes any
	announced  bool   // this rank has published its call without data
	waiting    bool   // this operation is counted in Board.waiters
	ended      bool
	at         int // this rank has found so many others to have published, see Comm.after
	err        *errs.Error
}

// NonblockingOp starts a nonblocking collective through the board, or returns nil if it has to use messages: there is no board, or no room
// for the data. All ranks decide alike.
func (c *Comm) NonblockingOp(a *Args) *NonblockingOp {
	if c.board == nil || c.need(a) > c.board.nonblocking.bytes {
		return nil
	}
	c.seq++
	o := &NonblockingOp{boardData: boardData{Args: *a, c: c, seq: c.seq}, generation: c.Chan.Generation()}
	b := &c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	o.number = b.begin(o.seq)
	o.before = b.claim(o.number)
	o.raise()
	c.done(o.seq)
	o.advance()
	return o
}

// Advance continues as far as it can without waiting and reports whether the
// collective has completed.
func (o *NonblockingOp) Advance() bool {
	b := &o.c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.advance()
}

func (o *NonblockingOp) advance() bool {
	if o.ended {
		return true
	}
	if over, e := o.c.Chan.Ended(o.generation); e != nil { // the board is that of later collectives
		o.waiting = false // the reset has cleared the count
		if over {
			o.err, o.ended = e, true
		}
		return over
	}
	if (!o.filled && !o.publish(nil) || !o.complete()) && !o.hopeless() {
		return false
	}
	return true
}

// publish takes step 2 of the protocol, and reports whether it is done. dead is that of nonblockingBoard.room.
func (o *NonblockingOp) publish(dead func(r int) bool) bool {
	board, b := o.c.board, &o.c.board.nonblocking
	if !o.contributes() {
		o.filled = true
		o.announce(dead)
		return true
	}
	if !b.room(o.before, dead) {
		board.wait(&o.waiting, true)
		if !b.room(o.before, dead) {
			return false
		}
	}
	board.wait(&o.waiting, false)
	o.filled = true
	if fault := sys.Touch(o.write); fault != nil {
		o.err = o.faulted(fault)
		b.publish(o.number, &givenUp)
	} else {
		b.publish(o.number, &o.Call)
	}
	o.c.ringOthers()
	return true
}

// announce publishes the call of a rank that contributes no data, if there is room: two ranks that take each other for the root would wait
// for ever. dead is that of nonblockingBoard.room.
func (o *NonblockingOp) announce(dead func(r int) bool) {
	if b := &o.c.board.nonblocking; !o.announced && b.room(o.before, dead) {
		o.announced = true
		b.publish(o.number, &o.Call)
	}
}

// complete takes the steps 3 and 4, and reports whether they are done.
func (o *NonblockingOp) complete() bool {
	b := &o.c.board.nonblocking
	for ; o.err == nil && o.at < o.c.Size-1; o.at++ {
		r := o.c.after(o.at)
		if !o.needs(r) {
			continue
		}
		if !b.filled(r, o.seq) {
			return false
		}
		p := b.slot(r, o.seq)
		if o.err = o.c.board.compareSlot(&o.Call, p, r, o.seq, true); o.err != nil && callOf(uint32(atom.Load64(&p.word))).Kind != KindGiveUp {
			o.c.refuse(o.seq) // as BoardOp.refuse
		}
	}
	if o.err == nil {
		if fault := sys.Touch(o.read); fault != nil {
			o.err = o.faulted(fault)
		}
	}
	o.end()
	return true
}

// end takes step 4.
func (o *NonblockingOp) end() {
	o.ended = true
	o.c.board.nonblocking.end(o.number)
	o.raise()
}

// raise raises low, and wakes the ranks that may wait for that: this one, too, since a later collective may await its own slot.
func (o *NonblockingOp) raise() {
	if o.c.board.nonblocking.raise() && atom.Load32(o.c.board.waiters) != 0 {
		for _, r := range o.c.ranks {
			r.Ring()
		}
	}
}

// hopeless ends the collective if it can't complete: a rank that it waits for has ended, or the communicator was revoked. It reports whether
// the collective has ended.
func (o *NonblockingOp) hopeless() bool {
	if e := o.c.Chan.Revoked(); e != nil {
		o.giveUp(e)
		return true
	}
	if !o.c.lostOne() {
		return false
	}
	if !o.filled && o.publish(o.dead) && o.complete() {
		return true
	}
	if e := o.stuck(); e != nil {
		o.giveUp(e)
		return true
	}
	return false
}

// dead reports whether a rank has ended.
func (o *NonblockingOp) dead(r int) bool { return o.c.eng.Gone(o.c.Chan.World[r]) }

// giveUp ends the collective with an error, or with none because the program has given it up.
func (o *NonblockingOp) giveUp(e *errs.Error) {
	o.err = e
	o.c.board.wait(&o.waiting, false)
	o.c.refuse(o.seq)
	o.end()
	o.c.ringOthers() // they look at low
}

// Check returns why the collective can't complete any more, nil if it can.
func (o *NonblockingOp) Check() error {
	b := &o.c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.ended || o.c.Chan.Dropped(o.generation) != nil {
		return nil // Advance ends it
	}
	e := o.c.Chan.Revoked()
	if e == nil {
		e = o.stuck()
	}
	if e == nil {
		return nil
	}
	o.giveUp(e)
	return e
}

// stuck returns why the collective can't complete, nil if it can.
func (o *NonblockingOp) stuck() *errs.Error {
	board, b := o.c.board, &o.c.board.nonblocking
	if o.filled && !o.contributes() {
		o.announce(o.dead)
	}
	for r := range o.c.Size {
		if r == o.c.Rank {
			continue
		}
		if e := board.compare(&o.Call, r, o.seq); e != nil {
			return e
		}
	}
	failed := o.failed()
	for i := o.at; i < o.c.Size-1; i++ {
		r := o.c.after(i)
		if !o.needs(r) || b.filled(r, o.seq) {
			continue
		}
		if b.missed(r, o.number) || board.refused(r, o.seq) && !b.filled(r, o.seq) {
			return o.c.refusedBy(&o.Call, r)
		}
		gone := r
		if !o.dead(r) {
			if failed < 0 || int32(atom.Load32(&board.ranks[r].done)-o.seq) >= 0 {
				continue
			}
			gone = failed // r need not call this any more, see Op.deserted
		}
		if !b.filled(r, o.seq) {
			return errs.New(errs.ProcFailed, "%s can't complete: %s", o.name(), howEnded(o.c.eng, o.c.Chan.World, gone))
		}
	}
	return nil
}

// failed returns a rank that has failed, if no rank completes the collective before all have called it; else -1.
func (o *NonblockingOp) failed() int {
	if o.Kind.Rooted() || o.Kind == KindScan || o.Kind == KindExscan {
		return -1
	}
	for r := range o.c.Size {
		if o.c.Chan.Failed(r) {
			return r
		}
	}
	return -1
}

// Abandon gives the collective up. The ranks' sequence numbers still agree.
func (o *NonblockingOp) Abandon() {
	b := &o.c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o.ended:
	case o.c.Chan.Dropped(o.generation) != nil:
		o.ended = true
	default:
		o.giveUp(nil)
	}
}

// Err returns the error of a completed collective.
func (o *NonblockingOp) Err() *errs.Error { return o.err }

// Active reports whether the collective has not ended.
func (o *NonblockingOp) Active() bool {
	b := &o.c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	return !o.ended
}

// Complete reports whether the collective has completed without an error.
func (o *NonblockingOp) Complete() bool {
	b := &o.c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.ended && o.err == nil
}

// Context returns the context of the communicator's collectives.
func (o *NonblockingOp) Context() uint32 { return o.c.Chan.Ctx }

// Awaited returns the world rank that the collective waits for.
func (o *NonblockingOp) Awaited() int {
	b := &o.c.board.nonblocking
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.c.Chan.World[o.c.after(min(o.at, max(o.c.Size-2, 0)))]
}
