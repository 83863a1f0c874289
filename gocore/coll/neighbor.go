package coll

import (
	"unsafe"

	"gormapy/gocore/p2p"
)

// Edge is what goes along an edge of a topology: to Rank, or from it. In an exchange of all ranks there is one between any two.
type Edge struct {
	Rank int
	p2p.Buf
}

// Neighbor starts an exchange among the neighbors of a topology. Two ranks may share several edges: what the sender's k-th edge to
// the receiver has arrives at the k-th of the receiver's edges from the sender. Messages go only along edges. With
// inPlace what is sent is overwritten by what arrives, and so is copied before; a rank sends nothing to itself.
func (c *Comm) Neighbor(out, in []Edge, inPlace bool) *Op {
	return c.newOp(func(o *Op, k int) bool {
		if k > 0 {
			return true
		}
		if inPlace {
			out = o.packedEdges(out)
		}
		for i := range in {
			if e := &in[i]; e.Rank != c.Rank {
				o.recv(e.Buf, e.Rank)
			}
		}
		own := 0
		for i := range out {
			switch e := &out[i]; {
			case e.Rank != c.Rank:
				o.send(e.Buf, e.Rank)
			case own < len(in) && !inPlace:
				own = o.keepAlong(e, in, own)
			}
		}
		return false
	})
}

// packedEdges returns edges with copies of what goes to other ranks.
func (o *Op) packedEdges(out []Edge) []Edge {
	packed := make([]Edge, len(out))
	for i, e := range out {
		packed[i] = Edge{Rank: e.Rank, Buf: raw(nil, 0)}
		if n := e.Bytes(); n > 0 && e.Rank != o.c.Rank {
			packed[i].Buf = raw(o.temp(n), n)
			pack(unsafe.Slice((*byte)(packed[i].Addr), n), e.Buf)
		}
	}
	return packed
}

// keepAlong copies what this rank sends to itself to the first of its incoming edges that comes from itself, from edge i on. It returns
// the number of the edge after that.
func (o *Op) keepAlong(e *Edge, in []Edge, i int) int {
	for ; i < len(in); i++ {
		if in[i].Rank == o.c.Rank {
			o.keep(in[i].Buf, e.Buf)
			return i + 1
		}
	}
	return i
}
