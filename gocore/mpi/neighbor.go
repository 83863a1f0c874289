package mpi

import (
	"slices"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// neighbors are the edges of this rank in a communicator's topology. A rank may be ProcNull: nothing goes along that edge.
type neighbors struct {
	sources, destinations []int64
	arrivals              []int64 // the incoming edges, in the order in which their senders name them
}

// SetNeighbors tells the communicator the edges of this rank.
func SetNeighbors(comm int64, sources, destinations, arrivals []int64) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	n := &neighbors{append([]int64(nil), sources...), append([]int64(nil), destinations...), append([]int64(nil), arrivals...)}
	for _, ranks := range [][]int64{sources, destinations} {
		for _, r := range ranks {
			if r != p2p.ProcNull && (r < 0 || r >= int64(c.size)) {
				return classError(errs.Rank, "the neighbor %d is not in the communicator: %s", r, c.rankRange())
			}
		}
	}
	for _, i := range arrivals {
		if i < 0 || i >= int64(len(sources)) {
			return classError(errs.Intern, "there is no incoming edge %d of %d", i, len(sources))
		}
	}
	c.neighbors.Store(n)
	return 0
}

// Neighbor starts a collective among neighbors with equal counts: s.Count items go along each outgoing edge, r.Count items
// come along each incoming one. In KindNeighborAllgather they are the same items for each; otherwise the parts follow each other.
func Neighbor(kind int, comm int64, s, r Operand, nonblocking bool, req *int64) (code Code) {
	defer Contain(&code)
	c, n, e := getNeighbors(comm)
	if e != nil {
		return CodeOf(e)
	}
	send, e := buf(s.Addr, s.Count, s.Type)
	if e != nil {
		return CodeOf(e)
	}
	recv, e := buf(r.Addr, r.Count, r.Type)
	if e != nil {
		return CodeOf(e)
	}
	each := coll.Kind(kind) == coll.KindNeighborAlltoall
	var few [fewEdges]coll.Edge
	out := few[:0]
	if len(n.destinations)+len(n.arrivals) > fewEdges {
		out = make([]coll.Edge, 0, len(n.destinations)+len(n.arrivals))
	}
	for i, rank := range n.destinations {
		if rank != p2p.ProcNull {
			out = append(out, coll.Edge{Rank: int(rank), Buf: partAt(send, i, each)})
		}
	}
	in := out[len(out):]
	for _, i := range n.arrivals {
		if rank := n.sources[i]; rank != p2p.ProcNull {
			in = append(in, coll.Edge{Rank: int(rank), Buf: partAt(recv, int(i), true)})
		}
	}
	return c.neighbor(coll.Kind(kind), out, in, false, nonblocking, req)
}

// fewEdges is how many edges a call has on its stack: those of a grid of three dimensions.
const fewEdges = 12

// partAt returns the i-th of parts that follow each other, or the only one.
func partAt(b p2p.Buf, i int, each bool) p2p.Buf {
	if each && b.Addr != nil {
		b.Addr = pointer(int64(uintptr(b.Addr)) + int64(i*b.Count*b.Type.Extent()))
	}
	return b
}

// NeighborParts starts a collective among neighbors with a part of its own for each edge, those without a neighbor included. In
// KindAlltoallw all ranks are neighbors; without parts to send it is in place.
func NeighborParts(kind int, comm int64, s, r []Operand, nonblocking bool, req *int64) (code Code) {
	defer Contain(&code)
	c, out, in, e := edgesOf(coll.Kind(kind), comm, s, r)
	if e != nil {
		return CodeOf(e)
	}
	return c.neighbor(coll.Kind(kind), out, in, isInPlace(coll.Kind(kind), s), nonblocking, req)
}

