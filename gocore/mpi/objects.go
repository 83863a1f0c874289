package mpi

import (
	"strings"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// CommShape is what a collective of objects needs to know of a communicator, which does not change. A Size of 0 stands
// for an intercommunicator. Head is the size of a head, Part that of one of a scatter or an alltoall. The extension has
// the same layout.
type CommShape struct{ Size, Rank, Head, Part int32 }

// ShapeOf fills in the shape of a communicator.
func ShapeOf(comm int64, s *CommShape) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	*s = CommShape{}
	if c.remote == nil {
		head, part := c.coll.HeadBytes(coll.KindGather), c.coll.HeadBytes(coll.KindScatter)
		*s = CommShape{Size: int32(c.size), Rank: int32(c.rank), Head: int32(head), Part: int32(part)}
	}
	return 0
}

// Heads are the heads of a collective of objects at one rank, each of Bytes; see coll/objects.go. The extension has the
// same layout.
type Heads struct {
	Comm           int64
	Send, Recv     int64 // addresses; Recv of a broadcast's root is what it sends
	Sent, Received int64 // numbers of heads there that tell of the second step: not of the only one from or for the root itself
	Bytes, Root    int64
	Generation     int64 // in which the first step was begun
	Number         uint32
	Kind           int32
	More           int32 // set to 1 if this rank takes the second step, else to 0
	Reduce         int32 // 1: of an allreduce: an allgather, or the broadcast that follows it under the same number
}

// ExchangeHeads runs a step of a collective of objects that exchanges heads; like Blocking. When the request of an
// interrupted one has completed, or has been abandoned, SettleHeads is to be called.
func ExchangeHeads(h *Heads, pending *int64) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(h.Comm)
	if e == nil && c.remote != nil {
		e = errs.New(errs.Intern, "heads of objects are exchanged in intracommunicators only")
	}
	if e == nil {
		e = c.checkRoot(int(h.Root))
	}
	if e != nil {
		return CodeOf(e)
	}
	if h.continues() {
		code = c.broadcastHead(h, pending)
	} else {
		code = c.firstHeads(h, pending)
	}
	if code == Interrupted {
		return code
	}
	return c.settle(h, code)
}

// continues reports whether the heads are of a call that has a number.
func (h *Heads) continues() bool { return h.Reduce != 0 && coll.Kind(h.Kind) == coll.KindBcast }

// headsOnBoard are those of all collectives by the board, which asks for no more steps.
var headsOnBoard coll.Objects

func (c *Comm) firstHeads(h *Heads, pending *int64) Code {
	h.Generation = int64(c.pt.Generation())
	a := coll.Args{
		Call:    h.call(),
		Send:    h.buf(h.Send, 1),
		Recv:    h.buf(h.Recv, 1),
		Objects: &headsOnBoard,
	}
	if s := c.coll.BoardOp(&a); s != nil {
		h.Number = s.Number()
		return c.runOnBoard(s, pending)
	}
	kept := a // so that a stays on the stack
	kept.Objects = &coll.Objects{More: func() bool { return c.anyLong(h) || c.foldedByOne(h) }}
	o := c.coll.Start(&kept)
	h.Number, h.Generation = o.Number(), int64(o.Generation())
	return finishNow(collective{o}, pending)
}

// broadcastHead broadcasts the head of the result of an allreduce.
func (c *Comm) broadcastHead(h *Heads, pending *int64) Code {
	if e := c.pt.Dropped(uint32(h.Generation)); e != nil {
		return CodeOf(e)
	}
	c.coll.Continue(h.Number, uint32(h.Generation), h.call(), &coll.Objects{More: func() bool { return c.anyLong(h) }})
	return finishNow(collective{c.coll.BcastObject(h.buf(h.Recv, 1), int(h.Root))}, pending)
}

// SettleHeads follows an ExchangeHeads that was interrupted. failed: it has no result.
func SettleHeads(h *Heads, failed bool) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(h.Comm)
	if e != nil {
		return CodeOf(e)
	}
	if failed {
		code = Interrupted // any but 0
	}
	if done := c.settle(h, code); !failed {
		return done
	}
	return 0
}

// settle finds whether this rank takes the second step after a step that has ended with a code, and tells the others if it
// does not because that has failed.
func (c *Comm) settle(h *Heads, code Code) Code {
	h.More = 0
	if e := c.pt.Dropped(uint32(h.Generation)); e != nil { // a reset has ended it everywhere
		if code == 0 {
			code = CodeOf(e)
		}
		return code
	}
	if code != 0 {
		c.coll.Refuse(h.Number)
	} else if c.anyLong(h) {
		h.More = 1
	}
	return code
}

// RefuseObjects is called by a rank that takes no further step although others may count on it.
func RefuseObjects(h *Heads) {
	var code Code
	defer Contain(&code)
	if c, e := getUsableComm(h.Comm); e == nil && h.Generation == int64(c.pt.Generation()) {
		c.coll.Refuse(h.Number)
	}
}

// FinishObjects is called by a rank that takes no further step because notes differ. All ranks find that themselves when they
// have the heads: none takes a further step, and those that still wait for heads get them, and not the news that this rank
// has given up.
func FinishObjects(h *Heads) {
	var code Code
	defer Contain(&code)
	if c, e := getUsableComm(h.Comm); e == nil && h.Generation == int64(c.pt.Generation()) {
		c.coll.Finish(h.Number)
	}
}

