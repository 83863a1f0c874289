package coll

import (
	"sync/atomic"

	"gormapy/gocore/engine"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Comm is the part of a communicator that collectives need.
type Comm struct {
	Chan *p2p.Channel
	Rank int
	Size int
	Bar  *Barrier // nil: synchronise by messages

	eng      *engine.Engine
	ranks    []*job.Rank
	board    *Board   // nil: all collectives use messages
	block    *Barrier // the barrier in the block that has the board, even if Bar is nil
	remote   bool     // ranks are reached by a network: board has calls but no data
	nextCall *Call    // the call that starts next, see Calling
	spareOp  atomic.Pointer[BoardOp]
	seq      uint32 // number of collectives that this rank has called

	singleCopy uint8  // whether the ranks can read each other's memory
	word       uint64 // read by the other ranks to find that out
}

// Attach gives the communicator block i of the job's memory, for its barrier
// and its small collectives. If its ranks are reached by a network, the block is only
// used to detect that another rank on the same host has called another collective. All
// ranks of the communicator attach before any of them calls a collective.
func (c *Comm) UseBlock(e *engine.Engine, i int) {
	c.eng = e
	c.block = NewBarrier(e.Job, i, c.Chan.World)
	if c.remote = !e.AllLocal(c.Chan.World); !c.remote {
		c.Bar = c.block
	}
	c.ranks = c.block.ranks
	c.board = newBoard(e.Job, i, c.Size, c.Rank)
}

// Leave records that this rank does not use the block any more. It returns true on the
// last rank, which frees the block.
func (c *Comm) Leave() bool { return c.block.Leave() }

// Calling sets the call that this rank is about to start, for the other ranks to
// compare with theirs.
func (c *Comm) Calling(call Call) { c.nextCall = &call }

// done records that this rank reads no slot of collective k any more, and wakes the
// ranks that may wait for that.
func (c *Comm) done(k uint32) {
	if c.board.leave(k) {
		c.ringOthers()
	}
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
	c.singleCopy = singleCopyUnknown // the reset may have interrupted the trial
	if c.board != nil {
		c.board.zero()
	}
}

// CheckBarrier returns why the barrier that this rank waits in can't complete, nil if
// it can.
func (c *Comm) CheckBarrier() error {
	if err := c.Bar.Check(c.eng); err != nil {
		return err
	}
	if c.board == nil {
		return nil
	}
	// A rank can't be in the next collective without having passed the barrier.
	if r, theirs, found := c.board.other(c.seq + 1); found && !c.Bar.Passed() {
		mine := Call{Kind: KindBarrier}
		return mine.mismatch(theirs, r)
	}
	return nil
}
