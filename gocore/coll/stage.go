package coll

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// stage is memory in this process's arena into which it copies its part of a collective for the others to read by
// loads. For what is not long, that copy costs less than copies by the kernel: each of these is a system call, and
// several ranks that read the same pages wait for each other.
//
// A stage is given back when the collective has completed: no rank reads it any more. If the collective has ended with an
// error or was given up, other ranks may still come and read: then the communicator keeps the stage until the
// done of every rank that lives has reached the collective's number (strand, sweep).
type stage struct{ mem []byte }

func (s *stage) addr() unsafe.Pointer { return unsafe.Pointer(&s.mem[0]) }

// stages keeps the stages of completed collectives, by size class: new memory costs a page fault every 4 KiB.
var stages stagePool

type stagePool struct {
	mu   sync.Mutex
	free [48][]*stage // by the binary logarithm of the size
}

// take returns a stage of n bytes, or nil if there is no memory for it.
func (p *stagePool) take(n int) *stage {
	class := bits.Len(uint(max(n, keepFrom) - 1))
	if s := p.kept(class); s != nil {
		return s
	}
	mem, err := arena.Alloc(1<<class, 0)
	if err != nil {
		return nil
	}
	s := &stage{mem}
	runtime.AddCleanup(s, func(mem []byte) { _ = arena.Free(mem) }, mem)
	return s
}

func (p *stagePool) kept(class int) *stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.free[class]
	if len(l) == 0 {
		return nil
	}
	s := l[len(l)-1]
	l[len(l)-1] = nil
	p.free[class] = l[:len(l)-1]
	return s
}

// Of each size class this many stages are kept, unless they are longer.
const (
	stagesKept = 4
	stageKept  = 4 << 20
)

// give returns to the pool the stages of a collective, which no rank reads any more.
func (p *stagePool) give(all []*stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range all {
		if class := bits.Len(uint(len(s.mem) - 1)); len(s.mem) <= stageKept && len(p.free[class]) < stagesKept {
			p.free[class] = append(p.free[class], s)
		}
	}
}

// stranded are stages of collectives that have not completed, which others may still read.
type stranded struct {
	mu  sync.Mutex
	all []strandedStages
}

type strandedStages struct {
	number uint32 // the last one that the collective took
	stages []*stage
}

// strand leaves the stages to those that may still read them.
func (d *SingleCopyOp) strand() {
	if d.staged == nil {
		return
	}
	l := &d.c.stranded
	l.mu.Lock()
	l.all = append(l.all, strandedStages{d.c.seq, slices.Clone(d.staged)})
	l.mu.Unlock()
	d.staged = nil
}

// sweep gives back the stranded stages that no rank reads any more.
func (c *Comm) sweep() {
	l := &c.stranded
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(x strandedStages) bool {
		for r := range c.Size {
			if r != c.Rank && int32(atom.Load32(&c.board.ranks[r].done)-x.number) < 0 && !c.eng.Gone(c.Chan.World[r]) {
				return false
			}
		}
		stages.give(x.stages)
		return true
	})
}

// forget drops the stranded stages, in a collective reset.
func (l *stranded) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}

// stageLimits are how many bytes of a rank are staged in a collective of a kind: of a part that one rank or each rank reads, of
// operands, and of what all ranks read at the same time.
type stageLimits [kinds]int

// stageMost are the limits where copies by the kernel are fast. On a machine with 16 cores, and 4 or 16 ranks, they are faster for
// more. A scatter's data, which the root alone would copy for the others to read a part each, is not staged.
var stageMost = stageLimits{
	KindBcast:              1 << 20,
	KindGather:             64 << 10,
	KindAllgather:          64 << 10,
	KindAlltoall:           16 << 10, // for each rank
	KindGatherv:            64 << 10,
	KindAllgatherv:         64 << 10,
	KindAlltoallv:          16 << 10, // for each rank
	KindNeighborAllgather:  64 << 10,
	KindNeighborAlltoall:   16 << 10, // for each edge
	KindReduce:             1 << 20,
	KindAllreduce:          1 << 20,
	KindReduceScatterBlock: 1 << 20,
}

