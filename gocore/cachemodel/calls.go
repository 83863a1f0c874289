//go:build interleave && model

package cachemodel

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/arena"
	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// Workload is a number of ranks that make the same call again and again, as the loops of gormapy.bench do: with the
// roots in turn.
type Workload struct {
	Ranks  int
	Kind   coll.Kind
	Bytes  int  // of a rank's longest array; 8: of one part
	Arena  bool // arrays in memory of Alloc_mem
	Sleeps bool // a rank that waits sleeps at once, as where ranks share cores
	Cores  int  // of the machine; 0: one for each rank
	Group  int  // ranks in each group of the barrier; 0: as the code has it, -1: no groups
}

// Count is what one call costs.
type Count struct {
	Critical Path
	Busiest  float64 // transfers of the rank that has most
	Total    Mean    // of all ranks
	Read     float64 // bytes, of the rank that reads most
	Written  float64
}

// Path is the mean critical path of a call.
type Path struct{ Time, Transfers, Bytes, Calls float64 }

// Mean is the mean of calls.
type Mean struct{ Transfers, Invalidations, Calls, Woken float64 }

// The calls of a run: the first ones warm up, so that each slot of the board has been used.
const (
	warmUp   = 2*job.BoardSlots + 2
	measured = 2 * job.BoardSlots
)

// process is the process of one rank.
type process struct {
	*rank
	load   Workload
	me     *job.Rank
	eng    *engine.Engine
	coll   *coll.Comm
	memory func(n int) unsafe.Pointer
}

// openArena is engine.OpenArena of ranks that have one arena.
func openArena(pid, fd int) (p *arena.Peer, err error) {
	own.once.Do(func() { own.peer, own.err = arena.OpenPeer(pid, fd) })
	return own.peer, own.err
}

var own struct {
	once sync.Once
	peer *arena.Peer
	err  error
}

// Run counts what a call of the workload costs on a machine.
func Run(load Workload, machine Machine) (c Count, err error) {
	engine.OpenArena = openArena
	defer func() { engine.OpenArena = arena.OpenPeer }()
	seg, err := job.Create(load.Ranks)
	if err != nil {
		return c, err
	}
	defer seg.Close()
	seg.Head.Cores = uint32(load.Ranks)
	if load.Cores > 0 {
		seg.Head.Cores = uint32(load.Cores)
	}
	last := seg.Block(job.Blocks - 1)
	start := unsafe.Pointer(seg.Head)
	w := &World{machine: machine, lines: lines{}, memory: unsafe.Slice((*byte)(start), int(uintptr(unsafe.Pointer(&last[0]))-uintptr(start))+len(last))}
	var pages []byte
	var taken int
	memory := func(n int) unsafe.Pointer {
		n = (max(n, 1) + 4095) / 4096 * 4096
		if load.Arena {
			mem, e := arena.Alloc(n, 0)
			if e != nil {
				panic(e)
			}
			return unsafe.Pointer(&mem[0])
		}
		if taken+n > len(pages) {
			pages, err = unix.Mmap(-1, 0, max(64<<20, n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			if err != nil {
				panic(err)
			}
			taken = 0
		}
		taken += n
		return unsafe.Pointer(&pages[taken-n])
	}
	all := make([]int, load.Ranks)
	for i := range all {
		all[i] = i
	}
	begins, ends := make([]Cost, load.Ranks), make([]Cost, load.Ranks)
	traffic := make([]Traffic, load.Ranks)
	for i := range load.Ranks {
		if _, ok := seg.Claim(i); !ok {
			return c, fmt.Errorf("rank %d is claimed", i)
		}
		p := &process{load: load, me: &seg.Ranks[i], memory: memory}
		p.eng = engine.New(seg, i, engine.Options{OneCopy: true})
		p.coll = &coll.Comm{Chan: p2p.New(p.eng).Open(2, i, all), Rank: i, Size: load.Ranks}
		p.coll.UseBlock(p.eng, job.WorldBlock)
		if load.Group != 0 {
			p.coll.Bar = coll.NewBarrier(seg, job.WorldBlock, all)
		}
		if load.Group > 0 {
			p.coll.Bar.Divide(i, load.Group)
		}
		atomic.StoreUint32(&seg.Ranks[i].State, job.StateReady)
		w.spawn(func(r *rank) {
			p.rank = r
			call := p.caller()
			for k := range warmUp {
				call(k)
			}
			p.barrier()
			begins[i] = r.clock
			traffic[i].add(r.traffic, -1)
			for k := range measured {
				call(k)
			}
			ends[i] = r.clock
			traffic[i].add(r.traffic, 1)
		})
	}
	if err := w.run(); err != nil {
		return c, err
	}
	var begin, end Cost
	for i := range load.Ranks {
		begin, end = later(begin, begins[i]), later(end, ends[i])
		per := func(n int) float64 { return float64(n) / measured }
		c.Busiest = max(c.Busiest, per(traffic[i].Transfers))
		c.Read, c.Written = max(c.Read, per(traffic[i].Read)), max(c.Written, per(traffic[i].Written))
		c.Total.Transfers += per(traffic[i].Transfers)
		c.Total.Invalidations += per(traffic[i].Invalidations)
		c.Total.Calls += per(traffic[i].Calls)
		c.Total.Woken += per(traffic[i].Woken)
	}
	path := end.minus(begin)
	c.Critical = Path{path.Time / measured, float64(path.Transfers) / measured, float64(path.Bytes) / measured, float64(path.Calls) / measured}
	return c, nil
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
	// Parts, and what they make together, as in gormapy.bench.
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
	a.Send = p2p.Buf{Addr: p.memory(8 * each * sends), Count: each, Type: longType}
	a.Recv = p2p.Buf{Addr: p.memory(8 * each * receives), Count: each, Type: longType}
	switch p.load.Kind {
	case coll.KindReduce, coll.KindAllreduce, coll.KindScan, coll.KindReduceScatterBlock:
		a.Op = op.Sum
		if sends > 1 {
			a.Send.Count, a.Bytes = whole*each, 8*each*n
			a.Send.Count = each * n
		}
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
		p.wait(s.Advance)
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
}

func (p *process) must(e *errs.Error) {
	if e != nil {
		panic(e.Error())
	}
}
