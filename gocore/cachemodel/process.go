//go:build interleave && model

package cachemodel

import (
	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// process is the process of one rank.
type process struct {
	*rank
	load   Workload
	me     *job.Rank
	eng    *engine.Engine
	coll   *coll.Comm
	memory *memory
}

// wait waits as engine.Wait does: it polls, or sleeps.
func (p *process) wait(done func() bool) {
	if done() {
		return
	}
	atom.Add32(&p.me.Pollers, 1)
	defer atom.Add32(&p.me.Pollers, ^uint32(0))
	for !p.load.Sleeps {
		p.eng.Progress()
		if done() {
			return
		}
		p.poll()
	}
	for {
		atom.Add32(&p.me.Sleepers, 1)
		bell := atom.Load32(&p.me.Doorbell)
		p.eng.PollSure()
		over := done()
		if !over {
			atom.Wait(&p.me.Doorbell, bell, 0)
		}
		atom.Add32(&p.me.Sleepers, ^uint32(0))
		if over {
			return
		}
	}
}

func (p *process) barrier() {
	if !p.coll.Bar.Arrive() {
		p.wait(p.coll.Bar.Passed)
	}
}

var longType = dtype.ByName("INT64_T")

// caller returns a function that makes the k-th call.
func (p *process) caller() func(k int) {
	if p.load.Kind == coll.KindBarrier {
		return func(int) { p.barrier() }
	}
	n := p.load.Ranks
	count := max(1, p.load.Bytes/8/n) // of a part
	whole := count * n
	if p.load.Bytes <= 8 {
		whole = 1
	}
	each, sends, receives := whole, 1, 1
	switch p.load.Kind {
	case coll.KindAllgather, coll.KindGather:
		each, receives = count, n
	case coll.KindScatter, coll.KindReduceScatterBlock:
		each, sends = count, n
	case coll.KindAlltoall:
		each, sends, receives = count, n, n
	}
	a := coll.Args{Call: coll.Call{Kind: p.load.Kind, Bytes: 8 * each, Elem: longType.Kind()}}
	a.Send = p2p.Buf{Addr: p.memory.alloc(8 * each * sends), Count: each, Type: longType}
	a.Recv = p2p.Buf{Addr: p.memory.alloc(8 * each * receives), Count: each, Type: longType}
	switch p.load.Kind {
	case coll.KindReduce, coll.KindAllreduce, coll.KindScan, coll.KindReduceScatterBlock:
		a.Op = op.Sum
		a.Send.Count, a.Bytes = each*sends, 8*each*sends
	}
	return func(k int) {
		args := a
		if args.Kind.Rooted() {
			args.Root = k % n
		}
		p.call(&args)
	}
}

// call makes a collective call as package mpi does.
func (p *process) call(a *coll.Args) {
	if s := p.coll.BoardOp(a); s != nil {
		if !s.Advance() {
			_ = s.Awaited() // for the record of the wait: it must not cost a transfer
			p.wait(s.Advance)
		}
		p.must(s.Err())
		s.Release()
		return
	}
	d := p.coll.SingleCopyOp(a)
	if d == nil {
		panic("the call goes by messages, which are not counted")
	}
	p.wait(d.Advance)
	p.must(d.Err())
	d.Release()
}

func (p *process) must(e *errs.Error) {
	if e != nil {
		panic(e.Error())
	}
}
