package launch

import (
	"fmt"
	"time"

	"gormapy/gocore/boot/pmi"
)

// stuckDelay is how long a rank that others wait for in vain may take to end. Its exit
// status is a better explanation than that others wait for it.
const stuckDelay = 200 * time.Millisecond

// onPMI handles a report of the PMI-1 server.
func (l *launcher) onPMI(report pmi.Report) {
	switch {
	case report.Kind == pmi.Refused:
		l.reportRefusal(report)
	case l.stopping:
	case report.Kind == pmi.Aborted:
		l.segment(report.Rank).Abort(report.Rank, report.Code)
		if caller, code, ok := l.aborted(); ok {
			l.onAbort(caller, code)
		}
	default:
		l.stuckAt = time.Now().Add(stuckDelay)
	}
}

// reportRefusals prints why the last requests were refused.
func (l *launcher) reportRefusals() {
	for {
		select {
		case report := <-l.pmi.Reports():
			if report.Kind == pmi.Refused {
				l.reportRefusal(report)
			}
		default:
			return
		}
	}
}

func (l *launcher) reportRefusal(report pmi.Report) {
	l.messages.print(fmt.Sprintf("mpiexec: rank %d %s", report.Rank, report.Text))
}

// onStuck ends a job whose MPICH programs would wait for ever.
func (l *launcher) onStuck() {
	l.stuckAt = time.Time{}
	if stuck, is := l.pmi.Stuck(); is {
		r := l.ranks[stuck.Rank]
		l.segment(r.number).Abort(r.number, 1)
		l.fail(r, 1, fmt.Sprintf("mpiexec: rank %d (pid %d) %s", r.number, r.pid, stuck.Text))
	}
}

// unfinished returns a clause about an MPICH program that ended before MPI_Finalize,
// "" for other ranks. Its peers wait for it and don't notice its end.
func (r *rank) unfinished() string {
	if r.pmi.Joined && !r.pmi.Finalized && !r.pmi.Aborted && exitStatus(r.status) == 0 {
		return " without calling MPI_Finalize"
	}
	return ""
}

// describe returns what rank i does, as lines of text.
func (l *launcher) describe(i int) []string {
	how := l.pmi.Conduct(i)
	if !how.Joined || l.ranks[i].ended || l.record(i).PID() != 0 {
		return l.segment(i).Describe(i)
	}
	line := fmt.Sprintf("rank %d (pid %d): an MPICH program, ", i, l.ranks[i].pid)
	without := func(is func(pmi.Conduct) bool) (out []int) {
		for k := range l.ranks {
			if !is(l.pmi.Conduct(k)) {
				out = append(out, k)
			}
		}
		return out
	}
	absent := without(func(c pmi.Conduct) bool { return c.Joined })
	switch {
	case how.Finalized:
		line += "finalized"
	case how.Waits:
		line += "in a PMI barrier without " + rankList(without(func(c pmi.Conduct) bool { return c.Waits }))
	case len(absent) > 0:
		line += "in MPI_Init, to which " + rankList(absent) + " did not come"
	default:
		line += "running (it does not tell what it waits for)"
	}
	return []string{line}
}
