package coll

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/sys/atom"
)

// Board is shared memory in which the ranks of a communicator publish the data of
// small collectives for the others to read. It is part of the communicator's block of
// the job's memory.
//
// # Protocol
//
// Each rank numbers the collectives on a communicator 1, 2, 3…; MPI requires that all
// ranks call them in the same order, so these sequence numbers agree. A rank has
// BoardSlots slots, which it alone writes, and a word done. In the blocking collective
// k it
//
//  1. if it contributes data: waits until done of every other rank is at least
//     k-BoardSlots, or that rank has published for a later collective than that, so that no
//     rank still reads what its slot k mod BoardSlots had before; writes data and call; stores the number k; rings the ranks that may
//     wait for it;
//  2. if it needs data: waits until slot k mod BoardSlots of the ranks that contribute
//     it has the number k, and reads;
//  3. stores k in done, and rings all others if any rank waits for room (waiters).
//
// Data of more than BoardSlotBytes is stored in one of LongSlots long slots of the
// rank: for it step 1 waits until done is at least k-LongSlots.
//
// A rank is in one blocking collective at a time, so done only grows. A rank that
// waits in step 1 waits for ranks in earlier collectives, and the earliest of these
// waits for none, so the waits form no cycle. A nonblocking collective must not delay
// later ones until its own wait, therefore it has slots of its own (nonblockingBoard). It uses messages if its data
// does not fit, and so does a blocking one. Collectives by messages, and nonblocking ones, store k in done at their start. Those by
// messages publish their call without data if there is room at that time, so that others can see that it is not theirs.
//
// A rank that gives up collective k, if that is one of objects or makes or frees an object, stores k in done, and then rings
// all others: they find that it is done and has not filled its slot. It also remembers k in refused, for steps of k that
// follow by messages, and for ranks that find its slot filled. Numbers still agree. So does a rank that has no room for collective k
// because another one has ended: most others may await only its slot. Ranks that can't read what others have
// published remember k there, too (singlecopy.go).
//
// A rank that ends collective k, which uses messages, because another one has ended remembers k in refused, too: only few await the
// rank that has ended, and these await others. A rank that awaits one that has refused k, and has got what that sent before, ends k
// likewise. All that have called k look for this in each poll if a rank has ended, whatever their programs wait for.
//
// A board of many ranks is divided into groups for some collectives (boardGroups).
//
// Numbers and done are compared modulo 2^32. A rank that dies in step 1 has published
// nothing; one that dies before step 3 leaves the others waiting, until the check of
// their wait ends that. A slot's number and the signature of its call are one word, so
// that a rank can read both without waiting. The slot may change meanwhile.
type Board struct {
	waiters   *uint32 // number of operations that wait for room
	ranks     []boardRank
	data      unsafe.Pointer
	bytes     int // size of the data of one slot
	long      unsafe.Pointer
	longBytes int          // size of the data of a long slot; 0: there are none
	groups    *boardGroups // nil: it is not divided
	me        int

	nonblocking nonblockingBoard

	seen uint32 // no other rank reads slots of collectives up to this
}

type boardRank struct {
	slots   [job.BoardSlots]slot
	done    uint32
	refused [refusedWords]uint64 // the collectives that the rank gave up and said so, see refuse
}

// refusedWords is how many words remember refused collectives. A word is about refusedSpan collectives that follow each other:
// many may be in progress when a rank ends, and all end with that.
const (
	refusedWords = 7
	refusedSpan  = 32
)

// slot is one cache line; data that does not fit is stored in the block's data.
type slot struct {
	word   uint64 // number<<32 | signature
	length int64  // Call.Bytes
	short  [shortSlot]byte
}

const shortSlot = 48

// newBoard returns rank me's view of the board in block i.
func newBoard(seg *job.Segment, i int, size, me int) *Board {
	mem := seg.Block(i)
	all := len(seg.Ranks)
	b := &Board{
		waiters:   (*uint32)(unsafe.Pointer(&mem[2*64])),
		ranks:     unsafe.Slice((*boardRank)(unsafe.Pointer(&mem[job.BoardOffset(all)])), size),
		data:      unsafe.Pointer(&mem[job.BoardDataOffset(all)]),
		bytes:     job.BoardSlotBytes(all),
		long:      unsafe.Pointer(&mem[min(job.LongSlotDataOffset(all), len(mem)-1)]),
		longBytes: job.LongSlotBytes(all),
		me:        me,
	}
	b.nonblocking.init(seg, mem, size, me)
	return b
}

// slot returns rank r's slot of collective k.
func (b *Board) slot(r int, k uint32) *slot { return &b.ranks[r].slots[k%job.BoardSlots] }

// place returns the address of rank r's data of collective k, which has n bytes.
func (b *Board) place(r int, k uint32, n int) unsafe.Pointer {
	i := int(k % job.BoardSlots)
	switch {
	case n <= shortSlot:
		return unsafe.Pointer(&b.ranks[r].slots[i].short)
	case n <= b.bytes:
		return unsafe.Add(b.data, (r*job.BoardSlots+i)*b.bytes)
	}
	return unsafe.Add(b.long, (r*job.LongSlots+int(k%job.LongSlots))*b.longBytes)
}

