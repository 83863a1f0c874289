//go:build interleave && model

package cachemodel

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
)

// What one event takes, in nanoseconds, for TestTimes: see machine_test.go.
var (
	transfer = flag.Float64("transfer", 30, "nanoseconds that a transfer takes")
	perByte  = flag.Float64("byte", 0.06, "nanoseconds that a byte takes")
	kernel   = flag.Float64("kernel", 300, "nanoseconds that a system call takes")
	entry    = flag.Float64("entry", 0, "nanoseconds that a call takes besides")
)

var sizes = []int{2, 4, 8, 16, 32, 64, 128, 256}

var kinds = []coll.Kind{coll.KindBarrier, coll.KindBcast, coll.KindReduce, coll.KindAllreduce, coll.KindReduceScatterBlock,
	coll.KindAllgather, coll.KindAlltoall, coll.KindGather, coll.KindScatter, coll.KindScan}

func run(t *testing.T, load Workload, m Machine) Count {
	t.Helper()
	c, err := Run(load, m)
	require.NoError(t, err, "%v of %d bytes, %d ranks", load.Kind, load.Bytes, load.Ranks)
	return c
}

// table logs a table with a row for each collective and a column for each number of ranks.
func table(t *testing.T, title string, kinds []coll.Kind, sizes []int, cell func(k coll.Kind, n int) string) {
	t.Helper()
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s\n\n| ranks |", title)
	for _, n := range sizes {
		fmt.Fprintf(text, " %d |", n)
	}
	fmt.Fprintf(text, "\n|---|%s\n", strings.Repeat("---|", len(sizes)))
	for _, k := range kinds {
		fmt.Fprintf(text, "| %v |", k)
		for _, n := range sizes {
			fmt.Fprintf(text, " %s |", cell(k, n))
		}
		text.WriteByte('\n')
	}
	t.Log(text)
}

// TestTables logs the tables of docs/collectives-model.md: what the collectives cost in events.
func TestTables(t *testing.T) {
	if testing.Short() {
		t.Skip("make model runs it")
	}
	atOnce := Unit
	atOnce.Parallel = true
	table(t, "Calls of 8 B: transfers on the critical path, if a line serves one rank after the other / all at once", kinds, sizes,
		func(k coll.Kind, n int) string {
			load := Workload{Ranks: n, Kind: k, Bytes: 8}
			return fmt.Sprintf("%.0f / %.0f", run(t, load, Unit).Critical.Transfers, run(t, load, atOnce).Critical.Transfers)
		})
	table(t, "Calls of 8 B: transfers to the busiest rank / to all, for each rank", kinds, sizes, func(k coll.Kind, n int) string {
		c := run(t, Workload{Ranks: n, Kind: k, Bytes: 8}, Unit)
		return fmt.Sprintf("%.0f / %.1f", c.Busiest.Transfers, c.Total.Transfers/float64(n))
	})
	long, few := kinds[1:len(kinds)-1], sizes[:6] // a long Scan goes by messages
	for _, arena := range []bool{false, true} {
		where := "ordinary memory"
		if arena {
			where = "memory of Alloc_mem"
		}
		which := few
		if !arena {
			which = few[1:] // two ranks with a core each use messages
		}
		table(t, "Calls of 64 KiB in "+where+": transfers on the critical path / KiB that a rank reads / writes for others / "+
			"system calls of all ranks", long, which, func(k coll.Kind, n int) string {
			c := run(t, Workload{Ranks: n, Kind: k, Bytes: 64 << 10, Arena: arena}, Unit)
			return fmt.Sprintf("%.0f / %.0f / %.0f / %.0f", c.Critical.Transfers, c.Busiest.Read/1024, c.Busiest.Written/1024, c.Total.Calls)
		})
	}
	table(t, "Barrier of ranks that sleep: wake-ups by all ranks / system calls on the critical path", kinds[:1], sizes, func(k coll.Kind, n int) string {
		c := run(t, Workload{Ranks: n, Kind: k, Sleeps: true}, Unit)
		return fmt.Sprintf("%.0f / %.0f", c.Total.Woken, c.Critical.Calls)
	})
	for _, group := range []int{-1, 8, 16, 32} {
		title := fmt.Sprintf("In groups of %d ranks", group)
		if group < 0 {
			title = "Not divided"
		}
		table(t, title+": transfers on the critical path", []coll.Kind{coll.KindBarrier, coll.KindAllreduce}, sizes[3:], func(k coll.Kind, n int) string {
			return fmt.Sprintf("%.0f", run(t, Workload{Ranks: n, Kind: k, Bytes: 8, Group: group}, Unit).Critical.Transfers)
		})
	}
}