// LongObjects starts the step of a collective of objects for pickles that have no room in their heads. The sides have no
// bytes for the others.
func LongObjects(h *Heads, s, r *Side) (req int64, code Code) {
	defer Contain(&code)
	c, e := getUsableComm(h.Comm)
	if e == nil {
		e = c.pt.Dropped(uint32(h.Generation))
	}
	if e != nil {
		return 0, CodeOf(e)
	}
	start, e := c.longObjects(h, s, r)
	if e != nil {
		return 0, CodeOf(e)
	}
	objects := &coll.Objects{}
	if h.Reduce != 0 && !h.continues() {
		objects.More = func() bool { return true }
	}
	c.coll.Continue(h.Number, uint32(h.Generation), h.call(), objects)
	return inBackground(collective{start()}), 0
}

func (c *Comm) longObjects(h *Heads, s, r *Side) (start starts, e *errs.Error) {
	var one p2p.Buf
	var all, out *coll.Vec
	root := int(h.Root)
	isRoot := c.rank == root
	kind := coll.Kind(h.Kind)
	if h.Reduce != 0 && kind == coll.KindAllgather {
		kind, root, isRoot = coll.KindGather, 0, c.rank == 0
	}
	switch kind {
	case coll.KindBcast:
		one, e = r.one()
		start = func() *coll.Op { return c.coll.BcastObject(one, root) }
	case coll.KindGather:
		if one, e = s.one(); e == nil && isRoot {
			all, e = r.vec(c.size)
		}
		start = func() *coll.Op { return c.coll.GatherObjects(one, all, root) }
	case coll.KindScatter:
		if one, e = r.one(); e == nil && isRoot {
			all, e = s.vec(c.size)
		}
		start = func() *coll.Op { return c.coll.ScatterObjects(all, one, root) }
	case coll.KindAllgather:
		all, e = r.vec(c.size)
		start = func() *coll.Op { return c.coll.AllgatherObjects(all) }
	case coll.KindAlltoall:
		if out, e = s.vec(c.size); e == nil {
			all, e = r.vec(c.size)
		}
		start = func() *coll.Op { return c.coll.AlltoallObjects(out, all) }
	default:
		e = errs.New(errs.Intern, "collective %d has no objects", h.Kind)
	}
	return start, e
}

// name returns the name of the call. That of a call by the board needs no memory.
func (h *Heads) name() string {
	switch kind := coll.Kind(h.Kind); {
	case h.Reduce != 0:
		return "allreduce"
	case kind == coll.KindBcast:
		return "bcast"
	case kind == coll.KindGather:
		return "gather"
	case kind == coll.KindScatter:
		return "scatter"
	case kind == coll.KindAllgather:
		return "allgather"
	default:
		return strings.ToLower(kind.String())
	}
}

// call returns the call, which all its steps have in common.
func (h *Heads) call() coll.Call {
	kind := coll.Kind(h.Kind)
	if h.continues() {
		kind = coll.KindAllgather
	}
	return coll.CallOfObjects(kind, h.name(), int(h.Bytes), int(h.Root))
}

// buf returns the memory of n heads.
func (h *Heads) buf(addr, n int64) p2p.Buf {
	return p2p.Buf{Addr: pointer(addr), Count: int(n * h.Bytes), Type: byteType}
}

// anyLong reports whether this rank sends or receives a pickle that its head has no room for, or if any rank does in a
// broadcast or an allgather. Of other heads, one for each rank, the own one does not move.
func (c *Comm) anyLong(h *Heads) bool {
	if c.size == 1 {
		return false
	}
	skip := func(n int64) int {
		if kind := coll.Kind(h.Kind); n != int64(c.size) || kind == coll.KindAllgather || kind == coll.KindBcast {
			return -1
		}
		return c.rank
	}
	bytes := int(h.Bytes)
	return coll.AnyLong(h.buf(h.Recv, h.Received), bytes, skip(h.Received)) || coll.AnyLong(h.buf(h.Send, h.Sent), bytes, skip(h.Sent))
}

// foldedByOne reports whether rank 0 combines the objects of an allreduce: a note says that not all ranks get the same.
func (c *Comm) foldedByOne(h *Heads) bool {
	if h.Reduce == 0 {
		return false
	}
	mine := coll.Note(h.buf(h.Send, 1), int(h.Bytes), 0)
	if mine&notePlain == 0 {
		return true
	}
	for r := range c.size {
		if r != c.rank && coll.Note(h.buf(h.Recv, h.Received), int(h.Bytes), r) != mine {
			return true
		}
	}
	return false
}

// What the note of a head may say. The low bits of an allreduce's are the predefined operation, 0 for a function of the
// program.
const (
	PlainBit  = 32 // the object is of a type whose values all ranks combine alike
	ReduceBit = 33 // the call is allreduce, not allgather

	notePlain  = 1 << PlainBit
	noteReduce = 1 << ReduceBit
)

// ObjectsDiffer returns the error of a rank whose head in an allgather or an allreduce has the note mine, while that of
// another rank is theirs.
func ObjectsDiffer(mine, theirs int64, rank int) (code Code) {
	defer Contain(&code)
	class := errs.Other
	if mine&theirs&noteReduce != 0 {
		class = errs.Op
	}
	return CodeOf(errs.New(class, "the ranks do not call the same collective: this rank calls %s, rank %d of the communicator %s",
		noteText(mine), rank, noteText(theirs)))
}

func noteText(note int64) string {
	switch f := op.Op(note & (notePlain - 1)); {
	case note&noteReduce == 0:
		return "allgather of an object"
	case f == 0:
		return "allreduce of an object with a function of the program"
	default:
		return "allreduce of an object with " + f.String()
	}
}

// FoldFailed returns the error of allreduce at the ranks whose rank 0 could not combine the objects.
func FoldFailed() (code Code) {
	defer Contain(&code)
	return CodeOf(errs.New(errs.Other, "allreduce can't complete: rank 0 of the communicator, which combines the objects, has raised an exception (its own error says which)"))
}
