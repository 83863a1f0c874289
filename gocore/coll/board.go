package coll

import (
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/sys/atom"
)

// Board is where the ranks of a communicator post the data of small collectives
// for the others to read. It lies in the communicator's block of the job's
// memory.
//
// # Protocol
//
// Each rank numbers the collectives on a communicator 1, 2, 3…; MPI has all
// ranks call them in one order, so the numbers agree. A rank has some posts,
// which it alone writes, and a word done. In the blocking collective k it
//
//  1. if it has something to give: waits until done of every other rank is at
//     least k-Posts, so that nobody reads what its post k mod Posts had before;
//     writes data and call; stores the number k; rings who may wait for it;
//  2. if it needs something: waits until post k mod Posts of those ranks has the
//     number k, and reads;
//  3. stores k in done, and rings everybody if anybody waits for room (crowd).
//
// Data of more than BoardSlotBytes has fewer places, LongSlots for a rank: for it 1
// waits until done is at least k-LongSlots.
//
// A rank is in one blocking collective at a time, so done only grows, and who
// waits in 1 waits for ranks that are in an earlier collective, which in the end
// waits for nobody. A nonblocking collective must not hold up later ones until
// its own wait, therefore it goes by messages, and so does one whose data does
// not fit; they store k in done at their start, and post their call without data
// if there is room just then, for others to see that it is not theirs.
//
// Numbers and done are compared modulo 2^32. A rank that dies in 1 has posted
// nothing, one that dies before 3 leaves the others waiting; their wait's check
// ends that. What a post says of its call is one word with the number, so that
// it can be looked at without waiting, and may change meanwhile.
type Board struct {
	waiters *uint32 // ranks that wait for room
	ranks   []boardRank
	data    unsafe.Pointer
	bytes   int // room for the data of one post
	long    unsafe.Pointer
	most    int // room for the data of a long one, 0: there are none
	me      int
	seen    uint32 // every other rank's done was at least this
	given   int    // collectives that this rank has refused
}

type boardRank struct {
	slots   [job.BoardSlots]slot
	done    uint32
	refused [refusals]uint32 // numbers of collectives by messages that the rank gave up lately
}

// refusals is how many are remembered.
const refusals = 15

// slot is one cache line; data that does not fit lies in the block's data.
type slot struct {
	word   uint64 // number<<32 | sign
	length int64  // Call.Bytes
	short  [shortSlot]byte
}

const shortSlot = 48

// newBoard makes the view of rank me of the board in block i.
func newBoard(seg *job.Segment, i int, size, me int) *Board {
	mem := seg.Block(i)
	all := len(seg.Ranks)
	return &Board{
		waiters: (*uint32)(unsafe.Pointer(&mem[2*64])),
		ranks:   unsafe.Slice((*boardRank)(unsafe.Pointer(&mem[job.BoardOffset])), size),
		data:    unsafe.Pointer(&mem[job.BoardDataOffset(all)]),
		bytes:   job.BoardSlotBytes(all),
		long:    unsafe.Pointer(&mem[min(job.LongSlotDataOffset(all), len(mem)-1)]),
		most:    job.LongSlotBytes(all),
		me:      me,
	}
}

// place is where the data of collective k of rank r lies, if it has n bytes.
func (b *Board) place(r int, k uint32, n int) unsafe.Pointer {
	i := int(k % job.BoardSlots)
	switch {
	case n <= shortSlot:
		return unsafe.Pointer(&b.ranks[r].slots[i].short)
	case n <= b.bytes:
		return unsafe.Add(b.data, (r*job.BoardSlots+i)*b.bytes)
	}
	return unsafe.Add(b.long, (r*job.LongSlots+int(k%job.LongSlots))*b.most)
}

// holds reports whether n bytes of data have a place on the board.
func (b *Board) holds(n int) bool { return n <= max(b.bytes, b.most) }

// ahead is how many collectives a rank can be ahead that posts n bytes.
func (b *Board) ahead(n int) uint32 {
	if n > b.bytes {
		return job.LongSlots
	}
	return job.BoardSlots
}

// room reports whether this rank may write its post for collective k, with n
// bytes of data.
func (b *Board) room(k uint32, n int) bool {
	free := k - b.ahead(n)
	if int32(b.seen-free) >= 0 {
		return true
	}
	least := k
	for r := range b.ranks {
		if d := atom.Load32(&b.ranks[r].done); r != b.me && int32(d-least) < 0 {
			least = d
		}
	}
	b.seen = least
	return int32(least-free) >= 0
}

// wait enters or leaves the crowd that waits for the others' done; in says
// whether this operation is in it.
func (b *Board) wait(in *bool, yes bool) {
	if *in == yes {
		return
	}
	if *in = yes; yes {
		atom.Add32(b.waiters, 1)
	} else {
		atom.Add32(b.waiters, ^uint32(0))
	}
}

