//go:build interleave

package coll

import (
	"fmt"
	"math/bits"
	"sync"
	"testing"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// boardCase is a number of ranks that call the same collectives one after the other.
type boardCase struct {
	ranks   int
	calls   []Call
	nosleep bool // ranks yield and look again, as Wait does before it sleeps
	preempt int
	gives   uint32 // number of the collective that rank 0 gives up; 0: none
	begins  bool   // it has begun that
	group   int    // ranks in each group; 0: the board is not divided
	leaves  uint32 // number of the collective in which rank 0 publishes and then looks no more
}

// idle returns an engine that moves nothing.
var idle = sync.OnceValue(func() *engine.Engine {
	seg, err := job.Create(1)
	if err != nil {
		panic(err)
	}
	return engine.New(seg, 0, engine.Options{})
})

// channel returns a channel by which nothing is sent: collectives only ask it for the
// generation.
var channel = sync.OnceValue(func() *p2p.Channel { return p2p.New(idle()).Open(1, 0, []int{0, 0, 0, 0}) })

func (c boardCase) world(w *explore.World) {
	mem := &struct {
		waiters uint32
		ranks   [4]boardRank
		groups  [6][job.BoardSlots]slot
	}{}
	w.Memory("waiters", unsafe.Pointer(&mem.waiters), 4)
	for i := range c.ranks {
		r := &mem.ranks[i]
		for k := range r.slots {
			w.Memory(fmt.Sprintf("slot[%d][%d]", i, k), unsafe.Pointer(&r.slots[k]), 24)
		}
		w.Memory(fmt.Sprintf("done[%d]", i), unsafe.Pointer(&r.done), 4)
		w.Memory(fmt.Sprintf("refused[%d]", i), unsafe.Pointer(&r.refused), 8*refusedWords)
	}
	for i := range mem.groups {
		for k := range mem.groups[i] {
			w.Memory(fmt.Sprintf("group[%d][%d]", i, k), unsafe.Pointer(&mem.groups[i][k]), 24)
		}
	}
	ranks := make([]*job.Rank, c.ranks)
	for i := range ranks {
		ranks[i] = &job.Rank{}
		w.Memory(fmt.Sprintf("doorbell[%d]", i), unsafe.Pointer(&ranks[i].Doorbell), 8)
	}
	for i := range c.ranks {
		w.Thread(fmt.Sprintf("rank%d", i), func(t *explore.Thread) {
			board := &Board{waiters: &mem.waiters, ranks: mem.ranks[:c.ranks], bytes: shortSlot, me: i}
			com := &Comm{Chan: channel(), Rank: i, Size: c.ranks, ranks: ranks, board: board}
			if c.group > 0 {
				n := (c.ranks + c.group - 1) / c.group
				board.groups = &boardGroups{size: c.group, operands: groupSlots{slots: mem.groups[:n]}, results: groupSlots{slots: mem.groups[3 : 3+n]}}
			}
			for n, call := range c.calls {
				t.Forget(uint64(n), uint64(board.seen))
				c.run(t, com, call, ranks[i])
			}
		})
	}
	w.Finally(func() error {
		if mem.waiters != 0 {
			return fmt.Errorf("%d ranks still wait for room", mem.waiters)
		}
		return nil
	})
}

// run calls one collective and checks its result. Rank r contributes r*16 plus the
// number of the collective.
func (c boardCase) run(t *explore.Thread, com *Comm, call Call, me *job.Rank) {
	out, in, all := int64(0), int64(-1), [4]int64{}
	value := func(r int) int64 { return int64(r*16) + int64(com.seq) }
	long := dtype.ByName("INT64_T")
	call.Bytes, call.Elem = 8, long.Kind()
	if call.Nonblocking { // by messages, which take no time here
		com.Calling(call)
		com.newOp(func(*Op, int) bool { return true })
		return
	}
	if call.Kind == KindComm {
		call.Elem = 0 // as Together has it
	}
	a := Args{Call: call, Send: p2p.Buf{Addr: unsafe.Pointer(&out), Count: 1, Type: long}, Recv: p2p.Buf{Addr: unsafe.Pointer(&in), Count: 1, Type: long}}
	if call.Kind == KindComm {
		a.Recv.Addr = unsafe.Pointer(&all[0])
	}
	s := com.BoardOp(&a)
	out = value(com.Rank)
	if call.Kind == KindBcast && com.Rank == call.Root {
		in = out
	}
	if c.gives == com.seq && com.Rank == 0 {
		if !c.begins || !s.Advance() {
			s.Abandon()
		}
		return
	}
	missed := func() bool { // as in Check
		for r := range com.Size {
			if r != com.Rank && s.needs(r) && com.board.missed(r, s.seq) {
				s.Abandon()
				return true
			}
		}
		return false
	}
	for !s.Advance() {
		if c.leaves == com.seq && com.Rank == 0 {
			return
		}
		if c.gives > 0 && missed() {
			t.Check(c.gives == com.seq, "collective %d has not been given up", com.seq)
			return
		}
		t.Forget(uint64(com.seq), uint64(com.board.seen), uint64(s.at), uint64(s.members), uint64(flag(s.filled)|flag(s.waiting)<<1))
		if c.nosleep {
			atom.Yield()
			continue
		}
		atom.Add32(&me.Sleepers, 1)
		bell := atom.Load32(&me.Doorbell)
		if s.Advance() {
			atom.Add32(&me.Sleepers, ^uint32(0))
			break
		}
		if s.grouped && s.filled { // as in Check
			s.standIn()
		}
		if c.gives > 0 && missed() {
			atom.Add32(&me.Sleepers, ^uint32(0))
			return
		}
		atom.Wait(&me.Doorbell, bell, 0)
		atom.Add32(&me.Sleepers, ^uint32(0))
	}
	if c.gives == com.seq && s.Err() != nil { // it finds that when all have come
		return
	}
	t.Check(s.Err() == nil, "collective %d ended with %v", com.seq, s.Err())
	want := int64(0)
	switch call.Kind {
	case KindComm:
		in = 0
		for r := range com.Size {
			in, want = in+all[r], want+value(r)
		}
	case KindBcast:
		want = value(call.Root)
	case KindAllreduce:
		for r := range com.Size {
			want += value(r)
		}
	case KindReduce:
		want = -1
		if com.Rank == call.Root {
			want = 0
			for r := range com.Size {
				want += value(r)
			}
		}
	}
	t.Check(in == want, "%s number %d gave rank %d the value %d instead of %d", call.Kind, com.seq, com.Rank, in, want)
	s.Release()
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestEveryInterleavingOfBoard(t *testing.T) {
	bcast := func(root int) Call { return Call{Kind: KindBcast, Root: root} }
	reduce := func(root int) Call { return Call{Kind: KindReduce, Root: root, Op: op.Sum} }
	sum := Call{Kind: KindAllreduce, Op: op.Sum}
	made := Call{Kind: KindComm}
	messages := Call{Kind: KindBcast, Nonblocking: true}
	repeat := func(n int, c ...Call) (l []Call) {
		for range n {
			l = append(l, c...)
		}
		return l
	}
	for _, c := range []struct {
		name string
		boardCase
	}{
		{"a root that runs ahead", boardCase{ranks: 2, calls: repeat(4, bcast(0))}},
		{"to a root that is late", boardCase{ranks: 2, calls: repeat(4, reduce(0))}},
		{"in step", boardCase{ranks: 2, calls: repeat(4, sum)}},
		{"three ranks in step", boardCase{ranks: 3, calls: repeat(4, sum), preempt: 1}},
		{"in step, then a root that runs ahead", boardCase{ranks: 2, calls: append(repeat(2, sum), repeat(3, bcast(0))...)}},
		{"there and back", boardCase{ranks: 2, calls: repeat(2, bcast(0), bcast(1))}},
		{"messages between", boardCase{ranks: 2, calls: []Call{bcast(0), messages, bcast(0), bcast(0)}, preempt: 3}},
		{"three ranks", boardCase{ranks: 3, calls: repeat(3, bcast(0)), preempt: 1}},
		{"three ranks, all kinds", boardCase{ranks: 3, calls: []Call{bcast(1), sum, reduce(2), bcast(0)}, preempt: 1}},
		{"a rank that does not come", boardCase{ranks: 2, calls: repeat(3, made), gives: 3, preempt: 2}},
		{"a rank that comes and goes", boardCase{ranks: 2, calls: repeat(3, made), gives: 2, begins: true, preempt: 2}},
		{"one of three ranks that does not come", boardCase{ranks: 3, calls: repeat(2, made), gives: 2, preempt: 1}},
		{"two groups", boardCase{ranks: 3, calls: repeat(4, sum), group: 2, preempt: 1}},
		{"two groups, as they read", boardCase{ranks: 3, calls: repeat(1, sum), group: 2, preempt: 2}},
		{"two groups of two", boardCase{ranks: 4, calls: repeat(1, sum), group: 2, preempt: 1}},
		{"two groups, all kinds", boardCase{ranks: 3, calls: []Call{sum, bcast(2), sum, sum}, group: 2, preempt: 1}},
		{"a leader that leaves", boardCase{ranks: 3, calls: repeat(2, sum), group: 2, leaves: 2, preempt: 1}},
		{"the leader of one that leaves", boardCase{ranks: 3, calls: repeat(2, sum), group: 1, leaves: 2, preempt: 1}},
		{"three ranks without sleep", boardCase{ranks: 3, calls: repeat(3, bcast(0)), nosleep: true, preempt: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			explore.Run(t, explore.Options{FreeYield: true, Preemptions: c.preempt}, c.world)
		})
	}
}

// Two threads of a rank give collectives up at the same time, which another rank sees.
func TestEveryInterleavingOfRefusals(t *testing.T) {
	numbers := []uint32{4, 4 + refusedSpan, 4 + refusedSpan*refusedWords} // the last one is in the first one's place
	for _, pair := range [][2]uint32{{numbers[0], numbers[0] + 1}, {numbers[0], numbers[1]}, {numbers[0], numbers[2]}} {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			explore.Run(t, explore.Options{}, func(w *explore.World) {
				ranks := new([1]boardRank)
				w.Memory("refused", unsafe.Pointer(&ranks[0].refused), 8*refusedWords)
				for i, k := range pair {
					w.Thread(fmt.Sprintf("thread%d", i), func(*explore.Thread) { (&Board{ranks: ranks[:]}).refuse(k) })
				}
				w.Thread("other", func(t *explore.Thread) {
					b := &Board{ranks: ranks[:], me: 1}
					for _, k := range append(numbers, 0, 3, 6, 1<<31+4) {
						t.Check(!b.refused(0, k) || k == pair[0] || k == pair[1], "collective %d has not been given up", k)
						t.Check(!b.refusedTag(0, int32(k&maxTag)) || k&maxTag == pair[0] || k&maxTag == pair[1], "tag %d has not been given up", k&maxTag)
					}
				})
				w.Finally(func() error {
					known := 0
					for _, word := range ranks[0].refused {
						known += bits.OnesCount32(uint32(word))
					}
					if known != 2 && (known != 1 || pair[1] != numbers[2]) {
						return fmt.Errorf("one of %d is forgotten", pair)
					}
					return nil
				})
			})
		})
	}
}

