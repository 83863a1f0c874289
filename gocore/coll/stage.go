package coll

import (
	"math/bits"
	"runtime"
	"sync"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/fabric"
)

// stage is memory in this process's arena into which it copies its part of a collective for the others to read by
// loads. For what is not long, that copy costs less than copies by the kernel: each of these is a system call, and
// several ranks that read the same pages wait for each other.
//
// A stage is given back once no rank reads it any more. One of a collective that was given up is not; it is freed
// when nothing refers to it.
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
	p.free[class] = l[:len(l)-1]
	return s
}

// give returns to the pool the stages of a collective, which no rank reads any more.
func (p *stagePool) give(all []*stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range all {
		if class := bits.Len(uint(len(s.mem) - 1)); len(p.free[class]) < keepCount {
			p.free[class] = append(p.free[class], s)
		}
	}
}

// stageMost is how many bytes of a rank are staged in a collective of a kind. It is the size from which, on machines
// with 2 and with 16 cores, copies by the kernel are faster: of a part that one rank or each rank reads, of operands, and
// of what all ranks read at the same time. What only one rank copies, and each of the others reads a part of, is not staged.
var stageMost = [kinds]int{
	KindBcast:              1 << 20,
	KindGather:             64 << 10,
	KindAllgather:          64 << 10,
	KindAlltoall:           16 << 10, // for each rank
	KindReduce:             1 << 20,
	KindAllreduce:          1 << 20,
	KindReduceScatterBlock: 1 << 20,
}

// stages reports whether n bytes of this rank, or that number for each rank, are staged.
func (d *SingleCopyOp) stages(n int) bool { return n > 0 && n <= stageMost[d.Kind] }

// expose returns where the others read n bytes of this rank's memory at p, of which unit count for stages: there, if it
// lies in the arena or is long, else in a stage.
func (d *SingleCopyOp) expose(p unsafe.Pointer, n, unit int) source {
	at := d.source(p, n)
	if at.share != 0 || !d.stages(unit) {
		return at
	}
	s := d.stage(n)
	if s == nil {
		return at
	}
	fabric.Copy(s, p, n)
	return d.source(s, n)
}

// stage returns n bytes of a stage, nil if there is none.
func (d *SingleCopyOp) stage(n int) unsafe.Pointer {
	s := stages.take(n)
	if s == nil {
		return nil
	}
	d.staged = append(d.staged, s)
	return s.addr()
}
