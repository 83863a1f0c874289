package mpi

import (
	"slices"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// InPlace is the address that means MPI_IN_PLACE.
const InPlace = -1

// barrierOp is a barrier in shared memory as an operation.
type barrierOp struct {
	comm *Comm
	bar  *coll.Barrier
	gen  uint32
	done bool
	err  *errs.Error

	advance func() bool // Advance and Check as values, so that a call allocates none
	check   func() error
}

// barrier returns the operation of a barrier that this rank has entered in generation gen.
func (c *Comm) barrier(gen uint32) *barrierOp {
	b := c.spareBarrier.Swap(nil)
	if b == nil {
		b = &barrierOp{comm: c}
		b.advance, b.check = b.Advance, b.Check
	}
	b.bar, b.gen, b.done, b.err = c.coll.Bar, gen, false, nil
	return b
}

func (b *barrierOp) Advance() bool {
	if b.done {
		return true
	}
	if over, e := b.comm.pt.Ended(b.gen); e != nil { // the barrier's words are those of later calls
		b.done, b.err = over, e
	} else {
		b.done = b.bar.Passed()
	}
	return b.done
}

func (b *barrierOp) Check() error {
	if b.comm.pt.Dropped(b.gen) != nil {
		return nil // Advance ends it
	}
	return b.comm.coll.CheckBarrier()
}

func (b *barrierOp) Abandon()         {}
func (b *barrierOp) Err() *errs.Error { return b.err }
func (b *barrierOp) describe(why *engine.Reason) {
	why.Call = job.CallBarrier
}

// Barrier waits until all ranks of a communicator have called it; like Blocking.
func Barrier(comm int64, pending *int64) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	if c.size == 1 && c.remote == nil {
		return 0
	}
	if bar := c.coll.Bar; bar != nil {
		gen := c.pt.Generation()
		if bar.Arrive() {
			return 0
		}
		why := engine.Reason{Call: job.CallBarrier, Peer: -2, Tag: -1, Ctx: uint64(c.ctx)}
		b := c.barrier(gen)
		err := proc.eng.Wait(&why, b.advance, b.check)
		if err == nil {
			code = CodeOf(b.err)
			c.spareBarrier.Store(b)
			return code
		}
		if err != engine.ErrInterrupted {
			return codeOfErr(err)
		}
		r := &Request{op: b, why: why}
		if e := ready(); e != nil {
			return CodeOf(e)
		}
		*pending = reqs.add(r)
		return Interrupted
	}
	c.coll.Calling(coll.Call{Kind: coll.KindBarrier})
	r := &Request{op: collective{c.coll.BarrierByMessages()}}
	if code = r.wait(0, nil, 0); code == Interrupted {
		*pending = reqs.add(r)
	}
	return code
}

// boardOp is a collective through board slots as an operation.
type boardOp struct {
	*coll.BoardOp
	c *Comm
}

// singleCopyOp is a collective by single copies as an operation.
type singleCopyOp struct {
	*coll.SingleCopyOp
	c *Comm
}

// Busy reports whether peers may still use memory of an operation that was given up.
func (o singleCopyOp) Busy() bool { return o.Lent() }

func (o singleCopyOp) describe(why *engine.Reason) { o.c.describe(why, o.Kind.String(), o.Pending()) }

func (o boardOp) describe(why *engine.Reason) { o.c.describe(why, o.Name(), o.Pending()) }

// nonblocking is a nonblocking collective through board slots as an operation.
type nonblocking struct{ *coll.NonblockingOp }

func (o nonblocking) describe(why *engine.Reason) {
	why.Call, why.Peer = job.CallCollective, o.Awaited()
}

func (c *Comm) describe(why *engine.Reason, name string, pending int) {
	why.Call, why.Ctx, why.Info = job.CallCollective, uint64(c.ctx), name
	why.Peer = c.group.ranks[pending]
}

