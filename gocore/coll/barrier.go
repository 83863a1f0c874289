package coll

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// Barrier is a barrier of ranks that share a block of the job's memory.
//
// # Protocol
//
// Two words, both only ever growing (modulo 2^32): arrived, how often any rank
// came, and released, how many barriers are complete. Each rank counts its own
// barriers. In its k-th barrier (from 1) a rank
//
//  1. adds one to arrived; if that makes k times the number of ranks, it is the
//     last: it stores k in released and rings the doorbells of those who sleep;
//  2. else waits until released is k (it can't be more: barrier k+1 needs us).
//
// No rank can come for the (k+1)-th time before released is k, so arrived never
// mixes two barriers, and nothing is ever set back. A rank that dies inside
// leaves the others waiting; they end by the check of their wait. After a
// Ctrl-C inside, the counts are out of step: the collective reset zeroes them.
type Barrier struct {
	words *barrierWords
	size  uint32
	count uint32 // barriers this rank has come to
	ranks []*job.Rank
	World []int
	Index int // number of the block
}

type barrierWords struct {
	arrived  uint32
	_        [60]byte
	released uint32
	left     uint32 // ranks that are done with the block
	_        [56]byte
}

// NewBarrier makes the calling rank's view of block i.
func NewBarrier(seg *job.Segment, i int, world []int) *Barrier {
	b := &Barrier{words: (*barrierWords)(unsafe.Pointer(&seg.Block(i)[0])), size: uint32(len(world)), World: world, Index: i}
	for _, w := range world {
		b.ranks = append(b.ranks, &seg.Ranks[w])
	}
	return b
}

// Arrive enters the next barrier and returns true if it is complete already.
func (b *Barrier) Arrive() bool {
	b.count++
	if atom.Add32(&b.words.arrived, 1) != b.count*b.size {
		return b.Passed()
	}
	atom.Store32(&b.words.released, b.count)
	for _, r := range b.ranks {
		r.Ring()
	}
	return true
}

// Passed reports whether the barrier that this rank entered last is complete.
func (b *Barrier) Passed() bool { return atom.Load32(&b.words.released) == b.count }

// Zero sets the barrier back; only between the two halves of a collective reset, in
// which nobody uses it. Each rank does so, for any of them may have ended.
func (b *Barrier) Zero() {
	b.count = 0
	atom.Store32(&b.words.arrived, 0)
	atom.Store32(&b.words.released, 0)
}

// Check tells why the barrier can't complete: a rank has ended outside of it.
func (b *Barrier) Check(e *engine.Engine) error {
	for i, w := range b.World {
		if e.Gone(w) && !b.Passed() {
			return errs.New(errs.ProcFailed, "the barrier can't complete: %s (rank %d of the communicator)", e.HowGone(w), i)
		}
	}
	return nil
}

// Leave says that this rank is done with the block for good; true for the last
// one, who gives it back.
func (b *Barrier) Leave() bool { return atom.Add32(&b.words.left, 1) == b.size }
