package mpi

import (
	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// Kinds of collectives.
const (
	CollBarrier = iota
	CollBcast
	CollGather
	CollScatter
	CollAllgather
	CollAlltoall
	CollReduce
	CollAllreduce
	CollReduceScatterBlock
	CollScan
	CollExscan
	CollGatherv
	CollScatterv
	CollAllgatherv
	CollAlltoallv
	CollIbarrier
)

// InPlace is the address that stands for MPI_IN_PLACE.
const InPlace = -1

// barrierOp is a barrier in shared memory as an operation.
type barrierOp struct {
	bar  *coll.Barrier
	done bool
}

func (b *barrierOp) Advance() bool {
	b.done = b.done || b.bar.Passed()
	return b.done
}
func (b *barrierOp) Check() error     { return b.bar.Check(w.eng) }
func (b *barrierOp) Abandon()         {}
func (b *barrierOp) Err() *errs.Error { return nil }
func (b *barrierOp) describe(why *engine.Reason) {
	why.Call = job.CallBarrier
}

// Barrier waits for all ranks of a communicator; like Blocking.
func Barrier(comm int64, pending *int64) (code Code) {
	defer Contain(&code)
	c, e := getComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	if c.size == 1 {
		return 0
	}
	if bar := c.coll.Bar; bar != nil {
		if bar.Arrive() {
			return 0
		}
		why := engine.Reason{Call: job.CallBarrier, Peer: -2, Tag: -1, Ctx: uint64(c.ctx)}
		err := w.eng.Wait(&why, bar.Passed, func() error { return bar.Check(w.eng) })
		if err == nil {
			return 0
		}
		if err != engine.ErrInterrupted {
			return codeOfErr(err)
		}
		r := &Request{op: &barrierOp{bar: bar}, why: why}
		if e := ready(); e != nil {
			return CodeOf(e)
		}
		*pending = reqs.add(r)
		return Interrupted
	}
	r := &Request{op: collective{c.coll.BarrierByMessages()}}
	if code = r.wait(0, nil, 0); code == Interrupted {
		*pending = reqs.add(r)
	}
	return code
}

// Coll starts a collective with equal counts.
func Coll(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (req int64, code Code) {
	defer Contain(&code)
	o, e := startColl(kind, comm, saddr, scount, stype, raddr, rcount, rtype, oph, root)
	if e != nil {
		return 0, CodeOf(e)
	}
	return reqs.add(&Request{op: collective{o}}), 0
}

// CollBlocking runs a collective; like Blocking.
func CollBlocking(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int, pending *int64) (code Code) {
	defer Contain(&code)
	o, e := startColl(kind, comm, saddr, scount, stype, raddr, rcount, rtype, oph, root)
	if e != nil {
		return CodeOf(e)
	}
	r := &Request{op: collective{o}}
	if code = r.wait(0, nil, 0); code == Interrupted {
		*pending = reqs.add(r)
	}
	return code
}

func startColl(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (*coll.Op, *errs.Error) {
	c, e := getComm(comm)
	if e != nil {
		return nil, e
	}
	if root < 0 || root >= c.size {
		return nil, errs.New(errs.Root, "the root %d is not in the communicator: its ranks are 0 to %d", root, c.size-1)
	}
	isRoot := c.rank == root
	if kind == CollBarrier || kind == CollIbarrier {
		return c.coll.BarrierByMessages(), nil
	}
	// Which sides are significant on this rank.
	needSend := kind != CollBcast && (kind != CollScatter || isRoot)
	needRecv := (kind != CollGather && kind != CollReduce) || isRoot
	var send, recv p2p.Buf
	sendInPlace, recvInPlace := saddr == InPlace && needSend, raddr == InPlace && needRecv
	if needSend && !sendInPlace {
		if send, e = buf(saddr, scount, stype); e != nil {
			return nil, e
		}
	}
	if needRecv && !recvInPlace {
		if recv, e = buf(raddr, rcount, rtype); e != nil {
			return nil, e
		}
	}
	if recvInPlace && kind != CollScatter {
		return nil, errs.New(errs.Buffer, "IN_PLACE stands for the send buffer of this collective, not for the receive buffer")
	}
	if sendInPlace && (kind == CollScatter || kind == CollGather || kind == CollReduce) && !isRoot {
		return nil, errs.New(errs.Buffer, "IN_PLACE is for the root only")
	}
	if kind == CollScatter && sendInPlace {
		return nil, errs.New(errs.Buffer, "IN_PLACE stands for the receive buffer of the root of a scatter, not for the send buffer")
	}
	var f op.Op
	switch kind {
	case CollReduce, CollAllreduce, CollReduceScatterBlock, CollScan, CollExscan:
		t := send.Type
		if sendInPlace {
			send, t = recv, recv.Type
			if kind == CollReduceScatterBlock {
				send.Count *= c.size
			}
		} else if needRecv {
			want := recv.Bytes()
			if kind == CollReduceScatterBlock {
				want *= c.size
			}
			if want != send.Bytes() || recv.Type.Kind() != t.Kind() {
				return nil, errs.New(errs.Type, "a reduction needs the same data at both sides: the send buffer has %d bytes of %s, the receive buffer %d bytes of %s",
					send.Bytes(), t.Name(), recv.Bytes(), recv.Type.Name())
			}
		}
		if f, e = getOp(oph, t); e != nil {
			return nil, e
		}
	}
	var sp *p2p.Buf
	if !sendInPlace {
		sp = &send
	}
	switch kind {
	case CollBcast:
		return c.coll.Bcast(recv, root), nil
	case CollGather:
		var all *coll.Vec
		if isRoot {
			all = coll.Uniform(recv, c.size)
		}
		return c.coll.Gather(sp, all, root), nil
	case CollScatter:
		var all *coll.Vec
		if isRoot {
			all = coll.Uniform(send, c.size)
		}
		var rp *p2p.Buf
		if !recvInPlace {
			rp = &recv
		}
		return c.coll.Scatter(all, rp, root), nil
	case CollAllgather:
		return c.coll.Allgather(sp, coll.Uniform(recv, c.size)), nil
	case CollAlltoall:
		var sv *coll.Vec
		if !sendInPlace {
			sv = coll.Uniform(send, c.size)
		}
		return c.coll.Alltoall(sv, coll.Uniform(recv, c.size), sendInPlace), nil
	case CollReduce:
		return c.coll.Reduce(send, &recv, f, root), nil
	case CollAllreduce:
		return c.coll.Allreduce(send, recv, f), nil
	case CollReduceScatterBlock:
		return c.coll.ReduceScatterBlock(send, recv, f), nil
	case CollScan, CollExscan:
		return c.coll.Scan(send, recv, f, kind == CollExscan), nil
	}
	return nil, errs.New(errs.Intern, "unknown collective %d", kind)
}

// Side is one side of a collective with a count for each rank: as many counts
// as ranks, or one where that side has a single part.
type Side struct {
	Addr   int64
	Counts []int64
	Displs []int64 // empty: one part after the other
	Type   int64
}

func (s *Side) vec(n int) (*coll.Vec, *errs.Error) {
	if len(s.Counts) != n || (len(s.Displs) != n && len(s.Displs) != 0) {
		return nil, errs.New(errs.Arg, "there are %d counts and %d displacements for %d ranks", len(s.Counts), len(s.Displs), n)
	}
	v := &coll.Vec{Addr: pointer(s.Addr), Counts: make([]int, n), Displs: make([]int, n)}
	at := 0
	for i := range n {
		b, e := buf(s.Addr, s.Counts[i], s.Type)
		if e != nil {
			return nil, e
		}
		v.Type, v.Counts[i], v.Displs[i] = b.Type, b.Count, at
		at += b.Count
		if len(s.Displs) > 0 {
			v.Displs[i] = int(s.Displs[i])
		}
	}
	return v, nil
}

func (s *Side) one() (p2p.Buf, *errs.Error) {
	if len(s.Counts) != 1 {
		return p2p.Buf{}, errs.New(errs.Arg, "one count is needed here, there are %d", len(s.Counts))
	}
	off := int64(0)
	if len(s.Displs) == 1 {
		t, e := getType(s.Type)
		if e != nil {
			return p2p.Buf{}, e
		}
		off = s.Displs[0] * int64(t.Extent())
	}
	return buf(s.Addr+off, s.Counts[0], s.Type)
}

// Collv starts a collective with a count for each rank.
func Collv(kind int, comm int64, s, r *Side, root int) (req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(comm)
	if e != nil {
		return 0, CodeOf(e)
	}
	if root < 0 || root >= c.size {
		return 0, classError(errs.Root, "the root %d is not in the communicator: its ranks are 0 to %d", root, c.size-1)
	}
	isRoot := c.rank == root
	var o *coll.Op
	var all *coll.Vec
	var one p2p.Buf
	single := &one
	inPlace := s.Addr == InPlace
	switch kind {
	case CollGatherv, CollAllgatherv:
		if kind == CollAllgatherv || isRoot {
			if all, e = r.vec(c.size); e != nil {
				return 0, CodeOf(e)
			}
		}
		if inPlace {
			if kind == CollGatherv && !isRoot {
				return 0, classError(errs.Buffer, "IN_PLACE is for the root only")
			}
			single = nil
		} else if one, e = s.one(); e != nil {
			return 0, CodeOf(e)
		}
		if kind == CollGatherv {
			o = c.coll.Gather(single, all, root)
		} else {
			o = c.coll.Allgather(single, all)
		}
	case CollScatterv:
		if isRoot {
			if all, e = s.vec(c.size); e != nil {
				return 0, CodeOf(e)
			}
		}
		if r.Addr == InPlace && isRoot {
			single = nil
		} else if one, e = r.one(); e != nil {
			return 0, CodeOf(e)
		}
		o = c.coll.Scatter(all, single, root)
	case CollAlltoallv:
		if all, e = r.vec(c.size); e != nil {
			return 0, CodeOf(e)
		}
		var sv *coll.Vec
		if !inPlace {
			if sv, e = s.vec(c.size); e != nil {
				return 0, CodeOf(e)
			}
		}
		o = c.coll.Alltoall(sv, all, inPlace)
	default:
		return 0, classError(errs.Intern, "unknown collective %d", kind)
	}
	return reqs.add(&Request{op: collective{o}}), 0
}
