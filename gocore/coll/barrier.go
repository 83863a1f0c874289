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
// There are two words, which only grow (modulo 2^32): arrived counts the arrivals of
// all ranks, released the complete barriers. Each rank counts its own barriers. In its
// k-th barrier (from 1) a rank
//
//  1. adds one to arrived; if that makes k times the number of ranks, it is the
//     last: it stores k in released and rings the doorbells of the sleeping ranks;
//  2. else waits until released is k (it can't be more: barrier k+1 needs this rank).
//
// No rank can arrive for the (k+1)-th time before released is k, so arrived never
// mixes two barriers, and no barrier has to reset the words. A rank that dies inside
// leaves the others waiting, until the check of their wait ends that. After a
// Ctrl-C inside, the counts do not agree: the collective reset zeroes them.
type Barrier struct {
	words *barrierWords
	size  uint32
	count uint32 // number of barriers that this rank has entered
	ranks []*job.Rank
	World []int
	Index int // number of the block
}

type barrierWords struct {
	arrived  uint32
	_        [60]byte
	released uint32
	left     uint32 // number of ranks that do not use the block any more
	_        [56]byte
}

// NewBarrier returns the calling rank's view of the barrier in block i.
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

// Zero clears the barrier. It is called only between the two halves of a collective
// reset, when no rank uses it. Every rank calls it, because any of them may have ended.
func (b *Barrier) Zero() {
	b.count = 0
	atom.Store32(&b.words.arrived, 0)
	atom.Store32(&b.words.released, 0)
}

// Check returns why the barrier can't complete, nil if it can: a rank has ended before
// it entered the barrier.
func (b *Barrier) Check(e *engine.Engine) error {
	for i, w := range b.World {
		if e.Gone(w) && !b.Passed() {
			return errs.New(errs.ProcFailed, "the barrier can't complete: %s (rank %d of the communicator)", e.HowGone(w), i)
		}
	}
	return nil
}

// Leave records that this rank does not use the block any more. It returns true on the
// last rank, which frees the block.
func (b *Barrier) Leave() bool { return atom.Add32(&b.words.left, 1) == b.size }
