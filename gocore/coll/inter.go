package coll

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// Sides divides the ranks of the union of an intercommunicator's two groups. Its collectives are
// schedules of the union, by messages: data go from one group to the other.
//
// A call with a root has it in one of the groups. The root itself and the other group take
// part. The other members of the root's group (MPI_PROC_NULL) have a schedule without steps, which only
// counts, since the numbers of collectives have to agree.
type Sides struct {
	Local  []int // this rank's group, as ranks of the union
	Remote []int // the other group
	Me     int   // this rank's index in Local
}

// Name names a rank of the union as the program knows it. Without sides it is one of an intracommunicator.
func (s *Sides) Name(rank int) string {
	if s == nil {
		return fmt.Sprintf("rank %d of the communicator", rank)
	}
	i, group := s.place(rank)
	return fmt.Sprintf("rank %d of the %s group", i, group)
}

// place returns which rank of which group a rank of the union is.
func (s *Sides) place(rank int) (i int, group string) {
	if i = slices.Index(s.Local, rank); i >= 0 {
		return i, "local"
	}
	return slices.Index(s.Remote, rank), "remote"
}

// own returns this rank's rank in the union.
func (s *Sides) own() int {
	if s == nil {
		return -1
	}
	return s.Local[s.Me]
}

// root names the root of a call of caller.
func (s *Sides) root(root, caller int) string {
	if s == nil {
		return strconv.Itoa(root)
	}
	if root == caller {
		return "MPI.ROOT"
	}
	i, group := s.place(root)
	return fmt.Sprintf("%d of the %s group", i, group)
}

// Role is what this rank is in a collective with a root.
type Role uint8

// The roles.
const (
	Peer      Role = iota // a member of the group that communicates with the root
	IsRoot                // the root
	Bystander             // another member of the root's group
)

// bystand starts a collective in which this rank has nothing to do.
func (c *Comm) bystand() *Op {
	c.next.Store(nil) // the root is not known
	return c.newOp(func(*Op, int) bool { return true })
}

// InterBcast starts a broadcast from the root to the other group, of whose members root says which remote rank
// is the root: it sends to the first, and they pass it on along a binomial tree.
func (c *Comm) InterBcast(b p2p.Buf, role Role, root int) *Op {
	s := c.Sides
	switch role {
	case Bystander:
		return c.bystand()
	case IsRoot:
		return c.stages(func(o *Op) { o.send(b, s.Remote[0]) })
	}
	parent, children := branches(s.Me, len(s.Local))
	from := s.Remote[root]
	if parent >= 0 {
		from = s.Local[parent]
	}
	return c.stages(func(o *Op) { o.recv(b, from) }, func(o *Op) {
		for _, child := range children {
			o.send(b, s.Local[child])
		}
	})
}

// InterGather starts a gather: the root receives a part of each remote rank.
func (c *Comm) InterGather(send p2p.Buf, all *Vec, role Role, root int) *Op {
	s := c.Sides
	switch role {
	case Bystander:
		return c.bystand()
	case IsRoot:
		return c.stages(func(o *Op) {
			for i, r := range s.Remote {
				o.recv(all.part(i), r)
			}
		})
	}
	return c.stages(func(o *Op) { o.send(send, s.Remote[root]) })
}

// InterScatter starts a scatter: the root sends a part to each remote rank.
func (c *Comm) InterScatter(all *Vec, recv p2p.Buf, role Role, root int) *Op {
	s := c.Sides
	switch role {
	case Bystander:
		return c.bystand()
	case IsRoot:
		return c.stages(func(o *Op) {
			for i, r := range s.Remote {
				o.send(all.part(i), r)
			}
		})
	}
	return c.stages(func(o *Op) { o.recv(recv, s.Remote[root]) })
}

// InterAlltoall starts an exchange: this rank sends a part of out to each remote rank, and receives one of in from
// each.
func (c *Comm) InterAlltoall(out, in *Vec) *Op { return c.interExchange(out.part, in) }

// InterAllgather starts an allgather: each rank receives a part of each remote rank.
func (c *Comm) InterAllgather(send p2p.Buf, in *Vec) *Op {
	return c.interExchange(func(int) p2p.Buf { return send }, in)
}

func (c *Comm) interExchange(out func(i int) p2p.Buf, in *Vec) *Op {
	s := c.Sides
	n := len(s.Remote)
	return c.stages(func(o *Op) {
		for k := range n {
			i := (s.Me + k) % n
			o.recv(in.part(i), s.Remote[i])
		}
		for k := range n {
			i := (s.Me + k) % n
			o.send(out(i), s.Remote[i])
		}
	})
}

// folders returns how many ranks of a group of n fold a slice each of operands of some bytes.
func folders(n, bytes int) int {
	if bytes < splitFrom {
		return 1
	}
	return n
}