// publish makes the data that was written to place visible to all.
func (b *Board) publish(k uint32, c *Call) {
	p := &b.ranks[b.me].slots[k%job.BoardSlots]
	p.length = int64(c.Bytes)
	atom.Store64(&p.word, uint64(k)<<32|uint64(c.sign()))
}

// filled reports whether rank r has posted for collective k.
func (b *Board) filled(r int, k uint32) bool {
	return uint32(atom.Load64(&b.ranks[r].slots[k%job.BoardSlots].word)>>32) == k
}

// refuse says that this rank gives up collective k, which goes by messages. It has told
// that it reads no post of k, so that its posts may be those of later ones by now, or
// have no room: it says so beside them.
func (b *Board) refuse(k uint32) {
	atom.Store32(&b.ranks[b.me].refused[b.given%refusals], k)
	b.given++
}

// refused reports whether rank r has said so.
func (b *Board) refused(r int, k uint32) bool {
	for i := range b.ranks[r].refused {
		if atom.Load32(&b.ranks[r].refused[i]) == k {
			return true
		}
	}
	return false
}

// gaveUp reports whether rank r has posted that it can't take part in collective k.
func (b *Board) gaveUp(r int, k uint32) bool {
	word := atom.Load64(&b.ranks[r].slots[k%job.BoardSlots].word)
	return uint32(word>>32) == k && callOf(uint32(word)).Kind == KindGiveUp
}

// leave says that this rank reads nothing of collective k any more.
func (b *Board) leave(k uint32) (crowded bool) {
	atom.Store32(&b.ranks[b.me].done, k)
	return atom.Load32(b.waiters) != 0
}

// compare reports whether the call that rank r posted for collective k, if it has,
// belongs to another collective than mine. Exact says that the post can't change
// meanwhile.
func (b *Board) compare(mine *Call, r int, k uint32, exact bool) *errs.Error {
	p := &b.ranks[r].slots[k%job.BoardSlots]
	word := atom.Load64(&p.word)
	if uint32(word>>32) != k || uint32(word) == mine.sign() && (!exact || int(p.length) == mine.Bytes) {
		return nil
	}
	theirs := callOf(uint32(word))
	switch {
	case theirs.Bytes < 0:
	case exact, uint32(word)&signBytes != mine.sign()&signBytes:
		theirs.Bytes = int(p.length)
	default:
		theirs.Bytes = mine.Bytes
	}
	return mine.mismatch(theirs, r)
}

// other returns the first rank's call that was posted for collective k by any
// other rank.
func (b *Board) other(k uint32) (rank int, c Call, found bool) {
	for r := range b.ranks {
		p := &b.ranks[r].slots[k%job.BoardSlots]
		if word := atom.Load64(&p.word); r != b.me && uint32(word>>32) == k {
			c = callOf(uint32(word))
			if c.Bytes >= 0 {
				c.Bytes = int(p.length)
			}
			return r, c, true
		}
	}
	return 0, Call{}, false
}

// zero sets the board back, within a collective reset.
func (b *Board) zero() {
	atom.Store32(b.waiters, 0)
	for r := range b.ranks {
		for i := range b.ranks[r].slots {
			atom.Store64(&b.ranks[r].slots[i].word, 0)
		}
		atom.Store32(&b.ranks[r].done, 0)
		for i := range b.ranks[r].refused {
			atom.Store32(&b.ranks[r].refused[i], 0)
		}
	}
	b.seen = 0
}

// checkPeer tells that rank r, which collective c waits for, has ended.
func checkPeer(e *engine.Engine, world []int, r int, c *Call) error {
	if e.Gone(world[r]) {
		return errs.New(errs.ProcFailed, "%s can't complete: %s (rank %d of the communicator)", c.Kind, e.HowGone(world[r]), r)
	}
	return nil
}

// The sign of a call: kind, nonblocking, op, elem and root as they are, and a
// hash of Bytes, 0 for -1.
const (
	signNonblocking = 5
	signOp          = signNonblocking + 1
	signElem        = signOp + 5
	signRoot        = signElem + 5
	signHash        = signRoot + 9
	signBytes       = uint32(0x7f << signHash)
)

// All kinds of elements and operations fit their bits.
var (
	_ [1<<5 - dtype.Kinds]struct{}
	_ [1<<5 - kinds]struct{}
)

func (c *Call) sign() uint32 {
	s := uint32(c.Kind) | uint32(c.Op)<<signOp | uint32(c.Elem)<<signElem | uint32(c.Root)<<signRoot
	if c.Nonblocking {
		s |= 1 << signNonblocking
	}
	if c.Bytes >= 0 {
		s |= uint32(c.Bytes%127+1) << signHash
	}
	return s
}

// callOf is the call of a sign; Bytes is 0 where it has to be looked up.
func callOf(s uint32) Call {
	c := Call{Kind: Kind(s & 31), Nonblocking: s>>signNonblocking&1 != 0, Op: op.Op(s >> signOp & 31),
		Elem: dtype.Kind(s >> signElem & 31), Root: int(s >> signRoot & 511)}
	if s&signBytes == 0 {
		c.Bytes = -1
	}
	return c
}
