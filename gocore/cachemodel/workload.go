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
	"gormapy/gocore/engine"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Workload is a number of ranks that make the same call again and again, as the loops of gormapy.bench do: with the
// roots in turn.
type Workload struct {
	Ranks  int
	Kind   coll.Kind
	Bytes  int  // of a rank's longest array; 8: of one part
	Arena  bool // arrays in memory of Alloc_mem
	Sleeps bool // a rank that waits sleeps at once, as where ranks share cores
	Group  int  // ranks in each group of the barrier and of the board; 0: as the code has it, -1: no groups
}

// Count is what one call costs, as a mean.
type Count struct {
	Critical struct{ Time, Transfers, Bytes, Calls float64 }          // on the critical path
	Total    struct{ Transfers, Invalidations, Calls, Woken float64 } // of all ranks
	Busiest  struct{ Transfers, Read, Written float64 }               // of the rank that has most of each; bytes of data
}

// The calls of a run: the first ones warm up, so that each slot of the board has been used.
const (
	warmUp   = 2*job.BoardSlots + 2
	measured = 2 * job.BoardSlots
)

// Run counts what a call of the workload costs on a machine that has a core for each rank.
func Run(load Workload, machine Machine) (c Count, err error) {
	engine.OpenArena = openArena
	defer func() { engine.OpenArena = arena.OpenPeer }()
	seg, err := job.Create(load.Ranks)
	if err != nil {
		return c, err
	}
	defer seg.Close()
	seg.Head.Cores = uint32(load.Ranks)
	w := &World{machine: machine, lines: lines{}, memory: blocksOf(seg)}
	mem := &memory{arena: load.Arena}
	defer mem.free()
	begins, ends := make([]Cost, load.Ranks), make([]Cost, load.Ranks)
	traffic := make([]Traffic, load.Ranks)
	for i := range load.Ranks {
		p, err := newProcess(seg, i, load, mem)
		if err != nil {
			return c, err
		}
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
	c.fill(begins, ends, traffic)
	return c, nil
}

// fill computes the means from the clocks of all ranks at the beginning and the end, and their traffic between.
func (c *Count) fill(begins, ends []Cost, traffic []Traffic) {
	per := func(n int) float64 { return float64(n) / measured }
	var begin, end Cost
	for i, t := range traffic {
		begin, end = later(begin, begins[i]), later(end, ends[i])
		c.Busiest.Transfers = max(c.Busiest.Transfers, per(t.Transfers))
		c.Busiest.Read, c.Busiest.Written = max(c.Busiest.Read, per(t.Read)), max(c.Busiest.Written, per(t.Written))
		c.Total.Transfers += per(t.Transfers)
		c.Total.Invalidations += per(t.Invalidations)
		c.Total.Calls += per(t.Calls)
		c.Total.Woken += per(t.Woken)
	}
	path := end.minus(begin)
	c.Critical.Time = path.Time / measured
	c.Critical.Transfers, c.Critical.Bytes, c.Critical.Calls = per(path.Transfers), per(path.Bytes), per(path.Calls)
}

// newProcess returns rank i of the job, as a process of its own would be.
func newProcess(seg *job.Segment, i int, load Workload, mem *memory) (*process, error) {
	if _, ok := seg.Claim(i); !ok {
		return nil, fmt.Errorf("rank %d is claimed", i)
	}
	all := make([]int, load.Ranks)
	for r := range all {
		all[r] = r
	}
	p := &process{load: load, me: &seg.Ranks[i], memory: mem}
	p.eng = engine.New(seg, i, engine.Options{OneCopy: true})
	p.coll = &coll.Comm{Chan: p2p.New(p.eng).Open(2, i, all), Rank: i, Size: load.Ranks}
	p.coll.UseBlock(p.eng, job.WorldBlock)
	if load.Group != 0 {
		p.coll.Bar = coll.NewBarrier(seg, job.WorldBlock, all)
		p.coll.DivideBoard(max(load.Group, 0))
	}
	if load.Group > 0 {
		p.coll.Bar.Divide(i, load.Group)
	}
	atomic.StoreUint32(&seg.Ranks[i].State, job.StateReady)
	return p, nil
}

// blocksOf returns the memory of a job, up to the end of its blocks.
func blocksOf(seg *job.Segment) []byte {
	last := seg.Block(job.Blocks - 1)
	begin, end := unsafe.Pointer(seg.Head), unsafe.Add(unsafe.Pointer(&last[0]), len(last))
	return unsafe.Slice((*byte)(begin), uintptr(end)-uintptr(begin))
}

// memory is that of the programs' arrays.
type memory struct {
	arena  bool
	pages  [][]byte
	inside [][]byte // of the arena
}

// alloc returns n bytes.
func (m *memory) alloc(n int) unsafe.Pointer {
	n = max(n, 1)
	mem, err := []byte(nil), error(nil)
	if m.arena {
		mem, err = arena.Alloc(n, 0)
		m.inside = append(m.inside, mem)
	} else {
		mem, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		m.pages = append(m.pages, mem)
	}
	if err != nil {
		panic(err)
	}
	return unsafe.Pointer(&mem[0])
}

func (m *memory) free() {
	for _, mem := range m.pages {
		_ = unix.Munmap(mem)
	}
	for _, mem := range m.inside {
		_ = arena.Free(mem)
	}
}

// openArena is engine.OpenArena of ranks in one process, which all have the same arena.
func openArena(pid, fd int) (p *arena.Peer, err error) {
	own.once.Do(func() { own.peer, own.err = arena.OpenPeer(pid, fd) })
	return own.peer, own.err
}

var own struct {
	once sync.Once
	peer *arena.Peer
	err  error
}
