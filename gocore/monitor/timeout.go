package monitor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// StatusTimeout is the exit status of a job that has timed out, as timeout(1) has it.
const StatusTimeout = 124

const (
	// turn is how much later each further rank of a node looks whether the ones before it
	// have spoken at the time-out: they may be stopped.
	turn = 500 * time.Millisecond
	// stackTime is for the ranks to print their stacks, and for other nodes, which begin a
	// little later, to do the same.
	stackTime = 1500 * time.Millisecond
	// stackDelay is when a rank begins to do so, and stackTurn how much later the next one
	// does: their lines would mix.
	stackDelay = 100 * time.Millisecond
	stackTurn  = 40 * time.Millisecond
)

// alone starts the time-out of a job without a home.
func (m *Monitor) alone() {
	if m.o.Timeout <= 0 {
		return
	}
	at := slices.Index(m.seg.RanksOf(m.seg.Node()), m.o.Rank)
	time.AfterFunc(m.o.Timeout+time.Duration(at)*turn, m.timeOut)
	time.AfterFunc(m.o.Timeout+stackDelay+stackTurn*time.Duration(min(m.o.Rank, 20)), func() {
		// After what the first rank that is not stopped says.
		for end := time.Now().Add(time.Duration(len(m.seg.Ranks)) * turn); !m.seg.HasTimedOut() && time.Now().Before(end); {
			time.Sleep(stackDelay)
		}
		m.printStacks()
	})
}

// timeOut speaks for this node, unless another rank of it has.
func (m *Monitor) timeOut() {
	if _, _, aborted := m.seg.Aborted(); aborted || m.ending.Load() || !m.seg.ClaimTimeout() {
		return
	}
	ranks := m.seg.RanksOf(m.seg.Node())
	of := "the ranks"
	if m.seg.Nodes() > 1 {
		of = "the ranks of " + m.host
	}
	var text strings.Builder
	fmt.Fprintf(&text, "gormapy: time-out after %v; what %s do:\n", m.o.Timeout, of)
	for _, r := range ranks {
		for _, line := range m.seg.Describe(r) {
			text.WriteString("gormapy:   " + line + "\n")
		}
	}
	m.say(text.String())
	time.Sleep(stackTime)
	if m.o.Unmanaged {
		m.kill(ranks) // nobody else does
	} else {
		time.AfterFunc(endTime/2, func() { m.kill(ranks) })
	}
	m.end(StatusTimeout)
}

// printStacks prints the stacks of this process's threads, if its program can.
func (m *Monitor) printStacks() {
	if _, _, aborted := m.seg.Aborted(); !aborted && atomic.LoadUint32(&m.seg.Ranks[m.o.Rank].Flags)&job.FlagStacks != 0 {
		m.say(fmt.Sprintf("rank %d (%s):\n", m.o.Rank, m.host))
		_ = unix.Kill(os.Getpid(), unix.Signal(job.StackSignal))
	}
}

// is returns a function that reports whether a pid is still that of a rank of this node.
func (m *Monitor) is(rank int) func(pid int) bool {
	return func(pid int) bool { return sys.Look(pid, m.seg.Ranks[rank].StartTime) == sys.Living }
}

// kill ends the other ranks of this node that are stopped, and so don't end by themselves: not
// every launcher does.
func (m *Monitor) kill(ranks []int) {
	for _, r := range ranks {
		if pid := m.seg.Ranks[r].PID(); r != m.o.Rank && pid != 0 && sys.Stopped(pid) {
			sys.Signal(pid, m.is(r), unix.SIGKILL)
		}
	}
}
