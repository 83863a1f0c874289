//go:build interleave

package coll

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// nonblockingCase is a number of ranks that start the same nonblocking collectives.
type nonblockingCase struct {
	ranks   int
	calls   []Call
	window  int // so many are under way before a rank waits for all of them
	preempt int
	gives   uint32 // number of the collective that rank 0 gives up as soon as it has begun it; 0: none
}

// underWay is a collective that a rank has started.
type underWay struct {
	*NonblockingOp
	out, in int64
	all     [3]int64
}

func (c nonblockingCase) world(w *explore.World) {
	mem := &struct {
		waiters     uint32
		ranks       [3]boardRank
		nonblocking [3]nonblockingRank
	}{}
	ranks := make([]*job.Rank, c.ranks)
	w.Memory("waiters", unsafe.Pointer(&mem.waiters), 4)
	for i := range c.ranks {
		w.Memory(fmt.Sprintf("done[%d]", i), unsafe.Pointer(&mem.ranks[i].done), 4)
		w.Memory(fmt.Sprintf("refused[%d]", i), unsafe.Pointer(&mem.ranks[i].refused), 8*refusedWords)
		for k := range mem.ranks[i].slots {
			w.Memory(fmt.Sprintf("blocking[%d][%d]", i, k), unsafe.Pointer(&mem.ranks[i].slots[k]), 24)
		}
		for k := range mem.nonblocking[i].slots {
			w.Memory(fmt.Sprintf("slot[%d][%d]", i, k), unsafe.Pointer(&mem.nonblocking[i].slots[k]), 24)
		}
		w.Memory(fmt.Sprintf("low[%d]", i), unsafe.Pointer(&mem.nonblocking[i].low), 8)
		ranks[i] = &job.Rank{}
		w.Memory(fmt.Sprintf("doorbell[%d]", i), unsafe.Pointer(&ranks[i].Doorbell), 8)
	}
	for i := range c.ranks {
		w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
			board := &Board{waiters: &mem.waiters, ranks: mem.ranks[:c.ranks], me: i}
			board.nonblocking = nonblockingBoard{ranks: mem.nonblocking[:c.ranks], bytes: shortSlot, me: i}
			com := &Comm{Chan: channel(), eng: idle(), Rank: i, Size: c.ranks, ranks: ranks, board: board}
			var ops []*underWay
			for n, call := range c.calls {
				ops = append(ops, c.start(com, call))
				if n+1 < len(c.calls) && len(ops) < c.window {
					continue
				}
				c.wait(t, com, ops, ranks[i])
				ops = nil
			}
		})
	}
	w.Finally(func() error {
		if mem.waiters != 0 {
			return fmt.Errorf("%d collectives still wait for room", mem.waiters)
		}
		for i := range c.ranks {
			if low := mem.nonblocking[i].low; low != uint64(len(c.calls)) {
				return fmt.Errorf("low of rank %d is %d", i, low)
			}
		}
		return nil
	})
}

// start starts one collective. Rank r contributes r*16 plus the number of the collective.
func (c nonblockingCase) start(com *Comm, call Call) *underWay {
	long := dtype.ByName("INT64_T")
	call.Bytes, call.Elem, call.Nonblocking = 8, long.Kind(), true
	u := &underWay{out: int64(com.Rank*16) + int64(com.seq) + 1, in: -1}
	if call.Kind == KindBcast && com.Rank == call.Root {
		u.in = u.out
	}
	a := Args{Call: call, Send: p2p.Buf{Addr: unsafe.Pointer(&u.out), Count: 1, Type: long}, Recv: p2p.Buf{Addr: unsafe.Pointer(&u.in), Count: 1, Type: long}}
	u.NonblockingOp = com.NonblockingOp(&a)
	if c.gives == u.seq && com.Rank == 0 {
		u.Abandon()
	}
	return u
}

