package coll

import (
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Start starts a collective by messages.
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
	case KindGatherv:
		o = c.Gather(send, a.RecvV, a.Root)
	case KindScatterv:
		recv := &a.Recv
		if a.RecvInPlace {
			recv = nil
		}
		o = c.Scatter(a.SendV, recv, a.Root)
	case KindAllgatherv:
		o = c.Allgather(send, a.RecvV)
	case KindAlltoallv:
		o = c.Alltoall(a.SendV, a.RecvV, a.SendInPlace)
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

// Alone does a collective of one rank.
func (c *Comm) Alone(a *Args) (e *errs.Error) {
	if fault := sys.Touch(func() { e = a.alone() }); fault != nil {
		return a.faulted(fault)
	}
	return e
}

func (a *Args) alone() *errs.Error {
	to, from := a.Recv, a.Send
	switch a.Kind {
	case KindBarrier, KindIbarrier, KindBcast, KindExscan:
		return nil
	case KindScatterv:
		from = a.SendV.part(0)
	case KindGatherv, KindAllgatherv:
		to = a.RecvV.part(0)
	case KindAlltoallv:
		if to = a.RecvV.part(0); !a.SendInPlace {
			from = a.SendV.part(0)
		}
	}
	if a.SendInPlace || a.RecvInPlace {
		return nil
	}
	copyLocal(to, from)
	if room, n := to.Bytes(), from.Bytes(); n > room {
		return tooLong(a.Kind.String(), 0, 0, n, room)
	}
	return nil
}
