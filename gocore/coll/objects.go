package coll

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
)

// # Collectives of objects
//
// Objects are pickled, and pickles are of any size. A collective of objects takes two steps. The
// first one is a collective with a head for each rank: the size of the pickle, a note, and the pickle
// itself if there is room. The second one moves the others, by messages.
//
// All ranks of a broadcast and of an allgather learn the sizes, and take the second step if a
// pickle is long. In a gather, a scatter and an alltoall only the two ranks that a pickle goes
// between know that it is long: so a part of no bytes is neither sent nor received in the second
// step, and a rank that has nothing to send or to receive there does not take it.
//
// An allreduce is an allgather. If the objects are plain values, and the operation a predefined one, each rank
// combines them. Else the second step is a gather at rank 0, which combines them, and two more steps broadcast the
// result: its head, and itself if it is long.
//
// All steps have the same number and the same call: whatever becomes of them at whichever rank, the
// numbers of the ranks agree. A rank that can't take a later step because one has failed,
// or because it has no memory, refuses the collective (Refuse), so that those that send it
// something, or await something of it, end with an error.
//
// Without a board, a rank that takes another step is in the collective until that has ended (ledger.go):
// messages of the next step that arrive before it has begun here are kept, and questions are
// answered by "unfinished". So the operation of the first step goes on as that of the others.

// HeadNote is the offset of a head's note in it, and HeadData that of the pickle.
const (
	HeadNote = 8
	HeadData = 16
)

// headByMessages is the size of a head where there is no board: a parcel has room for it.
const headByMessages = 512

// leastHead is the size of the smallest head on a board.
const leastHead = 256

// CallOfObjects returns the call of a collective of objects, which all its steps have in
// common. name is what the program has called, bytes the size of a head.
func CallOfObjects(kind Kind, name string, bytes, root int) Call {
	return Call{Kind: kind, Root: root, Bytes: bytes, Elem: heads, Objects: name}
}

// HeadBytes returns the size of the heads of a collective, the same at all ranks: at most what
// a slot of the board has room for. Only the part of a head that is in use is copied to a board
// and from it; messages have all of it.
func (c *Comm) HeadBytes(kind Kind) int {
	if c.board == nil {
		return headByMessages
	}
	n := c.board.bytes
	if kind == KindScatter || kind == KindAlltoall {
		if n /= c.Size; n < leastHead {
			n = min(c.board.bytes, c.board.longBytes/c.Size)
		}
	}
	if n < leastHead {
		return headByMessages
	}
	return n &^ 7
}

// copyHead copies a head of n bytes, without the part that is not in use.
func copyHead(dst, src unsafe.Pointer, n int) {
	size := *(*int64)(src)
	*(*int64)(dst) = size
	*(*int64)(unsafe.Add(dst, HeadNote)) = *(*int64)(unsafe.Add(src, HeadNote))
	if size > 0 && size <= int64(n-HeadData) {
		fabric.Copy(unsafe.Add(dst, HeadData), unsafe.Add(src, HeadData), int(size))
	}
}

// AnyLong reports whether a pickle is longer than its head has room for. The heads follow each other, and each is of
// bytes; that of the rank skip is left out.
func AnyLong(heads p2p.Buf, bytes, skip int) bool {
	for i := range heads.Count / max(bytes, 1) {
		if size := *(*int64)(unsafe.Add(heads.Addr, i*bytes)); i != skip && size > int64(bytes-HeadData) {
			return true
		}
	}
	return false
}

// Objects describes a step of a collective of objects.
type Objects struct {
	More func() bool // reports, after the step, whether this rank takes another one; nil: it does not
}

// Note returns the note of the i-th of heads that follow each other.
func Note(heads p2p.Buf, bytes, i int) int64 {
	return *(*int64)(unsafe.Add(heads.Addr, i*bytes+HeadNote))
}

// Continue makes the collective that starts next another step of the one with this number,
// which was begun in this generation.
func (c *Comm) Continue(number, generation uint32, call Call, objects *Objects) {
	c.next.Store(&starting{call: call, hasCall: true, objects: objects, continues: true, number: number, generation: generation})
}