// stageMostSlow are the limits where two copies by the processor take less time than one by the kernel (kernelIsSlow). On a machine
// with 2 such cores, 2 ranks take half of the time for 64 KiB to 1 MiB, also if the data are in no cache, and 4 ranks two thirds.
var stageMostSlow = stageLimits{
	KindBcast:              2 << 20,
	KindGather:             2 << 20,
	KindScatter:            1 << 20, // see scatterers
	KindAllgather:          2 << 20,
	KindAlltoall:           256 << 10, // for each rank
	KindGatherv:            2 << 20,
	KindScatterv:           1 << 20,
	KindAllgatherv:         2 << 20,
	KindAlltoallv:          256 << 10, // for each rank
	KindNeighborAllgather:  1 << 20,
	KindNeighborAlltoall:   256 << 10, // for each edge
	KindReduce:             4 << 20,
	KindAllreduce:          4 << 20,
	KindReduceScatterBlock: 4 << 20,
}

// scatterers is the most ranks of a scatter that is staged: the root copies the parts of all others.
const scatterers = 4

// stagePair is from how many bytes on one of two ranks stages an operand where copies by the kernel are fast.
const stagePair = 256 << 10

// stages reports whether n bytes of this rank, or that number for each rank, are staged. Of two ranks, one reads what the other
// would stage: a copy less. But it folds in place what is staged, which is faster for long operands that have changed since they
// were read last. For those that have not, and lie in both caches, it is slower.
func (d *SingleCopyOp) stages(n int) bool {
	switch {
	case n <= 0 || n > stageMostSlow[d.Kind]:
		return false
	case kernelIsSlow():
		return d.c.Size <= scatterers || d.Kind != KindScatter && d.Kind != KindScatterv
	}
	return n <= stageMost[d.Kind] && (d.c.Size > 2 || d.Op != 0 && n > stagePair)
}

// stagesIn reports whether n bytes, of which unit count for stages, are staged. A longer stage than those that are kept would be new memory
// in each call, which Go's collector alone gives back: it does not know how much that is.
func (d *SingleCopyOp) stagesIn(unit, n int) bool { return n <= stageKept && d.stages(unit) }

// kernelIsSlow reports whether two copies by the processor take less time than one by the kernel from another process. The kernel looks up
// and pins each page, so the newer a processor, the slower the kernel in comparison. It is measured once, in less than a millisecond.
var kernelIsSlow = sync.OnceValue(func() bool {
	kernel, processor, err := sys.CopyTimes(512 << 10)
	return err == nil && kernel > processor+processor/4
})

// exposed returns where the others read n bytes of this rank's memory at p, of which unit count for stages: there, if it
// lies in the arena or is long, else in a stage. Nobody reads unread bytes at offset off.
func (d *SingleCopyOp) exposed(p unsafe.Pointer, n, unit, off, unread int) unsafe.Pointer {
	if d.c.eng.Share(p, n) != 0 || !d.stagesIn(unit, n) {
		return p
	}
	s := d.stage(n)
	if s == nil {
		return p
	}
	for _, x := range [2]struct{ at, n int }{{0, off}, {off + unread, n - off - unread}} {
		if x.n == 0 {
			continue // there may be no memory at x.at
		}
		atom.Writes(unsafe.Add(s, x.at), x.n)
		fabric.Copy(unsafe.Add(s, x.at), unsafe.Add(p, x.at), x.n)
	}
	return s
}

// stage returns n bytes of a stage, nil if there is none.
func (d *SingleCopyOp) stage(n int) unsafe.Pointer {
	s := stages.take(n)
	if s == nil {
		return nil
	}
	if d.staged == nil {
		d.staged = d.few[:0]
	}
	d.staged = append(d.staged, s)
	return s.addr()
}
