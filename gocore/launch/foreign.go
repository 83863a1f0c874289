package launch

import (
	"fmt"
	"time"

	"gormapy/gocore/boot/pmi"
)

// stuckDelay is how long a rank that others wait for in vain may take to end:
// its exit status says more than that it was waited for.
const stuckDelay = 200 * time.Millisecond

// onPMI acts on what the server of the MPICH programs among the ranks reports.
func (l *launcher) onPMI(report pmi.Report) {
	switch {
	case report.Kind == pmi.Refused:
		l.sayRefusal(report)
	case l.stopping:
	case report.Kind == pmi.Aborted:
		l.seg.Abort(report.Rank, report.Code)
		if who, code, ok := l.seg.Aborted(); ok {
			l.onAbort(who, code)
		}
	default:
		l.stuckAt = time.Now().Add(stuckDelay)
	}
}

// sayRefusals says what was wrong with what the last ranks asked for.
func (l *launcher) sayRefusals() {
	for {
		select {
		case report := <-l.pmi.Reports():
			if report.Kind == pmi.Refused {
				l.sayRefusal(report)
			}
		default:
			return
		}
	}
}

func (l *launcher) sayRefusal(report pmi.Report) {
	l.messages.say(fmt.Sprintf("mpiexec: rank %d %s", report.Rank, report.Text))
}

// onStuck ends a job that would wait for ever.
func (l *launcher) onStuck() {
	l.stuckAt = time.Time{}
	if stuck, is := l.pmi.Stuck(); is {
		r := l.ranks[stuck.Rank]
		l.seg.Abort(r.number, 1)
		l.fail(r, 1, fmt.Sprintf("mpiexec: rank %d (pid %d) %s", r.number, r.pid, stuck.Text))
	}
}

// unfinished says what an MPICH program that ended should have done: its peers
// wait for it, and don't notice its end.
func (r *rank) unfinished() string {
	if r.pmi.Joined && !r.pmi.Finalized && !r.pmi.Aborted && exitStatus(r.status) == 0 {
		return " without calling MPI_Finalize"
	}
	return ""
}

// describe tells what rank i does.
func (l *launcher) describe(i int) []string {
	how := l.pmi.Conduct(i)
	if !how.Joined || l.ranks[i].ended {
		return l.seg.Describe(i)
	}
	line := fmt.Sprintf("rank %d (pid %d): an MPICH program, ", i, l.ranks[i].pid)
	lacking := func(is func(pmi.Conduct) bool) (out []int) {
		for k := range l.ranks {
			if !is(l.pmi.Conduct(k)) {
				out = append(out, k)
			}
		}
		return out
	}
	absent := lacking(func(c pmi.Conduct) bool { return c.Joined })
	switch {
	case how.Finalized:
		line += "finalized"
	case how.Waits:
		line += "in a PMI barrier without " + rankList(lacking(func(c pmi.Conduct) bool { return c.Waits }))
	case len(absent) > 0:
		line += "in MPI_Init, to which " + rankList(absent) + " did not come"
	default:
		line += "running (it does not tell what it waits for)"
	}
	return []string{line}
}
