package coll

import (
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// SingleCopyOp is a blocking collective whose data is too long for the board. The
// ranks publish where their data is, and a rank that needs it copies it from
// there, once: by loads if it maps the data (engine.Map), else with the transport's one-sided Get. No messages are
// sent. Each rank writes only to its own memory.
//
// A rank whose memory others read must not return before they have finished: it waits
// until their done has the number of the collective. A reduction takes two
// numbers: in the first each rank folds one slice of all operands, in the second
// the slices are collected. A rank that has published for the second has finished
// reading in the first. A Reduce of two ranks takes one: the root folds all.
//
// A rank whose own memory faults gives up. It publishes that in place of what it has
// not published yet, for all numbers that the collective takes, and it too waits for
// the ranks that may be reading its memory. The others then end in the same way, with
// the same number.
//
// A rank that ends a collective early, because another one has ended, the communicator was revoked, or of an interrupt, can't wait for
// those that may be reading its memory: they may never come. It retracts what it has published before it returns, and so before its
// program changes that memory. A rank that reads looks whether that has happened before it reads, and when it has finished: then it
// may have read anything, and gives up. What is retracted is where the memory is, not the call: if that is why the collective has
// ended early, other ranks find it likewise.
//
// A rank that can't read another one's memory gives up likewise, and before that stores the number in its refused words: the
// ranks that publish data look there when they have finished waiting, and the one whose memory can't be read finds that out. The
// kernel does not say which address was at fault, so that rank reads a byte of each page of what it has published.
//
// In the first one on a communicator the ranks find out together whether each can read
// from every other; if not, they use messages. So does an allreduce of two ranks with a core each, unless all data lies in
// their arenas or is staged: by messages both copy at the same time. They find that out in a number before.
type SingleCopyOp struct {
	Args
	c       *Comm
	steps   []func() bool // each returns true once it is done
	at      int           // rank that the current step waits for
	entered bool          // the current step has taken its number
	k, k2   uint32        // the numbers of the steps
	hold    [][]byte      // temporary memory
	staged  []*stage      // likewise, which the others read
	few     [2]*stage     // the memory of staged
	from    []source      // the ranks' data
	msg     *Op           // the collective by messages; nil: it does not use them
	waiting bool          // this operation is counted in Board.waiters
	err     *errs.Error

	generation uint32 // a collective reset ends it
	fence      uint32

	AdvanceFunc func() bool // Advance and Check as values, so that a call allocates none
	CheckFunc   func() error

	numbers   int              // how many numbers the remaining steps take
	begun     bool             // a number has been taken, and
	published bool             // this rank's data has been published for it
	joined    bool             // nothing of this rank is going to be published for it, see Check
	awaited   func(r int) bool // the current step waits until these have published; nil: it does not
	reads     func(r int) bool // the data of these is read until this rank leaves; nil: it reads none
	ending    bool             // steps are those of giveUp
	memoryErr bool             // err is of memory: the ranks give up with the same number

	unreadable bool        // err is that another rank's memory can't be read
	taken      uint32      // how many numbers have been taken
	exposes    [2]exposure // this rank's memory that the others read
	nexposes   int
	keptBytes  int // how many bytes of what this rank keeps have been copied

	reduced          reduction
	vecs             [2]Vec      // what SendV and RecvV point to, see SingleCopyOpV
	edges            edges       // see SingleCopyNeighbor
	own              *errs.Error // of a part that is too long: this rank's, and the collective goes on
	mine             uint64      // see pair
	scheduled, asked plan        // of an earlier collective, see again
}

// plan has steps that an operation takes again when it is used again: what they need is in its fields.
type plan struct {
	steps   []func() bool
	numbers int // that they take
}

// again returns the steps of p, which make makes for the first time.
func (d *SingleCopyOp) again(p *plan, make func() []func() bool) []func() bool {
	if p.steps == nil {
		before := d.numbers
		p.steps = make()
		p.numbers, d.numbers = d.numbers-before, before
	}
	d.numbers += p.numbers
	return p.steps
}

// source is where a rank's data is: what it publishes.
type source struct {
	addr      uint64
	share     uint64 // see engine.Share
	retracted uint32 // see Board.retract
}

// exposure is memory of this rank that others read.
type exposure struct {
	addr unsafe.Pointer
	n    int
}

const sourceBytes = int(unsafe.Sizeof(source{}))

// SingleCopyOp starts a collective whose data is copied straight from rank to rank, or
// returns nil if messages have to be used. All ranks decide alike.
func (c *Comm) SingleCopyOp(a *Args) *SingleCopyOp {
	if c.board == nil || c.singleCopy == singleCopyNo || c.Size < 2 {
		return nil
	}
	switch a.Kind {
	case KindBcast, KindScatter, KindGather, KindAllgather, KindAlltoall, KindReduce, KindAllreduce, KindReduceScatterBlock:
	default:
		return nil
	}
	d := c.takeCopy(a)
	d.start()
	return d
}

// takeCopy returns an operation, which has no steps yet.
func (c *Comm) takeCopy(a *Args) *SingleCopyOp {
	c.sweep()
	d := c.spareCopy(a).Swap(nil)
	if d == nil {
		d = &SingleCopyOp{from: make([]source, c.Size)}
		d.AdvanceFunc, d.CheckFunc = d.Advance, d.Check
	}
	*d = SingleCopyOp{Args: *a, c: c, from: d.from, generation: c.Chan.Generation(), scheduled: d.scheduled, asked: d.asked,
		vecs: d.vecs, edges: d.edges, AdvanceFunc: d.AdvanceFunc, CheckFunc: d.CheckFunc}
	return d
}

// start sets the steps.
func (d *SingleCopyOp) start() {
	if d.c.singleCopy == singleCopyUnknown {
		d.steps = d.trial()
	} else {
		d.steps = d.begin()
	}
}

// spareCopies are operations that have completed, by kind, and by whether this rank is the root: their plans are for these.
type spareCopies [kinds][2]atomic.Pointer[SingleCopyOp]

// spareCopy returns where the communicator keeps an operation for others like a.
func (c *Comm) spareCopy(a *Args) *atomic.Pointer[SingleCopyOp] {
	all := c.spareCopies.Load()
	if all == nil {
		c.spareCopies.CompareAndSwap(nil, new(spareCopies))
		all = c.spareCopies.Load()
	}
	if a.Kind.Rooted() && a.Root == c.Rank {
		return &all[a.Kind][1]
	}
	return &all[a.Kind][0]
}

// Release returns an operation that has completed without an error to the communicator, which reuses it.
func (d *SingleCopyOp) Release() {
	if d.err == nil {
		clear(d.from)
		d.edges.forget()
		d.c.spareCopy(&d.Args).Store(d)
	}
}

// begin returns the steps of a collective of ranks that can read each other's memory.
func (d *SingleCopyOp) begin() []func() bool {
	if d.Kind == KindAllreduce && d.c.Size == 2 && !d.c.eng.CoresShared() {
		return d.again(&d.asked, d.pair)
	}
	return d.again(&d.scheduled, d.schedule)
}

// The values of Comm.singleCopy.
const (
	singleCopyUnknown uint8 = iota
	singleCopyYes
	singleCopyNo
)

// Advance continues as far as it can without waiting and reports whether the
// collective has completed.
func (d *SingleCopyOp) Advance() bool {
	if len(d.steps) > 0 {
		if over, e := d.c.Chan.Ended(d.generation); e != nil { // the board is that of later collectives
			if over {
				d.err = e
				d.Abandon()
			}
			return over
		}
	}
	for len(d.steps) > 0 {
		done := false
		if fault := sys.Touch(func() { done = d.steps[0]() }); fault != nil {
			d.err = d.faulted(fault)
			d.giveUp()
			continue
		}
		if d.err != nil && !d.ending {
			if d.memoryErr {
				d.giveUp()
				continue
			}
			break
		}
		if !done {
			return false
		}
		d.steps = d.steps[1:]
		d.at, d.entered = 0, false
	}
	switch {
	case d.err != nil && len(d.steps) > 0: // the others must not wait for this rank
		d.c.board.wait(&d.waiting, false)
		d.retract()
		d.c.done(d.c.seq)
		if d.msg == nil {
			d.c.refuse(d.c.seq) // as BoardOp.refuse
		}
		d.steps = nil
		d.strand()
	case d.err != nil:
		d.strand()
		d.told()
	default:
		d.told() // it reads what the others read
		d.giveBack()
	}
	return true
}

// told sets the error of a rank whose memory another one could not read, once that one does not read it any more. A rank that
// has given up because another one did so learns in this way that its own memory was the reason.
func (d *SingleCopyOp) told() {
	if d.nexposes == 0 || d.msg != nil || d.err != nil && d.err.Class != errs.Other {
		return
	}
	who := d.unread()
	if who < 0 {
		return
	}
	for _, x := range d.exposes[:d.nexposes] {
		if fault := sys.Touch(func() { fabric.Probe(x.addr, x.n) }); fault != nil {
			d.err = d.faulted(fault)
			return
		}
	}
	// The memory can be read now. It was this rank's all the same if nobody else has published any.
	if d.err == nil && (d.c.Size == 2 || d.Kind == KindBcast || d.Kind == KindScatter || d.Kind == KindScatterv) {
		d.err = d.c.refusedBy(&d.Call, who)
	}
}

// unread returns a rank that could not read another one's memory; -1 if there is none.
func (d *SingleCopyOp) unread() int {
	for r := range d.c.Size {
		for i := range d.taken {
			if r != d.c.Rank && d.c.board.refused(r, d.c.seq-i) {
				return r
			}
		}
	}
	return -1
}

// giveBack gives temporary memory back: no other rank reads it.
func (d *SingleCopyOp) giveBack() {
	if d.hold != nil {
		pool.give(d.hold)
		d.hold = nil
	}
	if d.staged != nil {
		stages.give(d.staged)
		clear(d.staged)
		d.staged = nil
	}
}

// giveUp replaces the steps by those of a rank that can't take part any more.
func (d *SingleCopyOp) giveUp() {
	d.ending, d.joined, d.awaited, d.at, d.entered = true, false, nil, 0, false
	d.c.board.wait(&d.waiting, false)
	d.steps = nil
	k := d.c.seq
	if d.unreadable {
		d.c.board.refuse(k) // before this rank stores k in done, for which those that have published wait
	}
	switch {
	case d.published: // others may be reading this rank's memory
		d.steps = append(d.steps, then(func() { d.c.done(k) }), d.wait(&k, false))
	case d.begun:
		d.steps = append(d.steps, d.refuse(func() uint32 { return k }))
	}
	for range d.numbers {
		d.steps = append(d.steps, d.refuse(d.number))
	}
}

// refuse returns a step that publishes that this rank has given up the collective with
// the number that number returns.
func (d *SingleCopyOp) refuse(number func() uint32) func() bool {
	begun, k := false, uint32(0)
	return func() bool {
		b := d.c.board
		if !begun {
			begun, k = true, number()
		}
		if !b.room(k, 0) {
			b.wait(&d.waiting, true)
			if !b.room(k, 0) {
				return false
			}
		}
		b.wait(&d.waiting, false)
		b.publish(k, &givenUp)
		d.c.done(k)
		d.c.ringOthers()
		return true
	}
}

// Err returns the error of a completed collective.
func (d *SingleCopyOp) Err() *errs.Error {
	if d.err == nil {
		return d.own
	}
	return d.err
}

// Lent is Op.Lent. Single copies are no reason: what they read is retracted.
func (d *SingleCopyOp) Lent() bool { return d.msg != nil && d.msg.Lent() }

// Awaited is Pending.
func (d *SingleCopyOp) Awaited() int { return d.Pending() }

// Pending returns the rank of the communicator that the collective waits for.
func (d *SingleCopyOp) Pending() int { return min(d.at, d.c.Size-1) }

// Abandon gives the collective up, as BoardOp.Abandon does.
func (d *SingleCopyOp) Abandon() {
	if d.c.Chan.Dropped(d.generation) == nil {
		d.c.board.wait(&d.waiting, false)
		d.retract()
	}
	if d.msg != nil {
		d.msg.Abandon()
	}
	d.steps = nil
	d.strand()
}

// retract tells the ranks that may be reading this one's memory that it has ended the collective.
func (d *SingleCopyOp) retract() {
	if d.nexposes > 0 {
		for i := range d.taken {
			d.c.board.retract(d.c.seq - i)
		}
	}
}

// Check returns why the collective can't complete any more, nil if it can.
func (d *SingleCopyOp) Check() error {
	if e := d.c.Chan.Revoked(); e != nil {
		d.Abandon()
		return e
	}
	if d.c.Chan.Dropped(d.generation) != nil {
		return nil // Advance ends it
	}
	if d.msg != nil {
		return d.msg.Check()
	}
	b, k := d.c.board, d.c.seq
	// Ranks that take each other for the root would wait for ever: as in BoardOp.Check, they publish at least their calls.
	if d.joined && b.room(k, 0) {
		d.joined = false
		b.publish(k, &d.Call)
		d.c.ringOthers()
	}
	for r := range d.c.Size {
		if r == d.c.Rank {
			continue
		}
		if e := b.compare(&d.Call, r, k); e != nil && !b.gaveUp(r, k) {
			d.Abandon()
			d.c.refuse(k) // as BoardOp.refuse
			return e
		}
		if d.awaited != nil && d.awaited(r) && b.missed(r, k) {
			d.Abandon()
			return d.c.refusedBy(&d.Call, r)
		}
		// The memory of a rank that has ended can't be read: all have to finish.
		if int32(atom.Load32(&b.ranks[r].done)-k) < 0 {
			err := checkPeer(d.c.eng, d.c.Chan.World, r, &d.Call)
			if err != nil && int32(atom.Load32(&b.ranks[r].done)-k) < 0 {
				d.retract()
				return err
			}
		}
	}
	return nil
}

// number takes the next sequence number, for a step that publishes or reads slots.
func (d *SingleCopyOp) number() uint32 {
	d.c.seq++
	d.taken++
	d.numbers--
	d.begun, d.published, d.joined = true, false, false
	return d.c.seq
}

// wait returns a step that waits until done of the other ranks has reached k, or only
// done of the root if rooted is set.
func (d *SingleCopyOp) wait(k *uint32, rooted bool) func() bool {
	return func() bool {
		for ; d.at < d.c.Size; d.at++ {
			if d.at == d.c.Rank || rooted && d.at != d.Root {
				continue
			}
			done := &d.c.board.ranks[d.at].done
			if int32(atom.Load32(done)-*k) < 0 {
				d.c.board.wait(&d.waiting, true) // a rank that leaves after this rings
				if int32(atom.Load32(done)-*k) < 0 {
					return false
				}
			}
		}
		d.c.board.wait(&d.waiting, false)
		if !rooted {
			d.c.board.learn(*k)
		}
		return true
	}
}

// publish returns a step that publishes value, as the next collective, whose number it
// stores in k.
func (d *SingleCopyOp) publish(k *uint32, value func() source) func() bool {
	return d.publishing(k, func() { *d.c.board.source(d.c.Rank, *k) = value() })
}

// publishing is publish of what write writes into the slot, or into its data, which it does not exceed.
func (d *SingleCopyOp) publishing(k *uint32, write func()) func() bool {
	d.numbers++
	return func() bool {
		b := d.c.board
		if !d.entered {
			d.entered = true
			*k = d.number()
		}
		if !b.room(*k, sourceBytes) {
			d.c.board.wait(&d.waiting, true)
			if !b.room(*k, sourceBytes) {
				return false
			}
		}
		d.c.board.wait(&d.waiting, false)
		write()
		b.publish(*k, &d.Call)
		d.published = true
		d.c.ringOthers()
		return true
	}
}

// join returns the step that takes the number on a rank that publishes nothing.
func (d *SingleCopyOp) join(k *uint32) func() bool {
	d.numbers++
	return func() bool {
		*k = d.number()
		d.joined = true
		return true
	}
}

// read returns a step that waits until the needed ranks have published, and reads where
// their data is.
func (d *SingleCopyOp) read(k *uint32, needed func(r int) bool) func() bool {
	return func() bool {
		b := d.c.board
		for ; d.at < d.c.Size; d.at++ {
			r := d.at
			if r == d.c.Rank || !needed(r) {
				continue
			}
			for !b.filled(r, *k) {
				if !d.keepPiece() {
					d.awaited = needed
					return false
				}
			}
			if d.err = b.compareSlot(&d.Call, b.slot(r, *k), r, *k, true); d.err != nil {
				d.memoryErr = b.gaveUp(r, *k)
				return false
			}
			from := b.source(r, *k)
			d.from[r] = source{addr: from.addr, share: from.share}
		}
		d.awaited, d.reads = nil, needed
		if needed(0) && needed(d.c.Size-1) && !d.Kind.neighborly() {
			b.learn(*k - 1)
		}
		return d.offered(*k)
	}
}

// then returns a step that does local work.
func then(f func()) func() bool {
	return func() bool {
		f()
		return true
	}
}

// leave returns the step that records that this rank has read what it needs. The others must have kept that until here.
func (d *SingleCopyOp) leave(k *uint32) func() bool {
	return then(func() {
		if d.offered(*k) {
			d.reads = nil
			d.c.done(*k)
		}
	})
}

// offered sets the error if a rank whose data is read has retracted it, and reports whether none has. On arm64 a load may go past
// those before it, with which the data was read, but for the atomic operation between them.
func (d *SingleCopyOp) offered(k uint32) bool {
	atom.Add32(&d.fence, 0)
	for r := range d.c.Size {
		if d.reads != nil && r != d.c.Rank && d.reads(r) && d.c.board.retracted(r, k) {
			d.err, d.memoryErr = d.c.refusedBy(&d.Call, r), true
			return false
		}
	}
	return true
}

func (d *SingleCopyOp) anyRank(int) bool { return true }
func (d *SingleCopyOp) root(r int) bool  { return r == d.Root }

func (d *SingleCopyOp) temp(n int) unsafe.Pointer {
	b := pool.take(max(n, 1))
	d.hold = append(d.hold, b)
	return unsafe.Pointer(&b[0])
}

// source returns where n bytes of this rank's memory are.
func (d *SingleCopyOp) source(p unsafe.Pointer, n int) source {
	d.exposes[d.nexposes] = exposure{p, n}
	d.nexposes++
	return source{addr: uint64(uintptr(p)), share: d.c.eng.Share(p, n)}
}

// dense returns where the others read the data of parts buffers like b: there, or in contiguous memory.
func (d *SingleCopyOp) dense(b p2p.Buf, parts int) source {
	unit := b.Bytes()
	b.Count *= parts
	own, unread := 0, 0
	if parts > 1 {
		own, unread = d.c.Rank*unit, unit
	}
	if b.Type.Dense() || unit == 0 {
		return d.source(d.exposed(b.Addr, b.Bytes(), unit, own, unread), b.Bytes())
	}
	return d.packed(b, unit)
}

// packed returns where a copy of the data of b is, of which unit bytes count for stages.
func (d *SingleCopyOp) packed(b p2p.Buf, unit int) source {
	n := b.Bytes()
	var p unsafe.Pointer
	if d.stagesIn(unit, n) {
		p = d.stage(n)
	}
	if p == nil {
		p = d.temp(n)
	}
	atom.Writes(p, n)
	pack(unsafe.Slice((*byte)(p), n), b)
	return d.source(p, n)
}

// schedule returns the steps of a collective of this kind, for this rank's part in it. They read its arguments when they are taken.
func (d *SingleCopyOp) schedule() []func() bool {
	switch d.Kind {
	case KindBcast:
		if d.isRoot() {
			return []func() bool{d.publish(&d.k, func() source { return d.dense(d.Recv, 1) }), d.leave(&d.k), d.wait(&d.k, false)}
		}
		return []func() bool{d.join(&d.k), d.read(&d.k, d.root), then(func() { d.fetch(d.Recv, d.Root, 0) }), d.leave(&d.k)}
	case KindScatter:
		if d.isRoot() {
			return []func() bool{d.publish(&d.k, func() source { return d.dense(d.Send, d.c.Size) }), d.leave(&d.k), then(d.keep), d.wait(&d.k, false)}
		}
		return []func() bool{d.join(&d.k), d.read(&d.k, d.root), then(func() { d.fetch(d.Recv, d.Root, d.c.Rank) }), d.leave(&d.k)}
	case KindGather:
		if d.isRoot() {
			return []func() bool{d.join(&d.k), d.read(&d.k, d.anyRank), then(d.collect), d.leave(&d.k), then(d.keep)}
		}
		return []func() bool{d.publish(&d.k, func() source { return d.dense(d.Send, 1) }), d.leave(&d.k), d.wait(&d.k, true)}
	case KindAllgather, KindAlltoall:
		return []func() bool{d.publish(&d.k, d.parts), d.read(&d.k, d.anyRank), then(d.collect), d.leave(&d.k), then(d.keep), d.wait(&d.k, false)}
	case KindGatherv, KindScatterv, KindAllgatherv, KindAlltoallv:
		return d.scheduleV()
	case KindNeighborAllgather, KindNeighborAlltoall:
		return d.scheduleEdges()
	}
	return d.reduction()
}

func (d *SingleCopyOp) isRoot() bool { return d.c.Rank == d.Root }

// keep copies the rest of what this rank keeps of its own data. It comes behind leave: the others need not wait for that.
func (d *SingleCopyOp) keep() {
	switch to, from := d.kept(); {
	case to.Addr == nil:
	case d.keptBytes == 0:
		copyLocal(to, from)
	default:
		if n := min(to.Bytes(), from.Bytes()) - d.keptBytes; n > 0 {
			fabric.Copy(unsafe.Add(to.Addr, d.keptBytes), unsafe.Add(from.Addr, d.keptBytes), n)
		}
	}
}

// pieceKept is how many bytes keepPiece copies: few enough that the ranks for which this one waits are not kept waiting themselves.
const pieceKept = 64 << 10

// keepPiece copies a piece of what this rank keeps, while it waits for others, and reports whether there was one. What is not
// contiguous is left to keep, as is what is not worth it.
func (d *SingleCopyOp) keepPiece() bool {
	to, from := d.kept()
	if to.Addr == nil || d.c.singleCopy != singleCopyYes { // in the trial, a fault of this memory would have no number of its own
		return false
	}
	n := min(to.Bytes(), from.Bytes()) - d.keptBytes
	if n < pieceKept || !to.Type.Dense() || !from.Type.Dense() {
		return false
	}
	fabric.Copy(unsafe.Add(to.Addr, d.keptBytes), unsafe.Add(from.Addr, d.keptBytes), pieceKept)
	d.keptBytes += pieceKept
	return true
}

// kept returns what this rank keeps of its own data, and where from: nothing in place.
func (d *SingleCopyOp) kept() (to, from p2p.Buf) {
	me := d.c.Rank
	switch {
	case d.SendInPlace || d.RecvInPlace || d.Kind.Rooted() && !d.isRoot():
	case d.Kind == KindScatter:
		return d.Recv, part(d.Send, me)
	case d.Kind == KindAlltoall:
		return part(d.Recv, me), part(d.Send, me)
	case d.Kind == KindAllgather || d.Kind == KindGather:
		return part(d.Recv, me), d.Send
	case d.Kind == KindScatterv:
		return d.Recv, d.SendV.part(me)
	case d.Kind == KindAlltoallv:
		return d.RecvV.part(me), d.SendV.part(me)
	case d.Kind == KindAllgatherv || d.Kind == KindGatherv:
		return d.RecvV.part(me), d.Send
	}
	return to, from
}

// parts returns where this rank's data of an allgather or an alltoall is.
func (d *SingleCopyOp) parts() source {
	switch {
	case d.Kind == KindAlltoall && d.SendInPlace: // receiving overwrites the data to send
		all := d.Recv
		all.Count *= d.c.Size
		return d.packed(all, d.Recv.Bytes())
	case d.Kind == KindAlltoall:
		return d.dense(d.Send, d.c.Size)
	case d.SendInPlace:
		return d.dense(part(d.Recv, d.c.Rank), 1)
	}
	return d.dense(d.Send, 1)
}

// trial returns steps that find out whether all ranks can read from each other, and
// then do the collective accordingly.
func (d *SingleCopyOp) trial() []func() bool {
	c := d.c
	var k, k2 uint32
	word := &c.word
	*word = magic + uint64(c.Chan.World[c.Rank])
	readable, slow := uint64(1), uint64(1)
	return []func() bool{
		d.publish(&k, func() source { return source{addr: uint64(uintptr(unsafe.Pointer(word)))} }),
		d.read(&k, d.anyRank),
		then(func() {
			for r := range c.Size {
				got := new(uint64)
				if r == c.Rank {
					continue
				}
				if d.get(unsafe.Pointer(got), r, 0, 8); d.err != nil || *got != magic+uint64(c.Chan.World[r]) {
					readable = 0
				}
			}
			d.err, d.memoryErr, d.unreadable = nil, false, false
		}),
		d.leave(&k),
		d.publish(&k2, func() source {
			if !kernelIsSlow() {
				slow = 0
			}
			return source{addr: readable, share: slow}
		}),
		d.read(&k2, d.anyRank),
		then(func() {
			for r, theirs := range d.from {
				if r == c.Rank {
					continue
				}
				readable, slow = min(readable, theirs.addr), min(slow, theirs.share)
			}
		}),
		d.leave(&k2),
		func() bool {
			if readable != 0 {
				c.singleCopy, c.slowKernel = singleCopyYes, slow != 0
				d.steps = append(d.steps, d.begin()...)
				return true
			}
			c.singleCopy = singleCopyNo
			return d.byMessages()
		},
	}
}

// pair returns the steps of an allreduce of two ranks with a core each, which uses messages unless all data lies in their arenas, or is staged.
func (d *SingleCopyOp) pair() []func() bool {
	return []func() bool{
		d.publish(&d.k, func() source {
			if d.mine = 0; d.inArena() || kernelIsSlow() && d.stages(d.Bytes) {
				d.mine = 1
			}
			return source{addr: d.mine}
		}),
		d.read(&d.k, d.anyRank),
		d.leave(&d.k),
		func() bool {
			if d.msg != nil || d.mine == 0 || d.from[1-d.c.Rank].addr == 0 {
				return d.byMessages()
			}
			d.steps = append(d.steps, d.again(&d.scheduled, d.schedule)...)
			return true
		},
	}
}

// inArena reports whether what the other rank reads lies in the arena.
func (d *SingleCopyOp) inArena() bool {
	return d.Send.Type.Dense() && d.c.eng.Share(d.Send.Addr, d.Send.Bytes()) != 0
}

// byMessages does the collective by messages; it is a step.
func (d *SingleCopyOp) byMessages() bool {
	if d.msg == nil {
		if d.Kind.neighborly() {
			d.c.Calling(d.Call)
			d.msg = d.c.Neighbor(d.edges.out, d.edges.in, false)
		} else {
			d.msg = d.c.Start(&d.Args)
		}
	}
	if !d.msg.Advance() {
		return false
	}
	d.err = d.msg.Err()
	return true
}

// magic plus the world rank is the value of a rank's word.
const magic = 0x676f726d61707900
