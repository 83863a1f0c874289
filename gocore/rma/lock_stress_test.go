package rma

import (
	"fmt"
	"math/rand/v2"
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
	stressRanks = 3
	stressTime  = 1200 * time.Millisecond
)

// stressMemory is the memory that the processes of the stress test share.
type stressMemory struct {
	Lock  [512]byte
	Ranks [stressRanks]job.Rank
	Gone  uint32 // ranks that have died
	Stop  uint32

	// Guarded by the target lock and by the accumulate lock: equal unless a rank died
	// while writing them. Own counts each rank's updates.
	A, B, AccA, AccB uint64
	Own, OwnAcc      [stressRanks]uint64
	Wrong            [stressRanks]uint32
	Reports          [stressRanks]uint32
}

func stressView(seg *sys.Segment, me int) (*stressMemory, *lock, accLock) {
	m := (*stressMemory)(unsafe.Pointer(&seg.Mem[0]))
	ranks := make([]*job.Rank, stressRanks)
	for i := range ranks {
		ranks[i] = &m.Ranks[i]
	}
	l := newLock(m.Lock[:], me, ranks)
	dead := func(r int) bool { return atom.Load32(&m.Gone)&(1<<r) != 0 }
	return m, l, accLock{word: &l.words.acc, me: uint32(me + 1), dead: dead}
}

// TestLockStressRank is one process of TestLockStress.
func TestLockStressRank(t *testing.T) {
	path := os.Getenv("GORMAPY_LOCK_STRESS")
	if path == "" {
		t.Skip("started by TestLockStress")
	}
	me, err := strconv.Atoi(os.Getenv("GORMAPY_LOCK_STRESS_RANK"))
	require.NoError(t, err)
	seg, err := sys.OpenSegmentPath(path)
	require.NoError(t, err)
	m, l, acc := stressView(seg, me)
	for atom.Load32(&m.Stop) == 0 {
		mode := lockMode(rand.IntN(2))
		if stressAcquire(m, l, me, mode) {
			if m.A != m.B && atom.Load32(&m.Gone) == 0 {
				m.Wrong[me]++
			}
			if mode == exclusive {
				n := m.A + 1
				m.A = n
				if rand.IntN(64) == 0 {
					atom.Yield()
				}
				m.B = n
				m.Own[me]++
			}
			l.release()
		}
		acc.lock()
		if m.AccA != m.AccB && atom.Load32(&m.Gone) == 0 {
			m.Wrong[me]++
		}
		n := m.AccA + 1
		m.AccA = n
		m.AccB = n
		m.OwnAcc[me]++
		acc.unlock()
	}
}

// stressAcquire waits as engine.wait does. It returns false after giving up, because
// a holder has died or, now and then, for no reason.
func stressAcquire(m *stressMemory, l *lock, me int, mode lockMode) bool {
	dead := func(i int) bool { return i != me && atom.Load32(&m.Gone)&(1<<i) != 0 }
	drawn := false
	advance := func() bool {
		drawn = drawn || l.begin(mode)
		return drawn && l.try()
	}
	r := &m.Ranks[me]
	for {
		atom.Add32(&r.Sleepers, 1)
		bell := atom.Load32(&r.Doorbell)
		got := advance()
		gaveUp := false
		if !got {
			if l.skip(dead) >= 0 {
				m.Reports[me]++
				gaveUp = true
			} else {
				atom.Wait(&r.Doorbell, bell, 50*time.Millisecond)
				gaveUp = rand.IntN(50) == 0
			}
		}
		atom.Add32(&r.Sleepers, ^uint32(0))
		if got || advance() {
			return true
		}
		if gaveUp {
			if drawn {
				l.leave()
			}
			return false
		}
	}
}

// progress returns once ranks 0 and 1 have taken the exclusive lock again.
func (m *stressMemory) progress(t *testing.T) {
	t.Helper()
	own := func() [2]uint64 { return [2]uint64{atom.Load64(&m.Own[0]), atom.Load64(&m.Own[1])} }
	before := own()
	require.Eventually(t, func() bool { now := own(); return now[0] > before[0] && now[1] > before[1] }, time.Minute, time.Millisecond)
}

// TestLockStress has processes take both locks of a target; the last of them is killed at
// any point.
func TestLockStress(t *testing.T) {
	for round := range 2 {
		seg, err := sys.NewSegment("lock-stress", int(unsafe.Sizeof(stressMemory{})))
		require.NoError(t, err)
		defer seg.Close()
		m, _, _ := stressView(seg, 0)
		cmds := make([]*exec.Cmd, stressRanks)
		for i := range cmds {
			c := exec.Command(os.Args[0], "-test.run=^TestLockStressRank$", "-test.timeout=4m")
			c.Env = append(os.Environ(), fmt.Sprintf("GORMAPY_LOCK_STRESS=/proc/%d/fd/%d", os.Getpid(), seg.FD),
				fmt.Sprintf("GORMAPY_LOCK_STRESS_RANK=%d", i))
			require.NoError(t, c.Start())
			defer c.Process.Kill() //nolint:errcheck // it has ended, if all went well
			cmds[i] = c
		}
		m.progress(t)
		time.Sleep(stressTime / 2)
		last := stressRanks - 1
		if round > 0 {
			require.NoError(t, cmds[last].Process.Kill())
			_ = cmds[last].Wait()
			atom.Store32(&m.Gone, 1<<last)
			for i := range m.Ranks {
				m.Ranks[i].Ring()
			}
		}
		time.Sleep(stressTime / 2)
		m.progress(t)
		atom.Store32(&m.Stop, 1)
		for i, c := range cmds {
			if round == 0 || i != last {
				require.NoError(t, c.Wait(), "rank %d", i)
			}
		}
		require.Zero(t, m.Wrong)
		lost := uint64(round) // updates in which a process was killed
		require.InDelta(t, m.A, m.Own[0]+m.Own[1]+m.Own[2], float64(lost))
		require.InDelta(t, m.AccA, m.OwnAcc[0]+m.OwnAcc[1]+m.OwnAcc[2], float64(lost))
		require.LessOrEqual(t, m.Reports[0]+m.Reports[1]+m.Reports[2], uint32(round))
		t.Logf("exclusive %v, accumulates %v, reports %v", m.Own, m.OwnAcc, m.Reports)
	}
}
