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

const (
	stressRanks    = 3
	stressBarriers = 20000
)

// stressMemory is the memory that the processes of the stress test share.
type stressMemory struct {
	Words   barrierWords
	Ranks   [stressRanks]job.Rank
	Entered [stressRanks]uint32
	Early   [stressRanks]uint32 // number of barriers that were left too early
	Slices  [stressRanks]uint32 // number of sleeps that no wake-up ended
	Last    uint32
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
	b := &Barrier{words: &m.Words, size: stressRanks}
	for i := range m.Ranks {
		b.ranks = append(b.ranks, &m.Ranks[i])
	}
	r := &m.Ranks[me]
	const slice = 20 * time.Second // much longer than a wake-up takes on a busy machine
	for k := uint32(1); k <= stressBarriers; k++ {
		atom.Store32(&m.Entered[me], k)
		done := b.Arrive()
		for !done {
			atom.Add32(&r.Sleepers, 1)
			bell := atom.Load32(&r.Doorbell)
			if done = b.Passed(); !done {
				start := time.Now()
				atom.Wait(&r.Doorbell, bell, slice)
				if time.Since(start) >= slice {
					m.Slices[me]++
				}
				done = b.Passed()
			}
			atom.Add32(&r.Sleepers, ^uint32(0))
		}
		for i := range m.Entered {
			if atom.Load32(&m.Entered[i]) < k {
				m.Early[me]++
			}
		}
	}
	if b.Leave() {
		atom.Add32(&m.Last, 1)
	}
}

// Processes pass many barriers, asleep whenever they wait.
func TestBarrierStress(t *testing.T) {
	seg, err := sys.NewSegment("barrier-stress", int(unsafe.Sizeof(stressMemory{})))
	require.NoError(t, err)
	defer seg.Close()
	m := (*stressMemory)(unsafe.Pointer(&seg.Mem[0]))
	cmds := make([]*exec.Cmd, stressRanks)
	for i := range cmds {
		c := exec.Command(os.Args[0], "-test.run=^TestBarrierStressRank$", "-test.timeout=8m")
		c.Env = append(os.Environ(), fmt.Sprintf("GORMAPY_BARRIER_STRESS=/proc/%d/fd/%d", os.Getpid(), seg.FD),
			fmt.Sprintf("GORMAPY_BARRIER_STRESS_RANK=%d", i))
		require.NoError(t, c.Start())
		defer c.Process.Kill() //nolint:errcheck // it has ended, if all went well
		cmds[i] = c
	}
	for i, c := range cmds {
		require.NoError(t, c.Wait(), "rank %d", i)
	}
	require.Zero(t, m.Early)
	require.Zero(t, m.Slices)
	require.Equal(t, uint32(1), m.Last)
}
