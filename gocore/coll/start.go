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
	c.Calling(a.Call)
	var o *Op
	switch a.Kind {
	case KindBarrier, KindIbarrier:
		o = c.BarrierByMessages()
	case KindBcast:
		o = c.Bcast(a.Recv, a.Root)
	case KindGather:
		o = c.Gather(send, c.all(a.Recv, a.Root), a.Root)
	case KindScatter:
		recv := &a.Recv
		if a.RecvInPlace {
			recv = nil
		}
		o = c.Scatter(c.all(a.Send, a.Root), recv, a.Root)
	case KindAllgather:
		o = c.Allgather(send, Uniform(a.Recv, c.Size))
	case KindAlltoall:
		var out *Vec
		if !a.SendInPlace {
			out = Uniform(a.Send, c.Size)
		}
		o = c.Alltoall(out, Uniform(a.Recv, c.Size), a.SendInPlace)
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

// all returns root's buffer, with a part for each rank; nil on the other ranks.
func (c *Comm) all(b p2p.Buf, root int) *Vec {
	if c.Rank != root {
		return nil
	}
	return Uniform(b, c.Size)
}
