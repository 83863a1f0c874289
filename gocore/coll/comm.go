package coll

import (
	"slices"
	"sync"
	"sync/atomic"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Comm is the part of a communicator that collectives need.
type Comm struct {
	Chan *p2p.Channel
	Rank int
	Size int
	Bar  *Barrier // nil: synchronise by messages
	// Sides divides the ranks of an intercommunicator; nil: there is one group.
	Sides *Sides

	eng         *engine.Engine
	ranks       []*job.Rank
	board       *Board  // nil: all collectives use messages
	ledger      *ledger // nil: there is a board, or Listen has not been called
	nodes       *nodes  // nil: the algorithms are flat, see Divide
	next        atomic.Pointer[starting]
	spareNext   atomic.Pointer[starting]
	spareOp     atomic.Pointer[BoardOp]
	spareCopies atomic.Pointer[spareCopies]
	seq         uint32 // number of collectives that this rank has called

	keptMu sync.Mutex
	kept   map[uint32]*Op // by number, those of objects between their steps

	// lost is whether a rank has ended, after engine.Ends ends: ends<<1, and 1 if one has.
	lost atomic.Uint64

	stranded   stranded
	singleCopy uint8  // whether the ranks can read each other's memory
	slowKernel bool   // and whether they all find that slow: kernelIsSlow
	word       uint64 // read by the other ranks to find that out
}

// UseBlock gives the communicator block i of the job's memory, for its barrier and its
// small collectives. All its ranks share memory (engine.AllLocal), and all use the block
// before any of them calls a collective.
func (c *Comm) UseBlock(e *engine.Engine, i int) {
	c.eng = e
	c.Bar = NewBarrier(e.Job, i, c.Chan.World)
	if c.Size >= groupsFrom && !e.CoresShared() {
		c.Bar.Divide(c.Rank, groupSize(c.Size))
	}
	c.ranks = c.Bar.ranks
	c.board = newBoard(e.Job, i, c.Size, c.Rank)
	if c.Size >= boardGroupsFrom && !e.CoresShared() {
		c.DivideBoard(boardGroup)
	}
	if c.ledger != nil {
		c.ledger = nil
		c.Chan.Listen(nil)
	}
}

// Listen makes this rank answer others that wait in a collective which it has not called
// yet, if the communicator has no board. Its first collective does that, too.
func (c *Comm) Listen() {
	if c.board == nil && c.ledger == nil && c.Size > 1 {
		c.ledger = newLedger(c.Chan, c.Sides)
	}
}

// Leave records that this rank does not use the block any more, if it has used one. It
// returns true on the last rank, which frees the block.
func (c *Comm) Leave() bool { return c.Bar != nil && c.Bar.Leave() }

// Calling sets the call that this rank is about to start, for the other ranks to
// compare with theirs.
func (c *Comm) Calling(call Call) { c.begins(call, nil) }

// begins sets what is known of the operation that starts next.
func (c *Comm) begins(call Call, objects *Objects) {
	next := c.spareNext.Swap(nil)
	if next == nil {
		next = new(starting)
	}
	*next = starting{call: call, hasCall: true, objects: objects}
	c.next.Store(next)
}

// starting is what is known of the operation that starts next.
type starting struct {
	call    Call
	hasCall bool
	objects *Objects

	continues          bool // it is another step of the collective with this number
	number, generation uint32
}

// done records that this rank reads no slot of collective k any more, and wakes the
// ranks that may wait for that.
func (c *Comm) done(k uint32) {
	if c.board.leave(k) {
		c.ringOthers()
	}
}

// refuse tells the other ranks that this one has given collective k up, by the board, and drops what they send to it for
// that: they may wait until it is received.
func (c *Comm) refuse(k uint32) {
	c.board.refuse(k)
	c.ringOthers()
	c.Chan.Listen(refusals{c})
	c.Chan.Drop(int(k&maxTag), c.Chan.Generation(), func(*fabric.Header) {})
}

// refusals is the listener of the channel of a rank that has refused a collective by the board.
type refusals struct{ c *Comm }

// Told implements p2p.Listener.
func (refusals) Told(*fabric.Header, []byte) {}

// Stray implements p2p.Listener: nobody receives a message of a collective that was refused.
func (l refusals) Stray(h *fabric.Header) bool {
	return h.Gen == l.c.Chan.Generation() && l.c.board.refusedTag(l.c.Rank, h.Tag)
}

// lostOne reports whether a rank of a communicator with a board has ended.
func (c *Comm) lostOne() bool {
	ends := uint64(c.eng.Ends())
	if ends == 0 {
		return false
	}
	known := c.lost.Load()
	if known>>1 != ends {
		known = ends << 1
		if slices.ContainsFunc(c.Chan.World, c.eng.Gone) {
			known |= 1
		}
		c.lost.Store(known)
	}
	return known&1 != 0
}

// after returns the i-th rank, from 0, of those that follow this one; the last of them is this one itself. A rank reads in this
// order what others have published on the board, so that they do not all load the same line, one after the other.
func (c *Comm) after(i int) int {
	r := c.Rank + 1 + i
	if r >= c.Size {
		r -= c.Size
	}
	return r
}

// ringOthers wakes the other ranks that sleep.
func (c *Comm) ringOthers() {
	for i, r := range c.ranks {
		if i != c.Rank {
			r.Ring()
		}
	}
}

// Restart makes the ranks' sequence numbers agree again. The collective reset calls it.
func (c *Comm) Restart() {
	c.seq = 0
	c.keptMu.Lock()
	clear(c.kept)
	c.keptMu.Unlock()
	c.stranded.forget()
	c.singleCopy, c.slowKernel = singleCopyUnknown, false // the reset may have interrupted the trial
	if c.board != nil {
		c.board.zero()
	}
	if c.ledger != nil {
		c.ledger.reset()
	}
}

// CheckBarrier returns why the barrier that this rank waits in can't complete, nil if
// it can.
func (c *Comm) CheckBarrier() error {
	if e := c.Chan.Revoked(); e != nil {
		return e
	}
	if err := c.Bar.Check(c.eng); err != nil {
		return err
	}
	if c.board == nil {
		return nil
	}
	// A rank can't be in the next collective without having passed the barrier.
	if r, theirs, found := c.board.other(c.seq + 1); found && !c.Bar.complete() {
		mine := Call{Kind: KindBarrier}
		return mine.mismatch(theirs, r, c.Sides)
	}
	return nil
}
