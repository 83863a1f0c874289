package launch

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

const (
	stackDelay = 300 * time.Millisecond // for the ranks to print their stacks
	// stackLimit bounds the wait for those that have printed nothing yet, on a busy machine.
	stackLimit = 3 * time.Second
)

// stackRequest is what a rank that was asked for its stacks had written before.
type stackRequest struct {
	rank *rank
	had  int64 // bytes to standard error
}

// askForStacks lets the ranks print their stacks.
func (l *launcher) askForStacks() {
	l.stacksBy = time.Now().Add(stackLimit)
	for i, r := range l.ranks {
		r.label()
		rk := l.record(i)
		pid := rk.PID()
		if atomic.LoadUint32(&rk.Flags)&job.FlagStacks == 0 || pid == 0 {
			continue
		}
		if n := len(r.streams); n > 0 {
			l.stacks = append(l.stacks, stackRequest{r, r.streams[n-1].seen.Load()})
		}
		sys.Signal(pid, func(pid int) bool { return sys.Look(pid, rk.StartTime) == sys.Living }, unix.Signal(job.StackSignal))
	}
}

// awaitsStacks reports whether a rank may still print its stacks.
func (l *launcher) awaitsStacks(now time.Time) bool {
	if now.After(l.stacksBy) {
		return false
	}
	for _, q := range l.stacks {
		if !q.rank.ended && q.rank.streams[len(q.rank.streams)-1].seen.Load() == q.had {
			return true
		}
	}
	return false
}