// TestTimes logs the times that the model predicts for a machine, in microseconds.
func TestTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("make model runs it")
	}
	m := Machine{Transfer: *transfer, Byte: *perByte, Call: *kernel}
	atOnce := m
	atOnce.Parallel = true
	for _, bytes := range []int{8, 64 << 10, 1 << 20} {
		of, which := kinds, sizes[:6]
		if bytes > 8 {
			of, which = kinds[1:len(kinds)-1], []int{4, 16}
		}
		table(t, fmt.Sprintf("Calls of %d bytes, microseconds, one after the other / at once", bytes), of, which, func(k coll.Kind, n int) string {
			load := Workload{Ranks: n, Kind: k, Bytes: bytes}
			return fmt.Sprintf("%.2f / %.2f", (*entry+run(t, load, m).Critical.Time)/1e3, (*entry+run(t, load, atOnce).Critical.Time)/1e3)
		})
	}
}

// A change of a schedule that makes a critical path longer has to be meant.
func TestCriticalPathsStay(t *testing.T) {
	for _, c := range []struct {
		kind  coll.Kind
		ranks int
		most  float64
	}{
		{coll.KindBarrier, 2, 3}, {coll.KindBarrier, 4, 5}, {coll.KindBarrier, 8, 9}, {coll.KindBarrier, 16, 17},
		{coll.KindBarrier, 32, 15}, {coll.KindBarrier, 64, 19}, {coll.KindBarrier, 128, 27}, {coll.KindBarrier, 256, 35},
		{coll.KindAllreduce, 2, 4}, {coll.KindAllreduce, 16, 18}, {coll.KindAllreduce, 32, 35}, {coll.KindAllreduce, 64, 31}, {coll.KindAllreduce, 128, 39}, {coll.KindAllreduce, 256, 55}, {coll.KindAllgather, 16, 18},
		{coll.KindBcast, 2, 5}, {coll.KindBcast, 16, 37}, {coll.KindBcast, 64, 140}, {coll.KindReduceScatterBlock, 16, 39},
		{coll.KindGather, 16, 7}, {coll.KindScatter, 16, 25}, {coll.KindAlltoall, 16, 32},
	} {
		got := run(t, Workload{Ranks: c.ranks, Kind: c.kind, Bytes: 8}, Unit)
		require.LessOrEqual(t, got.Critical.Transfers, c.most, "%v of %d ranks: transfers on the critical path", c.kind, c.ranks)
	}
}

// Each rank that waits in a barrier is woken once, by another one.
func TestSleepersAreWokenOnce(t *testing.T) {
	for _, n := range []int{2, 16, 32, 64} {
		c := run(t, Workload{Ranks: n, Kind: coll.KindBarrier, Sleeps: true}, Unit)
		require.LessOrEqual(t, c.Total.Woken, float64(n), "%d ranks", n)
	}
}

// A run is the same each time: nothing of it depends on the machine.
func TestRunsAreReplayed(t *testing.T) {
	load := Workload{Ranks: 8, Kind: coll.KindReduce, Bytes: 64 << 10, Arena: true}
	require.Equal(t, run(t, load, Unit), run(t, load, Unit))
}

// The counts of calls that can be counted by hand.
func TestCountsByHand(t *testing.T) {
	// The rank that arrives last has the line of arrived, and is the first to arrive at the next barrier. So in each of them
	// there are the last one's update of arrived, its store to released, and the load of the one that waits.
	c := run(t, Workload{Ranks: 2, Kind: coll.KindBarrier}, Unit)
	require.Equal(t, 3.0, c.Critical.Transfers)
	require.Equal(t, 3.0, c.Total.Transfers)
	// Of four calls a rank is the root of one.
	load := Workload{Ranks: 4, Kind: coll.KindBcast, Bytes: 64 << 10, Arena: true}
	require.Equal(t, 3*65536.0/4, run(t, load, Unit).Busiest.Read)
}
