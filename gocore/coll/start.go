package coll

import (
	"gormapy/gocore/p2p"
)

// Start starts a collective with equal counts by messages.
func (c *Comm) Start(a *Args) *Op {
	send := &a.Send
	if a.SendInPlace {
		send = nil
	}
	c.begins(a.Call, a.Objects)
	var o *Op
	switch a.Kind {
	case KindBarrier, KindIbarrier:
		o = c.BarrierByMessages()
	case KindBcast:
		o = c.Bcast(a.Recv, a.Root)
	case KindGather:
		if c.direct(a.Bytes) {
			o = c.gatherDirectly(send, c.all(a.Recv, a.Root), a.Root)
		} else {
			o = c.Gather(send, c.all(a.Recv, a.Root), a.Root)
		}
	case KindScatter:
		recv := &a.Recv
		if a.RecvInPlace {
			recv = nil
		}
		if c.direct(a.Bytes) {
			o = c.scatterDirectly(c.all(a.Send, a.Root), recv, a.Root)
		} else {
			o = c.Scatter(c.all(a.Send, a.Root), recv, a.Root)
		}
	case KindAllgather:
		o = c.Allgather(send, Uniform(a.Recv, c.Size))
	case KindAlltoall:
		var out *Vec
		if !a.SendInPlace {
			out = Uniform(a.Send, c.Size)
		}
		if in := Uniform(a.Recv, c.Size); c.direct(a.Bytes) {
			o = c.alltoallDirectly(partsToSend(out, in, a.SendInPlace), in)
		} else {
			o = c.Alltoall(out, in, a.SendInPlace)
		}
	case KindReduce:
		o = c.Reduce(a.Send, &a.Recv, a.Op, a.Root)
	case KindAllreduce:
		o = c.Allreduce(a.Send, a.Recv, a.Op)
	case KindReduceScatterBlock:
		o = c.ReduceScatterBlock(a.Send, a.Recv, a.Op)
	case KindScan, KindExscan:
		o = c.Scan(a.Send, a.Recv, a.Op, a.Kind == KindExscan)
	default:
		panic("coll: Start of " + a.Kind.String())
	}
	return o
}

// direct reports whether blocks of n bytes, the same of all ranks, are so long that none of
// them goes in a parcel.
func (c *Comm) direct(n int) bool { return c.nodes != nil && n > c.inParcel() }

// all returns root's buffer, with a part for each rank; nil on the other ranks.
func (c *Comm) all(b p2p.Buf, root int) *Vec {
	if c.Rank != root {
		return nil
	}
	return Uniform(b, c.Size)
}
