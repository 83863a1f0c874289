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
//
// # Groups
//
// Both words go from rank to rank, one after the other, which takes as long as there are ranks. From groupsFrom ranks on a
// barrier is divided into groups (Divide), each of which has both words for itself; those of the block are of groups.
// The lowest rank of a group is its leader. In its k-th barrier a rank
//
//  1. adds one to its group's arrived; if that makes k times the number of the group's ranks, it adds one to the
//     block's arrived; if that makes k times the number of groups, it stores k in the block's released, releases its
//     group, and rings the leaders;
//  2. else waits until its group's released is k. The leader also looks at the block's released; once that is k, it
//     releases the group.
//
// To release a group is to store k in its released, and to ring its ranks. Any of its ranks may do so that has found k in
// the block's released, and several may: they store the same number, and no rank enters barrier k+1 before it has stored.
// So a leader that has died, or was interrupted and does not look, holds nobody up for long: the check of a rank's wait,
// which comes before each sleep, looks at the block's released too.
//
// A rank that dies before its group is counted in the block's arrived leaves all others waiting, as in a barrier that is
// not divided.
type Barrier struct {
	words  *barrierWords
	group  *groupWords // of this rank's group; nil: the barrier is not divided
	groups []groupWords
	size   uint32 // number of arrivals, of groups or of ranks
	own    uint32 // number of ranks in this rank's group
	first  int    // the lowest of them
	most   int    // number of ranks in each group but the last one
	leads  bool
	count  uint32 // number of barriers that this rank has entered
	ranks  []*job.Rank
	World  []int
	Index  int // number of the block
}

type barrierWords struct {
	arrived  uint32
	_        [60]byte
	released uint32
	left     uint32 // number of ranks that do not use the block any more
	_        [56]byte
}

type groupWords struct {
	arrived  uint32
	_        [60]byte
	released uint32
	_        [60]byte
}

// NewBarrier returns the calling rank's view of the barrier in block i.
func NewBarrier(seg *job.Segment, i int, world []int) *Barrier {
	mem := seg.Block(i)
	b := &Barrier{words: (*barrierWords)(unsafe.Pointer(&mem[0])), size: uint32(len(world)), World: world, Index: i}
	b.groups = unsafe.Slice((*groupWords)(unsafe.Pointer(&mem[job.BarrierGroupsOffset])), job.BarrierGroups(len(seg.Ranks)))
	for _, w := range world {
		b.ranks = append(b.ranks, &seg.Ranks[w])
	}
	return b
}

// groupsFrom is the number of ranks from which on barriers are divided, if each rank has a core: ranks without one sleep, and
// in groups there is one more that has to be woken before the others can be. By the model (package cachemodel) there are 15
// transfers on the critical path of 32 ranks in groups, and 33 without: the first number of ranks at which that is more than
// the model's error, a factor of 2. Of 16 ranks there are 13, and 17.
const groupsFrom = 32

// groupSize returns the number of ranks in each group of a barrier of n: about as many as there are groups, so that
// none of the words goes to more ranks than another.
func groupSize(n int) int {
	size := job.LeastBarrierGroup
	for size*size < n {
		size *= 2
	}
	return size
}

// Divide divides the barrier into groups of size ranks. me is the calling one. All ranks do so alike, and before
// the first barrier.
func (b *Barrier) Divide(me, size int) {
	all := len(b.ranks)
	b.groups = b.groups[:(all+size-1)/size]
	b.group = &b.groups[me/size]
	b.first, b.most = me/size*size, size
	b.own = uint32(min(size, all-b.first))
	b.size = uint32(len(b.groups))
	b.leads = me == b.first
}

// Arrive enters the next barrier and returns true if it is complete already.
func (b *Barrier) Arrive() bool {
	b.count++
	if b.group != nil && atom.Add32(&b.group.arrived, 1) != b.count*b.own {
		return b.Passed()
	}
	if atom.Add32(&b.words.arrived, 1) != b.count*b.size {
		return b.Passed()
	}
	atom.Store32(&b.words.released, b.count)
	if b.group == nil {
		for _, r := range b.ranks {
			r.Ring()
		}
		return true
	}
	b.release()
	for i := 0; i < len(b.ranks); i += b.most {
		b.ranks[i].Ring()
	}
	return true
}

// release releases this rank's group.
func (b *Barrier) release() {
	atom.Store32(&b.group.released, b.count)
	for _, r := range b.ranks[b.first : b.first+int(b.own)] {
		r.Ring()
	}
}

// Passed reports whether the barrier that this rank entered last is complete.
func (b *Barrier) Passed() bool {
	if b.group == nil {
		return atom.Load32(&b.words.released) == b.count
	}
	return atom.Load32(&b.group.released) == b.count || b.leads && b.stand()
}

// stand does for this rank's group what its leader does, if the barrier is complete. It reports whether it is.
func (b *Barrier) stand() bool {
	if b.group == nil || atom.Load32(&b.words.released) != b.count {
		return false
	}
	b.release()
	return true
}

// complete is Passed of a rank that does not only wait for its leader.
func (b *Barrier) complete() bool { return b.Passed() || b.stand() }

// Zero clears the barrier. It is called only between the two halves of a collective
// reset, when no rank uses it. Every rank calls it, because any of them may have ended.
func (b *Barrier) Zero() {
	b.count = 0
	atom.Store32(&b.words.arrived, 0)
	atom.Store32(&b.words.released, 0)
	if b.group != nil {
		for i := range b.groups {
			atom.Store32(&b.groups[i].arrived, 0)
			atom.Store32(&b.groups[i].released, 0)
		}
	}
}

// Check returns why the barrier can't complete, nil if it can: a rank has ended before
// it entered the barrier. A wait calls it before each sleep, see Barrier.
func (b *Barrier) Check(e *engine.Engine) error {
	if b.complete() {
		return nil
	}
	for i, w := range b.World {
		if e.Gone(w) && !b.complete() {
			return errs.New(errs.ProcFailed, "the barrier can't complete: %s", howEnded(e, b.World, i))
		}
	}
	return nil
}

// Leave records that this rank does not use the block any more. It returns true on the
// last rank, which frees the block.
func (b *Barrier) Leave() bool { return atom.Add32(&b.words.left, 1) == uint32(len(b.ranks)) }