// holds reports whether n bytes of data have a place on the board.
func (b *Board) holds(n int) bool { return n <= max(b.bytes, b.longBytes) }

// ahead returns how many collectives a rank that publishes n bytes can be ahead of the
// others.
func (b *Board) ahead(n int) uint32 {
	if n > b.bytes {
		return job.LongSlots
	}
	return job.BoardSlots
}

// room reports whether this rank may write its slot for collective k, with n bytes of
// data.
func (b *Board) room(k uint32, n int) bool {
	free := k - b.ahead(n)
	if int32(b.seen-free) >= 0 {
		return true
	}
	lowest := k
	for r := range b.ranks {
		if d := atom.Load32(&b.ranks[r].done); r != b.me && int32(d-lowest) < 0 {
			lowest = d
		}
	}
	b.seen = lowest
	return int32(lowest-free) >= 0
}

// learn records that no other rank reads slots of collectives up to k: all have published for k+1, which a rank does when it
// has finished k, or all have k in done. So room need not look at the done of all ranks, each of which has been written
// since.
func (b *Board) learn(k uint32) {
	if int32(k-b.seen) > 0 {
		b.seen = k
	}
}

// wait counts an operation in waiters, those that wait for the others' done, or takes
// it off. counted is whether the operation is in waiters, yes whether it is to be.
func (b *Board) wait(counted *bool, yes bool) {
	if *counted == yes {
		return
	}
	if *counted = yes; yes {
		atom.Add32(b.waiters, 1)
	} else {
		atom.Add32(b.waiters, ^uint32(0))
	}
}

// publish makes this rank's call c, and the data that was written to place, visible to
// all ranks as collective k.
func (b *Board) publish(k uint32, c *Call) {
	p := b.slot(b.me, k)
	p.length = int64(c.Bytes)
	atom.Publish64(&p.word, uint64(k)<<32|uint64(c.signature()))
}

// filled reports whether rank r has published for collective k.
func (b *Board) filled(r int, k uint32) bool {
	return uint32(atom.Load64(&b.slot(r, k).word)>>32) == k
}

// refuse records that this rank gives up collective k, which uses messages, is one that can be refused, or is one in which
// it can't read another rank's memory. If the rank has stored k in done, its slots may belong to later collectives by now, or
// have no room: so refusals have words of their own beside the slots.
//
// The word of collective k has the number of the first one that it is about, and a bit for each. Only this rank writes it, maybe
// by several threads.
func (b *Board) refuse(k uint32) {
	first := k &^ (refusedSpan - 1)
	p := &b.ranks[b.me].refused[first/refusedSpan%refusedWords]
	for {
		old := atom.Load64(p)
		bits := uint32(1) << (k - first)
		if uint32(old>>32) == first {
			bits |= uint32(old)
		}
		if atom.CAS64(p, old, uint64(first)<<32|uint64(bits)) {
			return
		}
	}
}

// refused reports whether rank r has given up collective k.
func (b *Board) refused(r int, k uint32) bool {
	first := k &^ (refusedSpan - 1)
	word := atom.Load64(&b.ranks[r].refused[first/refusedSpan%refusedWords])
	return uint32(word>>32) == first && uint32(word)>>(k-first)&1 != 0
}

// refusedTag reports whether rank r has given up a collective whose messages have this tag.
func (b *Board) refusedTag(r int, tag int32) bool {
	for i := range b.ranks[r].refused {
		word := atom.Load64(&b.ranks[r].refused[i])
		if at := uint32(tag) - uint32(word>>32)&maxTag; at < refusedSpan && uint32(word)>>at&1 != 0 {
			return true
		}
	}
	return false
}

// missed reports whether rank r, which is to publish for collective k, will not do so: it has given that up.
func (b *Board) missed(r int, k uint32) bool {
	return int32(atom.Load32(&b.ranks[r].done)-k) >= 0 && !b.filled(r, k) // in this order: the slot stays until this rank is done
}

// gaveUp reports whether rank r has published that it can't take part in collective k.
func (b *Board) gaveUp(r int, k uint32) bool {
	word := atom.Load64(&b.slot(r, k).word)
	return uint32(word>>32) == k && callOf(uint32(word)).Kind == KindGiveUp
}

// source returns where rank r publishes the place of its data of collective k.
func (b *Board) source(r int, k uint32) *source { return (*source)(b.place(r, k, sourceBytes)) }

// retract records that this rank has given up collective k, if it has published a source for it, and may change what that offers to
// the others. The compare-and-swap orders that behind it.
func (b *Board) retract(k uint32) {
	if b.filled(b.me, k) {
		atom.CAS32(&b.source(b.me, k).retracted, 0, 1)
	}
}