// A rank retracts what it has offered in two collectives, and changes it. The other one reads both, and finds that out, or has read
// what was offered. The call stays.
func TestEveryInterleavingOfRetract(t *testing.T) {
	explore.Run(t, explore.Options{}, func(w *explore.World) {
		ranks, data := new([2]boardRank), new([2]uint32)
		nonblocking := new([2]nonblockingRank)
		for k := range ranks[0].slots {
			w.Memory(fmt.Sprintf("slot[%d]", k), unsafe.Pointer(&ranks[0].slots[k]), uintptr(16+sourceBytes))
		}
		for k := range nonblocking[0].slots {
			w.Memory(fmt.Sprintf("nonblocking[%d]", k), unsafe.Pointer(&nonblocking[0].slots[k]), 16)
		}
		w.Memory("data", unsafe.Pointer(data), 8)
		call := Call{Kind: KindAllreduce, Bytes: 1 << 20}
		w.Thread("owner", func(*explore.Thread) {
			b := &Board{ranks: ranks[:]}
			for i := range data {
				atom.Store32(&data[i], 1)
				b.publish(uint32(5+i), &call)
			}
			for i := range data {
				b.retract(uint32(6 - i))
			}
			for i := range data {
				atom.Store32(&data[i], 2)
			}
		})
		w.Thread("reader", func(t *explore.Thread) {
			b := &Board{ranks: ranks[:], me: 1, nonblocking: nonblockingBoard{ranks: nonblocking[:]}}
			for i := range data {
				k := uint32(5 + i)
				if !b.filled(0, k) || b.retracted(0, k) {
					return
				}
				read := atom.Load32(&data[i])
				t.Check(read == 1 || b.retracted(0, k), "%d was read in collective %d", read, k)
				t.Check(b.compare(&call, 0, k) == nil, "the call of collective %d has changed", k)
			}
		})
	})
}
