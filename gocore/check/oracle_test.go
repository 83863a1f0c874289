package check

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/check/events"
)

// The checker against an oracle: random small programs of 2 and 3 ranks, each run in a random order that it allows. The oracle
// has the order of all steps as a graph, looks at each pair of accesses, and knows by construction whether it is a race.

type stepKind int

const (
	stepPut stepKind = iota
	stepGet
	stepAdd
	stepFlush
	stepFlushLocal
	stepLoad
	stepStore
	stepLoadBuffer
	stepStoreBuffer
	stepSend
	stepReceive
	stepBarrier
	stepBarrierEnd
	stepKinds
)

// step is one step of a rank; cell is one of the target's window or of the own buffer.
type step struct {
	rank, other, cell, buffer int
	kind                      stepKind
	message                   int
}

const (
	cells      = 3
	windowBase = 1 << 30
	bufferBase = 1 << 20
)

// randomRun returns the steps of a random program in a random order that is possible.
func randomRun(rng *rand.Rand, ranks int) []step {
	programs := make([][]step, ranks)
	message := 0
	for range 4 + rng.IntN(14) {
		r := rng.IntN(ranks)
		s := step{rank: r, other: rng.IntN(ranks), cell: rng.IntN(cells), buffer: rng.IntN(cells), kind: stepKind(rng.IntN(int(stepBarrierEnd)))}
		switch s.kind {
		case stepBarrier:
			for i := range programs {
				programs[i] = append(programs[i], step{rank: i, kind: stepBarrier}, step{rank: i, kind: stepBarrierEnd})
			}
			continue
		case stepSend, stepReceive:
			message++
			to := (r + 1) % ranks
			programs[r] = append(programs[r], step{rank: r, other: to, kind: stepSend, message: message})
			programs[to] = append(programs[to], step{rank: to, other: r, kind: stepReceive, message: message})
			continue
		}
		programs[r] = append(programs[r], s)
	}
	var run []step
	at, sent := make([]int, ranks), map[int]bool{}
	begun, ended := make([]int, ranks), make([]int, ranks)
	for {
		var ready []int
		for r, program := range programs {
			if at[r] == len(program) {
				continue
			}
			s := program[at[r]]
			possible := s.kind != stepReceive || sent[s.message]
			if s.kind == stepBarrierEnd {
				for _, n := range begun {
					possible = possible && n > ended[r]
				}
			}
			if possible {
				ready = append(ready, r)
			}
		}
		if len(ready) == 0 {
			return run
		}
		r := ready[rng.IntN(len(ready))]
		s := programs[r][at[r]]
		at[r]++
		switch s.kind {
		case stepSend:
			sent[s.message] = true
		case stepBarrier:
			begun[r]++
		case stepBarrierEnd:
			ended[r]++
		}
		run = append(run, s)
	}
}

// oracleAccess is one access of a step to a cell of a rank's memory, and the steps at which it is complete.
type oracleAccess struct {
	step, owner, cell int
	window            bool
	writes, adds      bool
	operation         bool
	complete          []int
}

// oracle returns the pairs of steps that race.
func oracle(run []step, ranks int) map[[2]int]bool {
	before := make([]map[int]bool, len(run)) // the steps before each
	last := map[int]int{}
	sends, barriers := map[int]int{}, map[int][]int{}
	begun, ended := make([]int, ranks), make([]int, ranks)
	for i, s := range run {
		before[i] = map[int]bool{}
		after := func(j int) {
			before[i][j] = true
			for k := range before[j] {
				before[i][k] = true
			}
		}
		if j, ok := last[s.rank]; ok {
			after(j)
		}
		last[s.rank] = i
		switch s.kind {
		case stepSend:
			sends[s.message] = i
		case stepReceive:
			after(sends[s.message])
		case stepBarrier:
			barriers[begun[s.rank]] = append(barriers[begun[s.rank]], i)
			begun[s.rank]++
		case stepBarrierEnd:
			for _, j := range barriers[ended[s.rank]] {
				after(j)
			}
			ended[s.rank]++
		}
	}
	var all []oracleAccess
	for i, s := range run {
		var local, remote []int
		for j := i + 1; j < len(run); j++ {
			if f := run[j]; f.rank == s.rank && f.other == s.other && (f.kind == stepFlush || f.kind == stepFlushLocal) {
				local = append(local, j)
				if f.kind == stepFlush || s.kind == stepGet {
					remote = append(remote, j)
				}
			}
		}
		switch s.kind {
		case stepPut, stepAdd, stepGet:
			get := s.kind == stepGet
			all = append(all, oracleAccess{i, s.rank, s.buffer, false, get, false, true, local},
				oracleAccess{i, s.other, s.cell, true, !get, s.kind == stepAdd, true, remote})
		case stepLoad, stepStore:
			all = append(all, oracleAccess{i, s.rank, s.cell, true, s.kind == stepStore, false, false, []int{i}})
		case stepLoadBuffer, stepStoreBuffer:
			all = append(all, oracleAccess{i, s.rank, s.buffer, false, s.kind == stepStoreBuffer, false, false, []int{i}})
		}
	}
	races := map[[2]int]bool{}
	for _, a := range all {
		for _, b := range all {
			if a.step >= b.step || a.owner != b.owner || a.cell != b.cell || a.window != b.window || !a.writes && !b.writes || a.adds && b.adds {
				continue
			}
			if !a.operation && !b.operation && run[a.step].rank == run[b.step].rank {
				continue
			}
			ordered := false
			for _, c := range a.complete {
				ordered = ordered || before[b.step][c]
			}
			if !ordered {
				races[[2]int{a.step, b.step}] = true
			}
		}
	}
	return races
}