// newStep is newOp for another step.
func (c *Comm) newStep(next *starting, step func(o *Op, k int) bool) *Op {
	if o := c.takeKept(next.number); o != nil {
		o.restart(step, next.objects)
		return o
	}
	o := &Op{c: c, call: next.call, hasCall: true, tag: int(next.number & maxTag), cause: cause{rank: c.Rank, label: gaveUp}, objects: next.objects}
	o.number, o.label, o.called, o.generation = next.number, next.call.label(), next.call.Objects, next.generation
	o.step = func(k int) bool { return step(o, k) }
	o.Advance()
	return o
}

// restart makes an operation that has completed a step that of the next one.
func (o *Op) restart(step func(o *Op, k int) bool, objects *Objects) {
	o.mu.Lock()
	o.ended, o.again, o.refused, o.steps, o.used, o.askAt, o.objects = false, false, false, 0, 0, 0, objects
	o.step = func(k int) bool { return step(o, k) }
	o.mu.Unlock()
	o.Advance()
}

// keep keeps an operation that has completed a step, and takes another one.
func (c *Comm) keep(o *Op) {
	c.keptMu.Lock()
	defer c.keptMu.Unlock()
	if c.kept == nil {
		c.kept = map[uint32]*Op{}
	}
	c.kept[o.number] = o
}

// takeKept returns what was kept, once; nil if there is a board.
func (c *Comm) takeKept(number uint32) *Op {
	c.keptMu.Lock()
	defer c.keptMu.Unlock()
	o := c.kept[number]
	delete(c.kept, number)
	return o
}

// Finish ends a collective of objects of which no rank takes a further step, although this one had one to take.
func (c *Comm) Finish(number uint32) {
	if o := c.takeKept(number); o != nil {
		o.mu.Lock()
		o.end(false)
		o.mu.Unlock()
	}
}

// Refuse tells the other ranks that this one takes no further step of a collective although they may count on it.
func (c *Comm) Refuse(number uint32) {
	if c.board != nil {
		c.refuse(number)
		return
	}
	if o := c.takeKept(number); o != nil {
		o.mu.Lock()
		o.end(true)
		o.mu.Unlock()
	}
}

// BcastObject starts the second step of a broadcast. Ranks that share memory copy from the root's, all at once.
func (c *Comm) BcastObject(b p2p.Buf, root int) *Op {
	if c.board == nil {
		return c.Bcast(b, root)
	}
	return c.stages(func(o *Op) {
		if c.Rank != root {
			o.recv(b, root)
			return
		}
		o.exchange(func(int) {}, func(i int) { o.send(b, i) })
	})
}

// AllgatherObjects starts the second step of an allgather; the own part of all is what this rank sends.
func (c *Comm) AllgatherObjects(all *Vec) *Op {
	if c.nodes != nil {
		return c.Allgather(nil, all)
	}
	return c.stages(func(o *Op) {
		o.exchange(func(i int) { o.recvAny(all.part(i), i) }, func(i int) { o.sendAny(all.part(c.Rank), i) })
	})
}

// GatherObjects starts the second step of a gather; all is significant at root only.
func (c *Comm) GatherObjects(send p2p.Buf, all *Vec, root int) *Op {
	return c.stages(func(o *Op) {
		if c.Rank != root {
			o.sendAny(send, root)
			return
		}
		o.exchange(func(i int) { o.recvAny(all.part(i), i) }, func(int) {})
	})
}

// ScatterObjects starts the second step of a scatter; all is significant at root only.
func (c *Comm) ScatterObjects(all *Vec, recv p2p.Buf, root int) *Op {
	return c.stages(func(o *Op) {
		if c.Rank != root {
			o.recvAny(recv, root)
			return
		}
		o.exchange(func(int) {}, func(i int) { o.sendAny(all.part(i), i) })
	})
}

// AlltoallObjects starts the second step of an alltoall.
func (c *Comm) AlltoallObjects(send, recv *Vec) *Op {
	return c.stages(func(o *Op) {
		o.exchange(func(i int) { o.recvAny(recv.part(i), i) }, func(i int) { o.sendAny(send.part(i), i) })
	})
}

func (o *Op) sendAny(b p2p.Buf, to int) {
	if b.Count > 0 {
		o.send(b, to)
	}
}

func (o *Op) recvAny(b p2p.Buf, from int) {
	if b.Count > 0 {
		o.recv(b, from)
	}
}
