package coll

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/job"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

const stressMost = 12 // ranks

// stressMemory is the memory that the processes of the stress test share.
type stressMemory struct {
	Size     uint32 // number of ranks
	Group    uint32 // number of ranks in a group; 0: the barrier is not divided
	Barriers uint32
	Words    barrierWords
	Groups   [2]groupWords
	Ranks    [stressMost]job.Rank
	Entered  [stressMost]uint32
	Early    [stressMost]uint32 // number of barriers that were left too early
	Slices   [stressMost]uint32 // number of sleeps that no wake-up ended
	Last     uint32
	Dead     uint32
	GaveUp   [stressMost]uint32 // the barrier that a rank could not pass because another one was dead
}

// TestBarrierStressRank is one process of TestBarrierStress.
func TestBarrierStressRank(t *testing.T) {
	path := os.Getenv("GORMAPY_BARRIER_STRESS")
	if path == "" {
		t.Skip("started by TestBarrierStress")
	}
	me, err := strconv.Atoi(os.Getenv("GORMAPY_BARRIER_STRESS_RANK"))
	require.NoError(t, err)
	seg, err := sys.OpenSegmentPath(path)
	require.NoError(t, err)
	m := (*stressMemory)(unsafe.Pointer(&seg.Mem[0]))
	b := &Barrier{words: &m.Words, size: m.Size, groups: m.Groups[:]}
	for i := range m.Size {
		b.ranks = append(b.ranks, &m.Ranks[i])
	}
	if m.Group > 0 {
		b.Divide(me, int(m.Group))
	}
	r := &m.Ranks[me]
	const slice = 20 * time.Second // much longer than a wake-up takes on a busy machine
	for k := uint32(1); k <= m.Barriers; k++ {
		atom.Store32(&m.Entered[me], k)
		done := b.Arrive()
		for !done {
			atom.Add32(&r.Sleepers, 1)
			bell := atom.Load32(&r.Doorbell)
			if done = b.Passed(); !done {
				if dead := atom.Load32(&m.Dead) != 0; !b.complete() && dead && !b.complete() { // as Check does
					m.GaveUp[me] = k
					return
				}
				start := time.Now()
				atom.Wait(&r.Doorbell, bell, slice)
				if time.Since(start) >= slice {
					m.Slices[me]++
				}
				done = b.Passed()
			}
			atom.Add32(&r.Sleepers, ^uint32(0))
		}
		for i := range m.Size {
			if atom.Load32(&m.Entered[i]) < k {
				m.Early[me]++
			}
		}
	}
	if b.Leave() {
		atom.Add32(&m.Last, 1)
	}
}

// stress starts processes that pass barriers. It returns their memory, which is valid until the end of the test, and them.
func stress(t *testing.T, ranks, group, barriers uint32) (*stressMemory, []*exec.Cmd) {
	seg, err := sys.NewSegment("barrier-stress", int(unsafe.Sizeof(stressMemory{})))
	require.NoError(t, err)
	t.Cleanup(func() { seg.Close() })
	m := (*stressMemory)(unsafe.Pointer(&seg.Mem[0]))
	m.Size, m.Group, m.Barriers = ranks, group, barriers
	cmds := make([]*exec.Cmd, ranks)
	for i := range cmds {
		c := exec.Command(os.Args[0], "-test.run=^TestBarrierStressRank$", "-test.timeout=8m")
		c.Env = append(os.Environ(), fmt.Sprintf("GORMAPY_BARRIER_STRESS=/proc/%d/fd/%d", os.Getpid(), seg.FD),
			fmt.Sprintf("GORMAPY_BARRIER_STRESS_RANK=%d", i))
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill() }) // it has ended, if all went well
		cmds[i] = c
	}
	return m, cmds
}

// Processes pass many barriers, asleep whenever they wait.
func TestBarrierStress(t *testing.T) {
	for name, c := range map[string]struct{ ranks, group, barriers uint32 }{
		"one group":  {3, 0, 20000},
		"two groups": {12, 8, 10000},
	} {
		t.Run(name, func(t *testing.T) {
			m, cmds := stress(t, c.ranks, c.group, c.barriers)
			for i, c := range cmds {
				require.NoError(t, c.Wait(), "rank %d", i)
				require.Equal(t, m.Barriers, m.Entered[i], "rank %d", i)
			}
			require.Zero(t, m.Early)
			require.Zero(t, m.Slices)
			require.Equal(t, uint32(1), m.Last)
		})
	}
}

// A leader is killed in the middle: all others end, in the same barrier or the next one.
func TestBarrierStressWithADeath(t *testing.T) {
	m, cmds := stress(t, 12, 8, 1<<30)
	const victim = 8
	for deadline := time.Now().Add(time.Minute); atom.Load32(&m.Entered[victim]) < 100; {
		require.True(t, time.Now().Before(deadline), "the ranks make no progress")
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, cmds[victim].Process.Kill())
	_ = cmds[victim].Wait()
	atom.Store32(&m.Dead, 1)
	for i := range m.Size { // as the launcher does
		m.Ranks[i].Ring()
	}
	for i, c := range cmds {
		if i == victim {
			continue
		}
		require.NoError(t, c.Wait(), "rank %d", i)
		require.InDelta(t, m.Entered[victim], m.GaveUp[i], 1, "rank %d", i)
	}
	require.Zero(t, m.Early)
	require.Zero(t, m.Slices)
}