// wait waits until all have ended, as a rank does in any wait, and checks the results.
func (c nonblockingCase) wait(t *explore.Thread, com *Comm, ops []*underWay, me *job.Rank) {
	// The last one first, as when the program waits for that one: the others are in the background.
	advance := func() (over bool) {
		over = true
		for i := range ops {
			over = ops[len(ops)-1-i].Advance() && over
		}
		return over
	}
	for !advance() {
		b := &com.board.nonblocking
		state := []uint64{uint64(com.seq), b.seen}
		for _, o := range ops {
			state = append(state, uint64(o.at), uint64(flag(o.filled)|flag(o.waiting)<<1|flag(o.ended)<<2|flag(o.announced)<<3))
		}
		t.Forget(state...)
		atom.Add32(&me.Sleepers, 1)
		bell := atom.Load32(&me.Doorbell)
		if over := advance(); over {
			atom.Add32(&me.Sleepers, ^uint32(0))
			break
		}
		if c.gives > 0 {
			missed := false
			for _, o := range ops {
				missed = o.Check() != nil || missed
			}
			if missed {
				atom.Add32(&me.Sleepers, ^uint32(0))
				continue
			}
		}
		atom.Wait(&me.Doorbell, bell, 0)
		atom.Add32(&me.Sleepers, ^uint32(0))
	}
	for _, o := range ops {
		if c.gives == o.seq {
			continue // it has a result or an error, as rank 0 has contributed or not
		}
		t.Check(o.Err() == nil, "collective %d ended with %v", o.seq, o.Err())
		want := int64(-1)
		switch value := func(r int) int64 { return int64(r*16) + int64(o.seq) }; {
		case o.Kind == KindBcast:
			want = value(o.Root)
		case o.Kind == KindAllreduce || com.Rank == o.Root:
			want = 0
			for r := range com.Size {
				want += value(r)
			}
		}
		t.Check(o.in == want, "%s number %d gave rank %d the value %d instead of %d", o.Kind, o.seq, com.Rank, o.in, want)
	}
}

func TestEveryInterleavingOfNonblocking(t *testing.T) {
	bcast := func(root int) Call { return Call{Kind: KindBcast, Root: root} }
	reduce := func(root int) Call { return Call{Kind: KindReduce, Root: root, Op: op.Sum} }
	sum := Call{Kind: KindAllreduce, Op: op.Sum}
	repeat := func(n int, c ...Call) (l []Call) {
		for range n {
			l = append(l, c...)
		}
		return l
	}
	for _, c := range []struct {
		name string
		nonblockingCase
	}{
		{"one at a time", nonblockingCase{ranks: 2, calls: repeat(4, sum), window: 1, preempt: 4}},
		{"more than there are slots", nonblockingCase{ranks: 2, calls: repeat(4, sum), window: 4, preempt: 3}},
		{"twice as many as there are slots", nonblockingCase{ranks: 2, calls: repeat(5, sum), window: 5, preempt: 2}},
		{"a root that runs ahead", nonblockingCase{ranks: 2, calls: repeat(4, bcast(0)), window: 1, preempt: 3}},
		{"to a root that is late", nonblockingCase{ranks: 2, calls: repeat(4, reduce(0)), window: 2, preempt: 3}},
		{"there and back", nonblockingCase{ranks: 2, calls: repeat(2, bcast(0), bcast(1)), window: 4, preempt: 3}},
		{"three ranks", nonblockingCase{ranks: 3, calls: repeat(3, sum), window: 3, preempt: 1}},
		{"three ranks, all kinds", nonblockingCase{ranks: 3, calls: []Call{bcast(1), sum, reduce(2), bcast(0)}, window: 4, preempt: 1}},
		{"one that is given up", nonblockingCase{ranks: 2, calls: repeat(3, sum), window: 3, gives: 1, preempt: 2}},
		{"one that is given up before it is published", nonblockingCase{ranks: 2, calls: repeat(4, sum), window: 4, gives: 3, preempt: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			explore.Run(t, explore.Options{FreeYield: true, Preemptions: c.preempt}, c.world)
		})
	}
}