// NeighborInit makes a persistent request of NeighborParts.
func NeighborInit(kind int, comm int64, s, r []Operand) (req int64, code Code) {
	defer Contain(&code)
	_, out, in, e := edgesOf(coll.Kind(kind), comm, s, r)
	if e != nil {
		return 0, CodeOf(e)
	}
	return persist(func() (operation, Code) {
		c, e := getUsableComm(comm)
		if e != nil {
			return nil, CodeOf(e)
		}
		return c.startNeighbor(coll.Kind(kind), out, in, isInPlace(coll.Kind(kind), s), true), 0
	}), 0
}

func getNeighbors(comm int64) (*Comm, *neighbors, *errs.Error) {
	c, e := getUsableComm(comm)
	if e != nil {
		return nil, nil, e
	}
	n := c.neighbors.Load()
	if n == nil {
		return nil, nil, errs.New(errs.Topology, "the communicator has no topology")
	}
	return c, n, nil
}

// isInPlace reports whether the parts to send, which are those to receive, have been left out.
func isInPlace(kind coll.Kind, s []Operand) bool { return kind == coll.KindAlltoallw && len(s) == 0 }

// everybody returns the edges of a rank to and from all ranks.
func (c *Comm) everybody() *neighbors {
	n := c.all.Load()
	if n == nil {
		ranks := make([]int64, c.size)
		for i := range ranks {
			ranks[i] = int64(i)
		}
		n = &neighbors{ranks, ranks, ranks}
		c.all.Store(n)
	}
	return n
}

// edgesOf returns what goes along the edges: incoming ones in the order in which their senders name them.
func edgesOf(kind coll.Kind, comm int64, s, r []Operand) (c *Comm, out, in []coll.Edge, e *errs.Error) {
	var n *neighbors
	if kind != coll.KindAlltoallw {
		c, n, e = getNeighbors(comm)
	} else if c, e = getUsableComm(comm); e == nil {
		if n = c.everybody(); isInPlace(kind, s) {
			s = r
		}
	}
	if e != nil {
		return nil, nil, nil, e
	}
	if len(s) != len(n.destinations) || len(r) != len(n.sources) {
		return nil, nil, nil, errs.New(errs.Arg, "there are %d parts to send and %d to receive for %d outgoing and %d incoming edges",
			len(s), len(r), len(n.destinations), len(n.sources))
	}
	add := func(edges []coll.Edge, rank int64, p Operand) []coll.Edge {
		var b p2p.Buf
		if b, e = buf(p.Addr, p.Count, p.Type); rank == p2p.ProcNull {
			return edges
		}
		return append(edges, coll.Edge{Rank: int(rank), Buf: b})
	}
	for i, rank := range n.destinations {
		if out = add(out, rank, s[i]); e != nil {
			return nil, nil, nil, e
		}
	}
	for _, i := range n.arrivals {
		if in = add(in, n.sources[i], r[i]); e != nil {
			return nil, nil, nil, e
		}
	}
	return c, out, in, nil
}

// neighbor starts a collective among neighbors, and sets req to its request; a blocking one waits for it, like Blocking.
func (c *Comm) neighbor(kind coll.Kind, out, in []coll.Edge, inPlace, nonblocking bool, req *int64) Code {
	if !nonblocking && kind != coll.KindAlltoallw {
		if d := c.coll.SingleCopyNeighbor(coll.Call{Kind: kind, Bytes: -1}, out, in); d != nil {
			return c.runCopies(d, req)
		}
	}
	o := c.startNeighbor(kind, slices.Clone(out), slices.Clone(in), inPlace, nonblocking) // so that those of the caller stay on its stack
	if !nonblocking {
		return finishNow(o, req)
	}
	*req = inBackground(o)
	return 0
}

func (c *Comm) startNeighbor(kind coll.Kind, out, in []coll.Edge, inPlace, nonblocking bool) collective {
	c.coll.Calling(coll.Call{Kind: kind, Bytes: -1, Nonblocking: nonblocking})
	return collective{c.coll.Neighbor(out, in, inPlace)}
}
