package coll

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
)

// Gather, scatter and alltoall of objects, whose pickles are of any size, take two steps. The
// first one is a collective with a head for each rank: the size of the pickle, and the pickle
// itself if there is room. The second one moves the others. Only the two ranks
// that it goes between know that a pickle is long: so a part of no bytes is neither sent nor
// received in the second step, and a rank that has nothing to send or to receive there skips
// it. All ranks number both.

// headByMessages is the size of a head where there is no board: a parcel has room for it.
const headByMessages = 512

// HeadBytes returns the size of the heads of a collective, the same at all ranks: at most what
// a slot of the board has room for. Only the part of a head that is in use is copied.
func (c *Comm) HeadBytes(kind Kind) int {
	if c.board == nil {
		return headByMessages
	}
	n := c.board.bytes
	if kind == KindScatter || kind == KindAlltoall {
		n = min(n, max(n, c.board.longBytes)/c.Size) &^ 7
	}
	if n < sizeBytes+56 {
		return headByMessages // which the board does not hold
	}
	return n
}

// sizeBytes is the size of the size.
const sizeBytes = 8

// copyHead copies a head of n bytes, without the part that is not in use.
func copyHead(dst, src unsafe.Pointer, n int) {
	size := *(*int64)(src)
	*(*int64)(dst) = size
	if size > 0 && size <= int64(n-sizeBytes) {
		fabric.Copy(unsafe.Add(dst, sizeBytes), unsafe.Add(src, sizeBytes), int(size))
	}
}

// GatherObjects starts the second step of a gather; all is significant at root only.
func (c *Comm) GatherObjects(send p2p.Buf, all *Vec, root int) *Op {
	return c.stages(func(o *Op) {
		if c.Rank != root {
			o.sendAny(send, root)
			return
		}
		copyLocal(all.part(root), send)
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
		copyLocal(recv, all.part(root))
		o.exchange(func(int) {}, func(i int) { o.sendAny(all.part(i), i) })
	})
}

// AlltoallObjects starts the second step of an alltoall.
func (c *Comm) AlltoallObjects(send, recv *Vec) *Op {
	return c.stages(func(o *Op) {
		copyLocal(recv.part(c.Rank), send.part(c.Rank))
		o.exchange(func(i int) { o.recvAny(recv.part(i), i) }, func(i int) { o.sendAny(send.part(i), i) })
	})
}

// SkipObjects numbers the second step at a rank that has nothing to send or to receive in it.
func (c *Comm) SkipObjects(call Call) {
	if c.board != nil {
		c.seq++
		c.done(c.seq)
		return
	}
	c.Calling(call)
	c.stages()
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
