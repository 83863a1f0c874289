package mpi

import (
	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Collectives of intercommunicators: what the arguments mean on each side. interColl and interCollv check them, and
// return what starts the collective, so that a persistent request can be checked before it is started.

// Root is MPI_ROOT.
const Root = -4

// starts starts a collective whose arguments have been checked.
type starts func() *coll.Op

// role returns what this rank is in a collective with a root.
func (c *Comm) role(root int) (coll.Role, *errs.Error) {
	switch {
	case root == Root:
		return coll.IsRoot, nil
	case root == p2p.ProcNull:
		return coll.Bystander, nil
	case root < 0 || root >= c.peers():
		return 0, errs.New(errs.Root, "the root %d is not in the remote group of the intercommunicator: %s; in the root's own group it is MPI.ROOT at the root and MPI.PROC_NULL elsewhere", root, c.rankRange())
	}
	return coll.Peer, nil
}

// roleIn returns what this rank is in a collective, and enters its root, which is the same at the root and in the other
// group, in call.
func (c *Comm) roleIn(call *coll.Call, root int) (role coll.Role, e *errs.Error) {
	if !call.Kind.Rooted() {
		return coll.Peer, nil
	}
	if role, e = c.role(root); role == coll.Peer && e == nil {
		call.Root = c.coll.Sides.Remote[root]
	} else {
		call.Root = c.coll.Rank
	}
	return role, e
}

// interArgs are the arguments of a collective with equal counts, as those of Coll.
type interArgs struct {
	kind                coll.Kind
	saddr, scount, styp int64
	raddr, rcount, rtyp int64
	op                  int64
	root                int
	nonblocking         bool
}

// notAcross is the error of a collective that intercommunicators don't have.
func notAcross(kind coll.Kind) *errs.Error {
	return errs.New(errs.Comm, "%s: this is an intercommunicator; an intracommunicator is needed (Merge makes one)", kind)
}

// interColl checks the arguments of a collective with equal counts of an intercommunicator, and returns what starts it.
func (c *Comm) interColl(a *interArgs) (starts, *errs.Error) {
	call := coll.Call{Kind: a.kind, Bytes: -1, Nonblocking: a.nonblocking}
	if a.kind > coll.KindReduceScatterBlock && a.kind != coll.KindIbarrier {
		return nil, notAcross(a.kind)
	}
	role, e := c.roleIn(&call, a.root)
	if e != nil {
		return nil, e
	}
	send, recv, e := a.sides(role)
	if e != nil {
		return nil, e
	}
	a.describe(&call, send, recv, role)
	if a.kind >= coll.KindReduce && a.kind <= coll.KindReduceScatterBlock && role != coll.Bystander {
		if e = c.interOperands(a, &call, send, recv, role); e != nil {
			return nil, e
		}
	}
	return func() *coll.Op {
		c.coll.Calling(call)
		return c.startInter(a, send, recv, &call, role)
	}, nil
}

func (c *Comm) startInter(a *interArgs, send, recv p2p.Buf, call *coll.Call, role coll.Role) *coll.Op {
	n := c.peers()
	switch a.kind {
	case coll.KindBcast:
		return c.coll.InterBcast(recv, role, a.root)
	case coll.KindGather:
		return c.coll.InterGather(send, coll.Uniform(recv, n), role, a.root)
	case coll.KindScatter:
		return c.coll.InterScatter(coll.Uniform(send, n), recv, role, a.root)
	case coll.KindAllgather:
		return c.coll.InterAllgather(send, coll.Uniform(recv, n))
	case coll.KindAlltoall:
		return c.coll.InterAlltoall(coll.Uniform(send, n), coll.Uniform(recv, n))
	case coll.KindReduce:
		return c.coll.InterReduce(send, recv, call.Op, role, a.root)
	case coll.KindAllreduce:
		return c.coll.InterAllreduce(send, recv, call.Op)
	case coll.KindReduceScatterBlock:
		counts := make([]int, c.size)
		for i := range counts {
			counts[i] = recv.Count
		}
		return c.coll.InterReduceScatter(send, recv, counts, call.Op)
	}
	return c.coll.BarrierByMessages()
}

// interOperands checks the sides of a reduction, and enters the operation in call.
func (c *Comm) interOperands(a *interArgs, call *coll.Call, send, recv p2p.Buf, role coll.Role) (e *errs.Error) {
	t := send.Type
	if a.kind == coll.KindReduce {
		if role == coll.IsRoot {
			t = recv.Type
		}
	} else {
		want := recv.Bytes()
		if a.kind == coll.KindReduceScatterBlock {
			want *= c.size
		}
		if send.Bytes() != want || send.Type.Kind() != recv.Type.Kind() {
			return errs.New(errs.Type, "a reduction needs the same data at both sides: the send buffer has %d bytes of %s, the receive buffers of the local group %d bytes of %s",
				send.Bytes(), nameOf(send.Type), want, nameOf(recv.Type))
		}
	}
	call.Elem = t.Kind()
	call.Op, e = getOp(a.op, t)
	return e
}

// describe adds to a call what is the same in both groups: the data from or to one rank.
func (a *interArgs) describe(call *coll.Call, send, recv p2p.Buf, role coll.Role) {
	side := &send
	switch a.kind {
	case coll.KindBarrier:
		call.Bytes = 0 // as in Barrier: the label of a call without an amount would be none
		return
	case coll.KindBcast:
		side = &recv
	case coll.KindGather, coll.KindReduce:
		if role == coll.IsRoot {
			side = &recv
		}
	case coll.KindScatter:
		if role == coll.Peer {
			side = &recv
		}
	case coll.KindAllreduce, coll.KindReduceScatterBlock:
	default:
		return // it differs between the directions
	}
	if role != coll.Bystander {
		call.Bytes, call.Elem = side.Bytes(), side.Type.Kind()
	}
}

// noInPlace is the error of IN_PLACE.
func noInPlace() *errs.Error {
	return errs.New(errs.Buffer, "IN_PLACE has no meaning in collectives of intercommunicators: the data go to the other group")
}

// sides returns the buffers that are significant for a role.
func (a *interArgs) sides(role coll.Role) (send, recv p2p.Buf, e *errs.Error) {
	needSend, needRecv := true, true
	switch a.kind {
	case coll.KindBarrier, coll.KindIbarrier:
		needSend, needRecv = false, false
	case coll.KindBcast:
		needSend, needRecv = false, role != coll.Bystander
	case coll.KindGather, coll.KindReduce:
		needSend, needRecv = role == coll.Peer, role == coll.IsRoot
	case coll.KindScatter:
		needSend, needRecv = role == coll.IsRoot, role == coll.Peer
	}
	if needSend && a.saddr == InPlace || needRecv && a.raddr == InPlace {
		return send, recv, noInPlace()
	}
	if needSend {
		if send, e = buf(a.saddr, a.scount, a.styp); e != nil {
			return send, recv, e
		}
	}
	if needRecv {
		recv, e = buf(a.raddr, a.rcount, a.rtyp)
	}
	return send, recv, e
}

// interCollv checks the arguments of a collective with a count for each remote rank, and returns what starts it.
func (c *Comm) interCollv(call coll.Call, send, recv *Side, root int) (starts, *errs.Error) {
	role, e := c.roleIn(&call, root)
	if e != nil {
		return nil, e
	}
	if role != coll.Bystander && (send.Addr == InPlace || recv.Addr == InPlace) {
		return nil, noInPlace()
	}
	var one p2p.Buf
	var out, in *coll.Vec
	n := c.peers()
	var start starts
	switch call.Kind {
	case coll.KindGatherv:
		if role == coll.IsRoot {
			in, e = recv.vec(n)
		} else if role == coll.Peer {
			one, e = send.one()
		}
		start = func() *coll.Op { return c.coll.InterGather(one, in, role, root) }
	case coll.KindScatterv:
		if role == coll.IsRoot {
			out, e = send.vec(n)
		} else if role == coll.Peer {
			one, e = recv.one()
		}
		start = func() *coll.Op { return c.coll.InterScatter(out, one, role, root) }
	case coll.KindAllgatherv:
		if one, e = send.one(); e == nil {
			in, e = recv.vec(n)
		}
		start = func() *coll.Op { return c.coll.InterAllgather(one, in) }
	case coll.KindAlltoallv:
		if out, e = send.vec(n); e == nil {
			in, e = recv.vec(n)
		}
		start = func() *coll.Op { return c.coll.InterAlltoall(out, in) }
	default:
		return nil, notAcross(call.Kind)
	}
	return func() *coll.Op {
		c.coll.Calling(call)
		return start()
	}, e
}
