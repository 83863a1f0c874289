//go:build interleave

package simulate

import (
	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// program runs the program of the rank: steps that all ranks draw alike.
func (r *rank) program() {
	r.makeWindow(0)
	for step := 1; step <= r.w.o.Steps; step++ {
		what := r.plan.IntN(9)
		r.step, r.doing = step, [...]string{"messages", "messages", "collective", "collective", "epoch", "epoch", "window", "reset", "ahead"}[what]
		switch r.doing {
		case "messages":
			r.messages(step)
		case "collective":
			r.collective(step)
		case "epoch":
			r.epoch(step)
		case "ahead":
			r.ahead(step)
		case "window":
			r.freeWindow()
			r.makeWindow(step)
		case "reset":
			if r.w.o.Reset {
				r.interrupted(step)
			}
		}
		if r.n == 0 {
			r.w.count["steps"]++
		}
	}
	r.barrier()
	r.freeWindow()
	r.until(func() bool { return r.p2p.PendingSends() == 0 && r.eng.Backlog() == 0 }, nil)
}

var sizes = []int{0, 1, 8, 100, 4096, 16 << 10, 16<<10 + 1, 100_000, 1 << 20}

func fill(b []byte, key uint64) {
	for i := range b {
		b[i] = byte(key>>(8*(i&3))) + byte(i>>2)
	}
}

func (r *rank) holds(b []byte, key uint64, what string, args ...any) {
	want := make([]byte, len(b))
	fill(want, key)
	if string(want) != string(b) {
		r.check(false, what+": wrong data in %d bytes", append(args, len(b))...)
	}
}

// messages sends several messages at once between pairs of ranks.
func (r *rank) messages(step int) {
	type message struct {
		src, dst, tag, size int
		mode                p2p.Mode
		any                 bool
		key                 uint64
		req                 p2p.Request
		mem                 []byte
		sent                []byte
		sreq                p2p.Request
	}
	n := r.w.o.Ranks
	all := make([]message, 1+r.plan.IntN(8))
	for i := range all {
		m := &all[i]
		m.src, m.dst, m.tag = r.plan.IntN(n), r.plan.IntN(n), step*100+i
		m.size, m.mode = sizes[r.plan.IntN(len(sizes))], p2p.Mode(r.plan.IntN(3))
		// A receive from any source waits as long as any other rank lives.
		m.any, m.key = r.plan.IntN(4) == 0 && !r.w.o.Kill, r.plan.Uint64()
	}
	type act struct {
		m    *message
		send bool
	}
	var acts []act
	for i := range all {
		if m := &all[i]; m.src == r.n {
			acts = append(acts, act{m, true})
		}
		if m := &all[i]; m.dst == r.n {
			acts = append(acts, act{m, false})
		}
	}
	r.own.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	for _, a := range acts {
		r.compute()
		if a.send {
			a.m.sent = r.w.memory(a.m.size)
			fill(a.m.sent, a.m.key)
			r.chan1.Send(&a.m.sreq, a.m.mode, bytesBuf(a.m.sent), a.m.dst, a.m.tag)
			if a.m.mode == p2p.Buffered {
				r.check(a.m.sreq.Done(), "a buffered send has not completed")
			}
			continue
		}
		from := a.m.src
		if a.m.any {
			from = p2p.AnySource
		}
		a.m.mem = r.w.memory(a.m.size)
		r.chan1.Recv(&a.m.req, bytesBuf(a.m.mem), from, a.m.tag)
	}
	r.own.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	for _, a := range acts {
		q, mem := &a.m.req, a.m.mem
		if a.send {
			q, mem = &a.m.sreq, a.m.sent
		}
		r.until(q.Done, func() error { return r.chan1.Check(q) })
		if e := q.Status().Err; e != nil {
			r.must(e)
		}
		if !a.send {
			r.check(q.Status().Source == a.m.src && q.Status().Bytes == a.m.size, "a message from %d of %d bytes: %+v", a.m.src, a.m.size, *q.Status())
			r.holds(mem, a.m.key, "step %d: a message from rank %d with tag %d", step, a.m.src, a.m.tag)
		}
		r.w.reclaim(mem)
		r.w.count["messages"]++
	}
}

// collective calls a collective, blocking or not.
func (r *rank) collective(step int) {
	n := r.w.o.Ranks
	count := []int{1, 3, 40, 1000, 5000, 30_000}[r.plan.IntN(6)]
	root, blocking, salt := r.plan.IntN(n), r.plan.IntN(3) > 0, int64(r.plan.IntN(1000))
	kind := []coll.Kind{coll.KindBcast, coll.KindAllgather, coll.KindAllreduce, coll.KindAlltoall, coll.KindGather,
		coll.KindScatter, coll.KindReduce, coll.KindReduceScatterBlock, coll.KindScan}[r.plan.IntN(9)]
	value := func(rank, i int) int64 { return salt + int64(rank*7+i) }
	sends, receives := 1, 1
	switch kind {
	case coll.KindAllgather, coll.KindGather:
		receives = n
	case coll.KindScatter, coll.KindReduceScatterBlock:
		sends = n
	case coll.KindAlltoall:
		sends, receives = n, n
	}
	send, recv := r.w.memory(8*count*sends), r.w.memory(8*count*receives)
	for i := range longs(send) {
		longs(send)[i] = value(r.n, i)
	}
	a := coll.Args{Call: coll.Call{Kind: kind, Root: root, Bytes: 8 * count, Elem: longType.Kind()}}
	a.Send, a.Recv = longsBuf(send), longsBuf(recv)
	a.Send.Count, a.Recv.Count = count, count
	switch kind {
	case coll.KindReduce, coll.KindAllreduce, coll.KindScan:
		a.Op = op.Sum
	case coll.KindReduceScatterBlock:
		a.Op, a.Send.Count, a.Bytes = op.Sum, count*n, 8*count*n
	case coll.KindBcast:
		if r.n == root {
			copy(recv, send)
		}
	}
	r.call(&a, blocking)
	sum := func(ranks, i int) (s int64) {
		for k := range ranks {
			s += value(k, i)
		}
		return s
	}
	want := func(i int) (int64, bool) {
		switch kind {
		case coll.KindBcast:
			return value(root, i), true
		case coll.KindAllgather:
			return value(i/count, i%count), true
		case coll.KindGather:
			return value(i/count, i%count), r.n == root
		case coll.KindAlltoall:
			return value(i/count, r.n*count+i%count), true
		case coll.KindScatter:
			return value(root, r.n*count+i), true
		case coll.KindReduce:
			return sum(n, i), r.n == root
		case coll.KindAllreduce:
			return sum(n, i), true
		case coll.KindScan:
			return sum(r.n+1, i), true
		}
		return sum(n, r.n*count+i), true
	}
	for i, got := range longs(recv) {
		if v, counts := want(i); counts && got != v {
			r.check(false, "step %d: %v of %d elements, root %d: element %d is %d, not %d", step, kind, count, root, i, got, v)
		}
	}
	r.w.reclaim(send)
	r.w.reclaim(recv)
	r.w.count["collectives"]++
}

// ahead starts many collectives before it waits for any, so that ranks get far ahead of
// others.
func (r *rank) ahead(step int) {
	many := 5 + r.plan.IntN(20)
	ops, mems, keys := make([]started, many), make([][]byte, many), make([]uint64, many)
	for i := range ops {
		root, size := r.plan.IntN(r.w.o.Ranks), sizes[r.plan.IntN(6)]
		keys[i], mems[i] = r.plan.Uint64(), r.w.memory(size)
		if r.n == root {
			fill(mems[i], keys[i])
		}
		ops[i] = r.begin(&coll.Args{Call: coll.Call{Kind: coll.KindBcast, Root: root, Bytes: size}, Recv: bytesBuf(mems[i])})
		r.compute()
	}
	for _, i := range r.own.Perm(many) {
		r.finish(ops[i])
		r.holds(mems[i], keys[i], "step %d: the %d. of %d broadcasts", step, i, many)
		r.w.reclaim(mems[i])
	}
	r.w.count["collectives ahead"] += many
}

// call makes a collective call as package mpi does.
func (r *rank) call(a *coll.Args, blocking bool) {
	if blocking {
		if s := r.coll.BoardOp(a); s != nil {
			r.until(s.Advance, s.Check)
			r.end(s.Err())
			s.Release()
			return
		}
		if d := r.coll.SingleCopyOp(a); d != nil {
			r.until(d.Advance, d.Check)
			r.end(d.Err())
			d.Release()
			return
		}
	}
	if blocking {
		r.finish(r.coll.Start(a))
		return
	}
	o := r.begin(a)
	r.compute()
	r.finish(o)
}

// started is a collective that has been started.
type started interface {
	Advance() bool
	Check() error
	Err() *errs.Error
}

// begin starts a nonblocking collective as package mpi does.
func (r *rank) begin(a *coll.Args) (o started) {
	a.Nonblocking = true
	if s := r.coll.NonblockingOp(a); s != nil {
		o = s
	} else {
		o = r.coll.Start(a)
	}
	r.eng.AddBackground(o)
	return o
}

func (r *rank) finish(o started) {
	r.until(o.Advance, o.Check)
	r.end(o.Err())
}

func (r *rank) end(e *errs.Error) {
	if e != nil {
		r.must(e)
	}
}

func (r *rank) barrier() { r.finish(r.coll.BarrierByMessages()) }

// interrupted starts operations and makes a collective reset while they are pending.
func (r *rank) interrupted(step int) {
	n := r.w.o.Ranks
	var reqs []*p2p.Request
	var mems [][]byte
	for i := range 1 + r.own.IntN(5) {
		q, mem := new(p2p.Request), r.w.memory(sizes[r.own.IntN(len(sizes))])
		fill(mem, uint64(step))
		if r.own.IntN(2) == 0 {
			r.chan1.Send(q, p2p.Mode(r.own.IntN(2)), bytesBuf(mem), r.own.IntN(n), step*100+i)
		} else {
			r.chan1.Recv(q, bytesBuf(mem), r.own.IntN(n), step*100+i)
		}
		reqs, mems = append(reqs, q), append(mems, mem)
		r.compute()
	}
	target := r.own.IntN(n)
	got := r.w.memory(8 * (1 + r.own.IntN(r.win.slot/8)))
	r.lock(target, false)
	r.end(r.win.get(longsBuf(got), target, 0))
	mems = append(mems, got)
	var o started
	if r.plan.IntN(2) == 0 {
		size := []int{8, 2000, 200_000}[r.plan.IntN(3)]
		a := r.w.memory(size)
		mems = append(mems, a)
		o = r.begin(&coll.Args{Call: coll.Call{Kind: coll.KindBcast, Root: r.plan.IntN(n), Bytes: size}, Recv: bytesBuf(a)})
	}
	r.compute()
	r.reset()
	if r.plan.IntN(2) == 0 { // the window is freed at once, with what was queued for it
		r.dropWindow()
	}
	for _, q := range reqs {
		r.check(q.Done() || r.chan1.Check(q) != nil, "step %d: a request neither is done after the reset nor fails", step)
	}
	if o != nil {
		r.until(o.Advance, o.Check)
		if e := o.Err(); e != nil && e.Class != errs.Pending {
			r.must(e)
		}
	}
	for _, mem := range mems {
		r.w.reclaim(mem)
	}
	if r.win == nil {
		r.makeWindow(step)
	}
	r.w.count["resets"]++
}