// checked returns the pairs of steps that the checker reports.
func checked(run []step, ranks int) map[[2]int]bool {
	c := New(make([]*events.Stream, ranks), func(*Finding) {}, nil)
	send := func(rank int, kind events.Kind, site uint32, text string, words ...int64) {
		c.process(c.ranks[rank], &events.Event{Kind: kind, Thread: 1, Site: site, Words: words, Text: text})
	}
	group := []int64{1, 7}
	for r := range ranks {
		group = append(group, int64(r))
	}
	const win, comm, typ = 3, 4, 5
	for r := range ranks {
		send(r, events.DefComm, 0, "", append([]int64{comm}, group[1:]...)...)
		send(r, events.DefWin, 0, "", win, 1, 2, windowBase, cells*8, 8, comm)
		send(r, events.DefType, 0, "", typ, 8, 9, 8, 0, 8)
		for i := range run {
			send(r, events.DefSite, 0, strings.Join([]string{"program", "call", "", "", "win", "buffer", "", ""}, "\x00"), int64(i+1), int64(i))
		}
		send(r, events.Sync, 0, "", win, int64(events.LockAll), 1, -1, 0)
	}
	for i, s := range run {
		site, at := uint32(i+1), int64(bufferBase+8*s.buffer)
		operation := func(kind, op int64) {
			send(s.rank, events.Op, site, "", win, kind, int64(i+1), int64(s.other), int64(s.cell), typ, 1, at, typ, 1, 0, 0, 0, 0, op, 0, 0, 0)
		}
		access := func(write, address int64) { send(s.rank, events.Access, site, "", write, address, 1, 8, 8) }
		switch s.kind {
		case stepPut:
			operation(events.Put, OpReplace)
		case stepGet:
			operation(events.Get, OpReplace)
		case stepAdd:
			operation(events.Accumulate, OpSum)
		case stepFlush:
			send(s.rank, events.Sync, site, "", win, int64(events.Flush), 1, int64(s.other), 0)
		case stepFlushLocal:
			send(s.rank, events.Sync, site, "", win, int64(events.FlushLocal), 1, int64(s.other), 0)
		case stepLoad, stepStore:
			access(int64(s.kind-stepLoad), int64(windowBase+8*s.cell))
		case stepLoadBuffer, stepStoreBuffer:
			access(int64(s.kind-stepLoadBuffer), at)
		case stepSend:
			send(s.rank, events.Sent, 0, "", int64(s.message), int64(s.other))
		case stepReceive:
			send(s.rank, events.Received, 0, "", int64(s.message), int64(s.other))
		case stepBarrier:
			send(s.rank, events.Coll, site, "Barrier", comm, 0, 0, -1)
		case stepBarrierEnd:
			send(s.rank, events.Coll, site, "Barrier", comm, 0, 1, -1)
		}
	}
	for _, r := range c.ranks {
		c.settle(r, false)
	}
	found := map[[2]int]bool{}
	for _, f := range c.order {
		found[[2]int{f.Accesses[0].Line, f.Accesses[1].Line}] = true
	}
	return found
}

func TestRandomProgramsAgainstTheOracle(t *testing.T) {
	programs, racy := 10_000, 0
	rng := rand.New(rand.NewPCG(20, 1))
	for n := range programs {
		ranks := 2 + n%2
		run := randomRun(rng, ranks)
		due, found := oracle(run, ranks), checked(run, ranks)
		show := func() string {
			text := ""
			for i, s := range run {
				text += fmt.Sprintf("%d: %+v\n", i, s)
			}
			return fmt.Sprintf("program %d\n%sraces %v\nfound %v", n, text, due, found)
		}
		later, seen := map[int]bool{}, map[int]bool{}
		for pair := range due {
			later[pair[1]] = true
		}
		for pair := range found {
			require.True(t, due[pair], "%v is no race: %s", pair, show)
			seen[pair[1]] = true
		}
		// An access that a later one covers is not kept: what races with the one races with the other.
		require.Equal(t, later, seen, "%s", show)
		if len(due) > 0 {
			racy++
		}
	}
	require.Greater(t, racy, programs/3)
	require.Less(t, racy, programs*9/10)
}

func TestAnErrorOfTheCheckerDoesNotEndTheJob(t *testing.T) {
	s, err := events.New()
	require.NoError(t, err)
	defer s.Close()
	answered := make(chan int64, 1)
	c := New([]*events.Stream{s}, func(*Finding) {}, func(mark int64) { answered <- mark })
	s.Write(events.Access) // without its words
	s.Write(events.Sync)
	s.Write(events.Mark, 5)
	go c.Run()
	require.EqualValues(t, 5, <-answered)
	require.Empty(t, c.Finish(true))
	require.Contains(t, c.Failure, "index out of range")
}
