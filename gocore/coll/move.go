package coll

import (
	"unsafe"

	"gormapy/gocore/p2p"
)

// BarrierByMessages starts a dissemination barrier: in round k a rank sends to the one
// 2^k after it. It is for ranks that share no memory, and for Ibarrier.
func (c *Comm) BarrierByMessages() *Op {
	if c.nodes != nil {
		return c.barrierByNodes()
	}
	return c.newOp(func(o *Op, k int) bool {
		d := 1 << k
		if d >= c.Size {
			return true
		}
		o.recv(raw(nil, 0), (c.Rank-d+c.Size)%c.Size)
		o.send(raw(nil, 0), (c.Rank+d)%c.Size)
		return false
	})
}

// segment is the size of the pieces in which a long broadcast travels down the
// tree: a rank passes one on while it receives the next.
const segment = 128 << 10

// Bcast starts a broadcast from root along a tree, in segments if it is long and there
// is more than one level.
func (c *Comm) Bcast(b p2p.Buf, root int) *Op {
	parent, children := c.tree(root)
	bytes := b.Bytes()
	pieces, flat := 1, b
	if bytes >= 2*segment && c.Size > 2 {
		pieces = (bytes + segment - 1) / segment
	}
	return c.newOp(func(o *Op, k int) bool {
		if k == 0 && pieces > 1 && !b.Type.Dense() {
			flat = raw(o.temp(bytes), bytes)
			if parent < 0 {
				b.Type.Pack(unsafe.Slice((*byte)(flat.Addr), bytes), b.Addr, b.Count)
			}
		}
		piece := func(i int) p2p.Buf {
			if pieces == 1 {
				return b
			}
			return raw(unsafe.Add(flat.Addr, i*segment), min(segment, bytes-i*segment))
		}
		if k > pieces {
			if parent >= 0 && flat.Addr != b.Addr {
				b.Type.Unpack(b.Addr, unsafe.Slice((*byte)(flat.Addr), bytes), b.Count)
			}
			return true
		}
		if parent >= 0 && k < pieces {
			o.recv(piece(k), parent)
		}
		if k > 0 {
			for _, child := range children {
				o.send(piece(k-1), child)
			}
		}
		return false
	})
}

// Gather starts a gather to root; all is significant at root only. If send is nil,
// root's part is already in place.
func (c *Comm) Gather(send *p2p.Buf, all *Vec, root int) *Op {
	if c.nodes != nil {
		return c.gatherByNodes(send, all, root)
	}
	return c.gatherDirectly(send, all, root)
}

func (c *Comm) gatherDirectly(send *p2p.Buf, all *Vec, root int) *Op {
	return c.newOp(func(o *Op, k int) bool {
		if k > 0 {
			return true
		}
		if c.Rank != root {
			o.send(*send, root)
			return false
		}
		for i := range c.Size {
			if i != root {
				o.recv(all.part(i), i)
			} else if send != nil {
				o.keep(all.part(i), *send)
			}
		}
		return false
	})
}

// Scatter starts a scatter from root; all is significant at root only. If recv is
// nil, root's part stays in place.
func (c *Comm) Scatter(all *Vec, recv *p2p.Buf, root int) *Op {
	if c.nodes != nil {
		return c.scatterByNodes(all, recv, root)
	}
	return c.scatterDirectly(all, recv, root)
}

func (c *Comm) scatterDirectly(all *Vec, recv *p2p.Buf, root int) *Op {
	return c.newOp(func(o *Op, k int) bool {
		if k > 0 {
			return true
		}
		if c.Rank != root {
			o.recv(*recv, root)
			return false
		}
		for i := range c.Size {
			if i != root {
				o.send(all.part(i), i)
			} else if recv != nil {
				o.keep(*recv, all.part(i))
			}
		}
		return false
	})
}

// Allgather starts an allgather. Every rank sends its part to every other, in one step
// without dependencies. On one host this is faster than a tree, in which ranks wait
// for one that has no processor at the moment. If send is nil, the own part is already
// in place.
func (c *Comm) Allgather(send *p2p.Buf, all *Vec) *Op {
	if c.nodes != nil {
		return c.allgatherByNodes(send, all)
	}
	return c.newOp(func(o *Op, k int) bool {
		if k > 0 {
			return true
		}
		own := all.part(c.Rank)
		if send != nil {
			o.keep(own, *send)
			own = *send
		}
		o.exchange(func(i int) { o.recv(all.part(i), i) }, func(i int) { o.send(own, i) })
		return false
	})
}

// Alltoall starts an exchange of a part with every rank. If inPlace is set, the parts
// to send are taken from recv.
func (c *Comm) Alltoall(send, recv *Vec, inPlace bool) *Op {
	start := partsToSend(send, recv, inPlace)
	if c.nodes != nil {
		return c.alltoallByNodes(start, recv)
	}
	return c.alltoallDirectly(start, recv)
}

func (c *Comm) alltoallDirectly(start func(o *Op) func(i int) p2p.Buf, recv *Vec) *Op {
	return c.stages(func(o *Op) {
		out := start(o)
		o.exchange(func(i int) { o.recv(recv.part(i), i) }, func(i int) { o.send(out(i), i) })
	})
}

// keep copies what this rank sends to itself. As a message, it may not be longer than the room for it: that is this rank's error, and
// the collective goes on for the others.
func (o *Op) keep(dst, src p2p.Buf) {
	copyLocal(dst, src)
	if room, n := dst.Bytes(), src.Bytes(); n > room && o.own == nil {
		o.own = tooLong(o.Name(), o.c.Rank, o.c.Rank, n, room)
	}
}

// partsToSend returns the beginning of the first step of an Alltoall. It copies this rank's
// part for itself, and returns the part for rank i.
func partsToSend(send, recv *Vec, inPlace bool) func(o *Op) func(i int) p2p.Buf {
	return func(o *Op) func(i int) p2p.Buf {
		if !inPlace {
			o.keep(recv.part(o.c.Rank), send.part(o.c.Rank))
			return send.part
		}
		// Receiving overwrites the data to send: send copies.
		out := make([]p2p.Buf, o.c.Size)
		for i := range out {
			b := recv.part(i)
			n := b.Bytes()
			out[i] = raw(o.temp(n), n)
			copyLocal(out[i], b)
		}
		return func(i int) p2p.Buf { return out[i] }
	}
}

// exchange starts receives from and sends to all other ranks. Each rank begins with its
// neighbour, so that they do not all send to the same one.
func (o *Op) exchange(recv, send func(i int)) {
	for d := 1; d < o.c.Size; d++ {
		recv((o.c.Rank - d + o.c.Size) % o.c.Size)
	}
	for d := 1; d < o.c.Size; d++ {
		send((o.c.Rank + d) % o.c.Size)
	}
}
