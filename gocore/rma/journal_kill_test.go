package rma

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/sys"
)

// accMemory is what two processes share in the test below: an accumulate lock
// with its journal, and elements that no store of the processor writes whole.
type accMemory struct {
	word    uint32
	ready   uint32
	journal journal
	_       [4]byte // misaligns the elements, so that pieces of a copy end inside them
	data    [accElements * 16]byte
}

const accElements = 1000

// window returns a window with the parts that combining elements of the memory uses.
func (m *accMemory) window(me int, dead func(int) bool) (*Win, location) {
	d := &struct {
		Desc
		targets [2]Target
	}{}
	d.Size = 1
	w := &Win{Desc: &d.Desc, journals: []*journal{&m.journal}}
	w.Desc.Target(0).Base = unsafe.Pointer(&m.data)
	w.Desc.Target(0).Bytes = int64(len(m.data))
	w.acc = []accLock{{word: &m.word, me: uint32(me + 1), dead: dead, redo: func() { w.redo(0) }}}
	return w, location{direct: true, addr: unsafe.Pointer(&m.data)}
}

// adder returns a function that adds 1 to both parts of every element. The previous
// values go to old unless it is nil.
func (m *accMemory) adder(w *Win, to location, old []complex128) func() *errs.Error {
	ones := make([]complex128, accElements)
	for i := range ones {
		ones[i] = 1 + 1i
	}
	runs := make([]fabric.Run, accElements/2) // many, so that writing takes long enough to be killed in
	for i := range runs {
		runs[i] = fabric.Run{Addr: uint64(32 * i), N: 32}
	}
	a := update{f: op.Sum, kind: dtype.Complex128, size: 16, in: unsafe.Pointer(&ones[0]), out: unsafe.Pointer(unsafe.SliceData(old))}
	return func() *errs.Error { return w.combine(to, runs, a, nil) }
}

const accEnv = "GORMAPY_TEST_ACCUMULATE"

// TestKilledInAnAccumulate checks that an origin that is killed at any moment leaves
// whole elements, and that a waiter gets the lock. The origin's batch was applied as a
// whole or not at all.
func TestKilledInAnAccumulate(t *testing.T) {
	size := int(unsafe.Sizeof(accMemory{}))
	if path := os.Getenv(accEnv); path != "" {
		seg, err := sys.OpenSegmentPath(path)
		require.NoError(t, err)
		m := (*accMemory)(unsafe.Pointer(&seg.Mem[0]))
		w, to := m.window(1, func(int) bool { return false })
		for add := m.adder(w, to, nil); ; m.ready = 1 {
			require.Nil(t, add())
		}
	}
	seg, err := sys.NewSegment("test", size)
	require.NoError(t, err)
	defer seg.Close()
	m := (*accMemory)(unsafe.Pointer(&seg.Mem[0]))
	kills, held, full := 50, 0, 0
	if testing.Short() {
		kills = 10
	}
	r := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	for range kills {
		m.ready = 0
		child := exec.Command(os.Args[0], "-test.run=^TestKilledInAnAccumulate$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=/proc/%d/fd/%d", accEnv, os.Getpid(), seg.FD))
		require.NoError(t, child.Start())
		for until := time.Now().Add(20 * time.Second); *(*uint32)(unsafe.Pointer(&m.ready)) == 0; {
			require.True(t, time.Now().Before(until), "the child does nothing")
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		if m.word != 0 {
			held++
		}
		if m.journal.state != journalEmpty {
			full++
		}
		w, to := m.window(0, func(rank int) bool { return rank == 1 })
		old := make([]complex128, accElements)
		require.Nil(t, m.adder(w, to, old)())
		for i, v := range old {
			require.Equal(t, real(v), imag(v), "element %d is torn", i)
			require.Equal(t, old[0], v, "element %d is of another batch", i)
		}
		require.Zero(t, m.word)
		require.Equal(t, journalEmpty, m.journal.state)
	}
	t.Logf("of %d kills, %d left the lock held and %d the journal full", kills, held, full)
}

// TestCompletedWithoutAnAccumulate checks that the writes that a dead origin had begun
// are completed soon after its death is known, not only by the next accumulate.
func TestCompletedWithoutAnAccumulate(t *testing.T) {
	m := new(accMemory)
	w, _ := m.window(0, func(rank int) bool { return rank == 1 })
	w.Size, w.World = 2, []int{5, 9}
	all := &RMA{wins: map[uint32]*Win{1: w}}
	m.word, m.journal.state = 2, journalFull
	m.journal.setRuns([]fabric.Run{{Addr: 16, N: 16}, {Addr: 64, N: 3}, {Addr: uint64(len(m.data)) - 1, N: 2}})
	for i := range 21 {
		m.journal.data[i] = byte(i + 1)
	}
	all.complete(5)
	require.EqualValues(t, 2, m.word, "it is held by another")
	all.complete(9)
	require.Zero(t, m.word)
	require.Equal(t, journalEmpty, m.journal.state)
	var want [len(m.data)]byte
	copy(want[16:32], m.journal.data[:16])
	copy(want[64:67], m.journal.data[16:])
	require.Equal(t, want, m.data, "and nothing outside of the window")
}