// Coll starts a nonblocking collective with equal counts.
func Coll(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (req int64, code Code) {
	defer Contain(&code)
	o, code := startColl(kind, comm, saddr, scount, stype, raddr, rcount, rtype, oph, root)
	if code != 0 {
		return 0, code
	}
	if n, short := o.(nonblocking); short && n.Complete() {
		return RequestSent, 0
	}
	return inBackground(o), 0
}

// startColl starts a nonblocking collective with equal counts as an operation.
func startColl(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (operation, Code) {
	c, e := getUsableComm(comm)
	if e != nil {
		return nil, CodeOf(e)
	}
	if c.remote != nil {
		start, e := c.interColl(&interArgs{coll.Kind(kind), saddr, scount, stype, raddr, rcount, rtype, oph, root, true})
		if e != nil {
			return nil, CodeOf(e)
		}
		return collective{start()}, 0
	}
	var a coll.Args
	if e := c.args(&a, kind, saddr, scount, stype, raddr, rcount, rtype, oph, root); e != nil {
		return nil, CodeOf(e)
	}
	a.Nonblocking = true
	if o := c.coll.NonblockingOp(&a); o != nil {
		return nonblocking{o}, 0
	}
	kept := a // so that a stays on the stack
	return collective{c.coll.Start(&kept)}, 0
}

// CollBlocking runs a collective; like Blocking.
func CollBlocking(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int, pending *int64) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	if c.remote != nil {
		start, e := c.interColl(&interArgs{coll.Kind(kind), saddr, scount, stype, raddr, rcount, rtype, oph, root, false})
		if e != nil {
			return CodeOf(e)
		}
		return finishNow(collective{start()}, pending)
	}
	var a coll.Args
	if e := c.args(&a, kind, saddr, scount, stype, raddr, rcount, rtype, oph, root); e != nil {
		return CodeOf(e)
	}
	if c.size == 1 {
		return CodeOf(c.coll.Alone(&a))
	}
	s := c.coll.BoardOp(&a)
	if s == nil {
		if d := c.coll.SingleCopyOp(&a); d != nil {
			return c.runCopies(d, pending)
		}
		kept := a // so that a stays on the stack
		return finishNow(collective{c.coll.Start(&kept)}, pending)
	}
	return c.runOnBoard(s, pending)
}

// reusable is a collective that the communicator uses again after its completion.
type reusable interface {
	Advance() bool
	Abandon()
	Err() *errs.Error
	Awaited() int
	Pending() int
	Release()
}

// runOnBoard runs a collective until it is complete or has been interrupted.
func (c *Comm) runOnBoard(s *coll.BoardOp, pending *int64) Code {
	return c.run(s, s.Name, s.AdvanceFunc, s.CheckFunc, func() operation { return boardOp{s, c} }, false, pending)
}

// runCopies is runOnBoard for a collective by single copies.
func (c *Comm) runCopies(d *coll.SingleCopyOp, pending *int64) Code {
	return c.run(d, d.Kind.String, d.AdvanceFunc, d.CheckFunc, func() operation { return singleCopyOp{d, c} }, true, pending)
}

// run runs s, by its functions that allocate nothing. asOperation makes it the operation of a request, if the call ends before it does.
// copying is set if ranks wait for others that copy.
func (c *Comm) run(s reusable, name func() string, advance func() bool, check func() error, asOperation func() operation, copying bool, pending *int64) (code Code) {
	var err error
	if !s.Advance() {
		why := engine.Reason{Copying: copying}
		c.describe(&why, name(), s.Awaited())
		if err = proc.eng.Wait(&why, advance, check); err == engine.ErrInterrupted {
			e := ready()
			if e == nil {
				why.Peer = c.group.ranks[s.Pending()] // which looks at all ranks: only after a slice of waiting
				*pending = reqs.add(&Request{op: asOperation(), why: why})
				return Interrupted
			}
			err = e
		}
	}
	if err != nil {
		s.Abandon() // others may read what this rank has published
		code = codeOfErr(err)
	} else {
		code = CodeOf(s.Err())
		s.Release()
	}
	if code != 0 {
		outlive(&Request{op: asOperation()}, pending)
	}
	return code
}

func (c *Comm) checkRoot(root int) *errs.Error {
	if root < 0 || root >= c.size {
		return errs.New(errs.Root, "the root %d is not in the communicator: %s", root, c.rankRange())
	}
	return nil
}

// args checks the arguments of a collective and fills in a.
func (c *Comm) args(a *coll.Args, kind int, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (e *errs.Error) {
	if e := c.checkRoot(root); e != nil {
		return e
	}
	a.Kind = coll.Kind(kind)
	a.Root = root
	switch a.Kind {
	case coll.KindBarrier, coll.KindIbarrier:
		return nil
	case coll.KindBcast, coll.KindGather, coll.KindScatter, coll.KindAllgather, coll.KindAlltoall, coll.KindReduce,
		coll.KindAllreduce, coll.KindReduceScatterBlock, coll.KindScan, coll.KindExscan:
	default:
		return errs.New(errs.Intern, "unknown collective %d", kind)
	}
	isRoot := c.rank == root
	// The sides that are significant on this rank.
	needSend := a.Kind != coll.KindBcast && (a.Kind != coll.KindScatter || isRoot)
	needRecv := (a.Kind != coll.KindGather && a.Kind != coll.KindReduce) || isRoot
	a.SendInPlace, a.RecvInPlace = saddr == InPlace && needSend, raddr == InPlace && needRecv
	if needSend && !a.SendInPlace {
		if a.Send, e = buf(saddr, scount, stype); e != nil {
			return e
		}
	}
	if needRecv && !a.RecvInPlace {
		if a.Recv, e = buf(raddr, rcount, rtype); e != nil {
			return e
		}
	}
	switch {
	case a.RecvInPlace && a.Kind != coll.KindScatter:
		return errs.New(errs.Buffer, "IN_PLACE stands for the send buffer of this collective, not for the receive buffer")
	case a.SendInPlace && a.Kind == coll.KindScatter:
		return errs.New(errs.Buffer, "IN_PLACE stands for the receive buffer of the root of a scatter, not for the send buffer")
	case a.SendInPlace && a.Kind.Rooted() && !isRoot:
		return errs.New(errs.Buffer, "IN_PLACE is for the root only")
	}
	if a.Kind >= coll.KindReduce {
		return c.operands(a, op.Op(oph), needRecv)
	}
	side := &a.Recv
	if !needRecv || a.RecvInPlace {
		side = &a.Send
	}
	a.Bytes, a.Elem = side.Bytes(), side.Type.Kind()
	if needSend && !a.SendInPlace && a.Send.Bytes() != a.Bytes {
		return errs.New(errs.Truncate, "%s: the send buffer has %d bytes for one rank, the receive buffer %d; they must be equal",
			a.Kind, a.Send.Bytes(), a.Bytes)
	}
	if needSend && needRecv && !a.SendInPlace && !a.RecvInPlace && !dtype.Compatible(a.Send.Type.Kind(), a.Recv.Type.Kind()) {
		return errs.New(errs.Type, "%s: the send buffer has elements of %s, the receive buffer of %s",
			a.Kind, a.Send.Type.Kind(), a.Recv.Type.Kind())
	}
	return nil
}

// operands checks the sides of a reduction.
func (c *Comm) operands(a *coll.Args, f op.Op, needRecv bool) *errs.Error {
	if a.SendInPlace {
		a.Send = a.Recv
		if a.Kind == coll.KindReduceScatterBlock {
			a.Send.Count *= c.size
		}
	} else if needRecv {
		want := a.Recv.Bytes()
		if a.Kind == coll.KindReduceScatterBlock {
			want *= c.size
		}
		if want != a.Send.Bytes() || a.Recv.Type.Kind() != a.Send.Type.Kind() {
			return errs.New(errs.Type, "a reduction needs the same data at both sides: the send buffer has %d bytes of %s, the receive buffer %d bytes of %s",
				a.Send.Bytes(), nameOf(a.Send.Type), a.Recv.Bytes(), nameOf(a.Recv.Type))
		}
	}
	var e *errs.Error
	a.Op, e = getOp(int64(f), a.Send.Type)
	a.Bytes, a.Elem = a.Send.Bytes(), a.Send.Type.Kind()
	return e
}

// Side is one side of a collective with a count for each rank. It has as many counts
// as ranks, or one where that side has a single part.
type Side struct {
	Addr   int64
	Counts []int64
	Displs []int64 // empty: the parts are contiguous
	Type   int64
}

// vec returns the side with counts and displacements of its own.
func (s *Side) vec(n int) (*coll.Vec, *errs.Error) {
	var v coll.Vec
	if e := s.fill(&v, n); e != nil {
		return nil, e
	}
	return v.Clone(), nil
}

// fill fills in v. Its counts and displacements are those of s.
func (s *Side) fill(v *coll.Vec, n int) *errs.Error {
	if len(s.Counts) != n || (len(s.Displs) != n && len(s.Displs) != 0) {
		return errs.New(errs.Arg, "there are %d counts and %d displacements for %d ranks", len(s.Counts), len(s.Displs), n)
	}
	displs := s.Displs
	if len(displs) == 0 {
		displs = make([]int64, n)
		for i := 1; i < n; i++ {
			displs[i] = displs[i-1] + s.Counts[i-1]
		}
	}
	if s.Addr == 0 || uint64(s.Addr) >= smallestAddress {
		v.Addr = pointer(s.Addr)
	}
	v.Counts, v.Displs = unsafe.Slice((*int)(unsafe.Pointer(&s.Counts[0])), n), unsafe.Slice((*int)(unsafe.Pointer(&displs[0])), n)
	for _, count := range s.Counts {
		b, e := buf(s.Addr, count, s.Type)
		if e != nil {
			return e
		}
		v.Type = b.Type
	}
	return nil
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

// Collv starts a nonblocking collective with a count for each rank.
func Collv(kind int, comm int64, s, r *Side, root int) (req int64, code Code) {
	defer Contain(&code)
	o, code := startCollv(kind, comm, s, r, root)
	if code != 0 {
		return 0, code
	}
	return inBackground(o), 0
}

// startCollv starts a nonblocking collective with a count for each rank as an operation.
func startCollv(kind int, comm int64, s, r *Side, root int) (operation, Code) {
	start, e := collv(kind, comm, s, r, root)
	if e != nil {
		return nil, CodeOf(e)
	}
	return collective{start()}, 0
}

// CollvBlocking runs a collective with a count for each rank; like Blocking. It doesn't use the lists of s and r later.
func CollvBlocking(kind int, comm int64, s, r *Side, root int, pending *int64) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	if c.remote != nil {
		send, recv := s.clone(), r.clone()
		start, e := c.interCollv(coll.Call{Kind: coll.Kind(kind), Root: root, Bytes: -1}, &send, &recv, root)
		if e != nil {
			return CodeOf(e)
		}
		return finishNow(collective{start()}, pending)
	}
	var a coll.Args
	var send, recv coll.Vec
	if e := c.vecArgs(&a, kind, s, r, root, &send, &recv); e != nil {
		return CodeOf(e)
	}
	if c.size == 1 {
		a.SendV, a.RecvV = send.Clone(), recv.Clone()
		return CodeOf(c.coll.Alone(&a))
	}
	if d := c.coll.SingleCopyOpV(&a, &send, &recv); d != nil {
		return c.runCopies(d, pending)
	}
	kept := a // so that a stays on the stack
	kept.SendV, kept.RecvV = send.Clone(), recv.Clone()
	return finishNow(collective{c.coll.Start(&kept)}, pending)
}

func (s *Side) clone() Side {
	return Side{s.Addr, slices.Clone(s.Counts), slices.Clone(s.Displs), s.Type}
}

// collv checks the arguments of Collv, and returns what starts the collective.
func collv(kind int, comm int64, s, r *Side, root int) (starts, *errs.Error) {
	c, e := getUsableComm(comm)
	if e != nil {
		return nil, e
	}
	if c.remote != nil {
		return c.interCollv(coll.Call{Kind: coll.Kind(kind), Root: root, Bytes: -1, Nonblocking: true}, s, r, root)
	}
	a := new(coll.Args)
	var send, recv coll.Vec
	if e := c.vecArgs(a, kind, s, r, root, &send, &recv); e != nil {
		return nil, e
	}
	a.Nonblocking = true
	a.SendV, a.RecvV = send.Clone(), recv.Clone()
	return func() *coll.Op { return c.coll.Start(a) }, nil
}

// vecArgs checks the arguments of a collective with a count for each rank, and fills in a but for the sides that have such: these are in
// send and recv.
func (c *Comm) vecArgs(a *coll.Args, kind int, s, r *Side, root int, send, recv *coll.Vec) (e *errs.Error) {
	if e := c.checkRoot(root); e != nil {
		return e
	}
	isRoot := c.rank == root
	a.Call = coll.Call{Kind: coll.Kind(kind), Root: root, Bytes: -1}
	a.SendInPlace = s.Addr == InPlace
	switch a.Kind {
	case coll.KindGatherv, coll.KindAllgatherv:
		if a.Kind == coll.KindAllgatherv || isRoot {
			if e = r.fill(recv, c.size); e != nil {
				return e
			}
		} else if a.SendInPlace {
			return errs.New(errs.Buffer, "IN_PLACE is for the root only")
		}
		if !a.SendInPlace {
			a.Send, e = s.one()
		}
	case coll.KindScatterv:
		a.SendInPlace = false
		if isRoot {
			if e = s.fill(send, c.size); e != nil {
				return e
			}
		}
		if a.RecvInPlace = r.Addr == InPlace && isRoot; !a.RecvInPlace {
			a.Recv, e = r.one()
		}
	case coll.KindAlltoallv:
		if e = r.fill(recv, c.size); e == nil && !a.SendInPlace {
			e = s.fill(send, c.size)
		}
	default:
		e = errs.New(errs.Intern, "unknown collective %d", kind)
	}
	return e
}
