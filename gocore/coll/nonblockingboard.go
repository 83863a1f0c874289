package coll

import (
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// nonblockingBoard is the part of a Board by which nonblocking collectives of little data go. Many may be under way, and they complete
// in any order; several threads of a rank advance them.
//
// # Protocol
//
// Nonblocking collectives are numbered with the blocking ones (Board). A rank has NonblockingSlots slots, which it alone writes, and a
// word low: of its nonblocking collectives, all with numbers up to low have ended. In collective k it
//
//  1. raises low to the number before the lowest of its collectives that have not ended, k among them; stores k in done of the board;
//  2. if it contributes data: waits until low of every rank is at least the number of the last collective before k that has slot k mod
//     NonblockingSlots, so that none still reads what this rank has published for that, data or call, and none of that is still to be
//     published; writes data and call; stores the number k; rings all others. If it contributes none it publishes its call, if all have
//     ended that collective: at once, or while it waits;
//  3. if it needs data: waits until slot k mod NonblockingSlots of the ranks that contribute it has the number k, and reads;
//  4. raises low to the number before the lowest of its collectives that have not ended, and rings all ranks, itself too, if any waits
//     for room (waiters of the board).
//
// Any wait or test of a rank takes the steps that are possible in all its collectives. Step 2 waits for step 4 of collectives with
// lower numbers, and so do these: the lowest number that any rank has not ended has room at all ranks. So the waits form no cycle.
//
// A rank that ends collective k without having published data for it raises low past k: the others find that and its slot without
// k, and end k with an error. For ranks that have called another collective, which uses messages, it also remembers k in refused.
// A rank that has ended reads nothing, so nobody waits for its low.
//
// A rank that has published an error in place of its data (givenUp) is like one that has published data.
//
// A rank that has called another collective with the number k never reads what the others have published for k, and its low may stay
// below k. Step 1 of its next nonblocking collective raises it. The others wait for that one anyway: they wait for room in collectives that
// this rank has not called yet.
type nonblockingBoard struct {
	mu    sync.Mutex // of this rank's threads: for all that follows, and for the operations
	ranks []nonblockingRank
	data  unsafe.Pointer
	bytes int // size of the data of one slot
	me    int

	last    uint64                       // number of the last one that this rank has begun
	active  []uint64                     // those that have not ended, ascending
	claimed [job.NonblockingSlots]uint64 // the last ones that this rank has begun, by slot
	seen    uint64                       // low of all ranks is at least this
}

// nonblockingRank is what a rank writes. Its numbers are those of the collectives, in 64 bits: the last collective for which a slot was used may
// be more than 2^31 before the next one.
type nonblockingRank struct {
	slots [job.NonblockingSlots]slot
	low   uint64
	_     [56]byte
}

// init sets the board in a block of the job's memory, mem.
func (b *nonblockingBoard) init(seg *job.Segment, mem []byte, size, me int) {
	all := len(seg.Ranks)
	b.ranks = unsafe.Slice((*nonblockingRank)(unsafe.Pointer(&mem[job.NonblockingOffset(all)])), size)
	b.data = unsafe.Pointer(&mem[job.NonblockingDataOffset(all)])
	b.bytes = job.BoardSlotBytes(all)
	b.me = me
}

// zero clears the board. The collective reset calls it.
func (b *nonblockingBoard) zero() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := range b.ranks {
		for i := range b.ranks[r].slots {
			atom.Store64(&b.ranks[r].slots[i].word, 0)
		}
		atom.Store64(&b.ranks[r].low, 0)
	}
	b.last, b.active, b.seen = 0, nil, 0
	clear(b.claimed[:])
}

// slot returns rank r's slot of collective k.
func (b *nonblockingBoard) slot(r int, k uint32) *slot {
	return &b.ranks[r].slots[k%job.NonblockingSlots]
}

// place returns the address of rank r's data of collective k, which has n bytes.
func (b *nonblockingBoard) place(r int, k uint32, n int) unsafe.Pointer {
	if n <= shortSlot {
		return unsafe.Pointer(&b.slot(r, k).short)
	}
	return unsafe.Add(b.data, (r*job.NonblockingSlots+int(k%job.NonblockingSlots))*b.bytes)
}

// begin counts collective k as one that has not ended, and returns its number in 64 bits.
func (b *nonblockingBoard) begin(k uint32) (number uint64) {
	b.last += uint64(k - uint32(b.last))
	b.active = append(b.active, b.last)
	return b.last
}

// end counts collective number as one that has ended.
func (b *nonblockingBoard) end(number uint64) {
	if i := slices.Index(b.active, number); i >= 0 {
		b.active = slices.Delete(b.active, i, i+1)
	}
}

// raise stores low, and reports whether it has grown.
func (b *nonblockingBoard) raise() bool {
	low := b.last
	if len(b.active) > 0 {
		low = b.active[0] - 1
	}
	p := &b.ranks[b.me].low
	if atom.Load64(p) == low {
		return false
	}
	atom.Store64(p, low)
	return true
}

// claim makes a slot that of collective number, and returns the one that had it before.
func (b *nonblockingBoard) claim(number uint64) (before uint64) {
	p := &b.claimed[number%job.NonblockingSlots]
	before, *p = *p, number
	return before
}

// room reports whether all ranks have ended the collective that had a slot before. dead reports whether a rank has ended; nil: none has.
func (b *nonblockingBoard) room(before uint64, dead func(r int) bool) bool {
	if b.seen >= before {
		return true
	}
	lowest, room := b.last, true
	for r := range b.ranks { // this one, too: a reduction reads its own operand from the slot
		low := atom.Load64(&b.ranks[r].low)
		if low < before && (dead == nil || !dead(r)) {
			room = false
		}
		lowest = min(lowest, low)
	}
	b.seen = lowest
	return room
}

// publish makes this rank's call c, and the data that was written to place, visible to all ranks as collective number.
func (b *nonblockingBoard) publish(number uint64, c *Call) {
	p := b.slot(b.me, uint32(number))
	p.length = int64(c.Bytes)
	atom.Publish64(&p.word, number<<32|uint64(c.signature()))
}

// filled reports whether rank r has published for collective k.
func (b *nonblockingBoard) filled(r int, k uint32) bool {
	return uint32(atom.Load64(&b.slot(r, k).word)>>32) == k
}

// missed reports whether rank r, which is to publish data for collective number, will not do so.
func (b *nonblockingBoard) missed(r int, number uint64) bool {
	return atom.Load64(&b.ranks[r].low) >= number && !b.filled(r, uint32(number)) // in this order: the slot stays until this rank has ended the collective
}