// retracted reports whether rank r has retracted its source of collective k, which this rank has not left.
func (b *Board) retracted(r int, k uint32) bool { return atom.Load32(&b.source(r, k).retracted) != 0 }

// leave records that this rank reads nothing of collective k any more. It reports
// whether any rank waits for room.
func (b *Board) leave(k uint32) (awaited bool) {
	atom.Store32(&b.ranks[b.me].done, k)
	return atom.Load32(b.waiters) != 0
}

// compare returns an error if rank r has published another call than mine for
// collective k.
func (b *Board) compare(mine *Call, r int, k uint32) *errs.Error {
	if e := b.compareSlot(mine, b.slot(r, k), r, k, false); e != nil {
		return e
	}
	return b.compareSlot(mine, b.nonblocking.slot(r, k), r, k, false)
}

// compareSlot is compare for the call in slot p. exact means that the slot can't change meanwhile.
func (b *Board) compareSlot(mine *Call, p *slot, r int, k uint32, exact bool) *errs.Error {
	word := atom.Load64(&p.word)
	if uint32(word>>32) != k || uint32(word) == mine.signature() && (!exact || int(p.length) == mine.Bytes) {
		return nil
	}
	theirs := callOf(uint32(word))
	switch {
	case theirs.Bytes < 0:
	case exact, uint32(word)&signBytes != mine.signature()&signBytes:
		theirs.Bytes = int(p.length)
	default:
		theirs.Bytes = mine.Bytes
	}
	return mine.mismatch(theirs, r, nil)
}

// other returns the lowest other rank that has published for collective k, and its
// call.
func (b *Board) other(k uint32) (rank int, c Call, found bool) {
	for r := range b.ranks {
		for _, p := range [...]*slot{b.slot(r, k), b.nonblocking.slot(r, k)} {
			if word := atom.Load64(&p.word); r != b.me && uint32(word>>32) == k {
				c = callOf(uint32(word))
				if c.Bytes >= 0 {
					c.Bytes = int(p.length)
				}
				return r, c, true
			}
		}
	}
	return 0, Call{}, false
}

// zero clears the board. The collective reset calls it.
func (b *Board) zero() {
	atom.Store32(b.waiters, 0)
	for r := range b.ranks {
		for i := range b.ranks[r].slots {
			atom.Store64(&b.ranks[r].slots[i].word, 0)
		}
		atom.Store32(&b.ranks[r].done, 0)
		for i := range b.ranks[r].refused {
			atom.Store64(&b.ranks[r].refused[i], 0)
		}
	}
	if b.groups != nil {
		b.groups.operands.zero()
		b.groups.results.zero()
	}
	b.seen = 0
	b.nonblocking.zero()
}

// howEnded says how rank r has ended, and which others have.
func howEnded(e *engine.Engine, world []int, r int) string {
	var one *Sides
	how := func(i int) (string, bool) { return e.HowEnded(world[i]) }
	return fmt.Sprintf("%s (%s)%s", e.HowGone(world[r]), one.Name(r), othersEnded(len(world), r, how, one.Name))
}

// checkPeer returns an error if rank r, which collective c waits for, has ended.
func checkPeer(e *engine.Engine, world []int, r int, c *Call) error {
	if e.Gone(world[r]) {
		return errs.New(errs.ProcFailed, "%s can't complete: %s", c.name(), howEnded(e, world, r))
	}
	return nil
}

// The signature of a call has kind, nonblocking, op, elem and root, and a hash of Bytes,
// 0 for -1.
const (
	signNonblocking = 5
	signOp          = signNonblocking + 1
	signElem        = signOp + opBits
	signRoot        = signElem + elemBits
	signHash        = signRoot + 9
	signBytes       = uint32(0x7f << signHash)
)

// All kinds of elements and operations fit their bits, and so do all ranks that share
// memory, which alone have a board. Messages have room for more, see label.go.
var (
	_ [1<<elemBits - 1 - heads]struct{}
	_ [1<<opBits - 1 - op.NoOp]struct{}
	_ [1<<5 - kinds]struct{}
	_ [1<<(signHash-signRoot) - job.MaxRanks]struct{}
)

func (c *Call) signature() uint32 {
	s := uint32(c.Kind) | uint32(c.Op)<<signOp | uint32(c.Elem)<<signElem | uint32(c.Root)<<signRoot
	if c.Nonblocking {
		s |= 1 << signNonblocking
	}
	if c.Bytes >= 0 {
		s |= uint32(c.Bytes%127+1) << signHash
	}
	return s
}

// callOf returns the call of a signature; Bytes is -1 or, where the slot has it, 0.
func callOf(s uint32) Call {
	c := Call{Kind: Kind(s & 31), Nonblocking: s>>signNonblocking&1 != 0, Op: op.Op(s >> signOp & (1<<opBits - 1)),
		Elem: dtype.Kind(s >> signElem & (1<<elemBits - 1)), Root: int(s >> signRoot & 511)}
	if s&signBytes == 0 {
		c.Bytes = -1
	}
	return c
}