// fold is the first step of a reduction: the operands of this rank's group are folded, a slice by each of the first
// ranks of it. parts is nil if this rank folds none.
func (o *Op) fold(s *Sides, send p2p.Buf, f op.Op) (e elements, parts []unsafe.Pointer) {
	e = o.operand(send, f)
	n := folders(len(s.Local), e.bytes())
	if s.Me < n {
		parts = make([]unsafe.Pointer, len(s.Local))
		off, length := e.slice(s.Me, n)
		for i, r := range s.Local {
			parts[i] = o.temp(length)
			if i == s.Me { // folded elsewhere, since others still read the operand
				copyLocal(raw(parts[i], length), raw(unsafe.Add(e.p, off), length))
			} else {
				o.recv(raw(parts[i], length), r)
			}
		}
	}
	for i := range n {
		if off, length := e.slice(i, n); i != s.Me {
			o.send(raw(unsafe.Add(e.p, off), length), s.Local[i])
		}
	}
	return e, parts
}

// folded folds this rank's slice, of which fold has brought the parts. It has no memory if this rank folds none.
func (e *elements) folded(s *Sides, parts []unsafe.Pointer) p2p.Buf {
	if parts == nil {
		return raw(nil, 0)
	}
	_, length := e.slice(s.Me, folders(len(s.Local), e.bytes()))
	part := elements{n: length / max(e.size, 1), kind: e.kind, size: e.size, op: e.op}
	return raw(foldAll(&part, parts), length)
}

// recvFolded receives the result of the remote group into e.
func (o *Op) recvFolded(s *Sides, e *elements) {
	n := folders(len(s.Remote), e.bytes())
	for i := range n {
		off, length := e.slice(i, n)
		o.recv(raw(unsafe.Add(e.p, off), length), s.Remote[i])
	}
}

// room returns elements as many as b has, in memory of the collective.
func (o *Op) room(b p2p.Buf, f op.Op) elements {
	e := elements{n: b.Count * b.Type.Elems(), kind: b.Type.Kind(), size: b.Type.ElemSize(), op: f}
	e.p = o.temp(e.bytes())
	return e
}

// InterReduce starts a reduction of the operands of the other group to the root.
func (c *Comm) InterReduce(send, recv p2p.Buf, f op.Op, role Role, root int) *Op {
	s := c.Sides
	var e elements
	var parts []unsafe.Pointer
	switch role {
	case Bystander:
		return c.bystand()
	case IsRoot:
		return c.stages(func(o *Op) {
			e = o.room(recv, f)
			o.recvFolded(s, &e)
		}, func(*Op) { e.store(recv) })
	}
	return c.stages(func(o *Op) { e, parts = o.fold(s, send, f) }, func(o *Op) {
		if parts != nil {
			o.send(e.folded(s, parts), s.Remote[root])
		}
	})
}

// InterAllreduce starts a reduction of each group's operands to all ranks of the other one.
func (c *Comm) InterAllreduce(send, recv p2p.Buf, f op.Op) *Op {
	s := c.Sides
	var e, got elements
	var parts []unsafe.Pointer
	return c.stages(func(o *Op) { e, parts = o.fold(s, send, f) }, func(o *Op) {
		got = o.room(recv, f)
		o.recvFolded(s, &got)
		if parts != nil {
			mine := e.folded(s, parts)
			for k := range s.Remote {
				o.send(mine, s.Remote[(s.Me+k)%len(s.Remote)])
			}
		}
	}, func(*Op) { got.store(recv) })
}

// InterReduceScatter starts a reduction of each group's operands, of whose result each rank of the other group
// receives a block: those of a group have counts items, and as many elements in all as those of the other one. The first
// rank of a group gets the result, and distributes it.
func (c *Comm) InterReduceScatter(send, recv p2p.Buf, counts []int, f op.Op) *Op {
	s := c.Sides
	var e, got, block elements
	var parts []unsafe.Pointer
	at := func(i int) p2p.Buf {
		before := 0
		for _, n := range counts[:i] {
			before += n
		}
		size := got.size * recv.Type.Elems()
		return raw(unsafe.Add(got.p, before*size), counts[i]*size)
	}
	return c.stages(func(o *Op) { e, parts = o.fold(s, send, f) }, func(o *Op) {
		if s.Me == 0 {
			got = o.room(send, f)
			o.recvFolded(s, &got)
		}
		if parts != nil {
			o.send(e.folded(s, parts), s.Remote[0])
		}
	}, func(o *Op) {
		if block = o.room(recv, f); s.Me > 0 {
			o.recv(raw(block.p, block.bytes()), s.Local[0])
			return
		}
		for i, r := range s.Local {
			if i > 0 {
				o.send(at(i), r)
			}
		}
		copyLocal(raw(block.p, block.bytes()), at(0))
	}, func(*Op) { block.store(recv) })
}
