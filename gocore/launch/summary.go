package launch

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is the time and resources that a rank used.
type usage struct {
	begun, end time.Time
	resources  unix.Rusage // of the process and of those children that it waited for
}

func (u *usage) wall() time.Duration { return u.end.Sub(u.begun) }

func seconds(tv unix.Timeval) float64 { return float64(tv.Sec) + float64(tv.Usec)/1e6 }

// describeJob prints, for -v, what is about to be started.
func (l *launcher) describeJob() {
	for _, note := range l.opt.Notes {
		l.messages.print("mpiexec: " + note)
	}
	if text := l.binding.shared(len(l.tasks)); text != "" {
		l.messages.print("mpiexec: " + text)
	}
	l.messages.print(fmt.Sprintf("mpiexec: job %s of %s, guardian is process %d", l.seg.ID(), count(len(l.tasks), "rank"), l.guard.pid))
}

// describeStart prints that r was started.
func (l *launcher) describeStart(r *rank) {
	name := ""
	if len(l.opt.Programs) > 1 {
		name = " (" + l.tasks[r.number].title() + ")"
	}
	l.messages.print(fmt.Sprintf("mpiexec: rank %d%s is process %d, started after %.3f s, %s", r.number, name, r.pid,
		r.usage.begun.Sub(l.begun).Seconds(), l.binding.text(r.number)))
}

// describeEnd prints that r ended.
func (l *launcher) describeEnd(r *rank) {
	l.messages.print(fmt.Sprintf("mpiexec: rank %d (pid %d) %s after %.3f s", r.number, r.pid, endText(r.status), r.usage.wall().Seconds()))
}

// summary returns a table of all ranks, a line each.
func (l *launcher) summary() []string {
	lines := []string{
		fmt.Sprintf("summary of %s, %.3f s, status %d", count(len(l.ranks), "rank"), time.Since(l.begun).Seconds(), l.status),
		fmt.Sprintf("  rank  %-26s %9s %9s %9s %12s", "end", "wall s", "user s", "system s", "max RSS MiB"),
	}
	for _, r := range l.ranks {
		if !r.ended {
			lines = append(lines, fmt.Sprintf("  %4d  still there", r.number))
			continue
		}
		u := &r.usage
		lines = append(lines, fmt.Sprintf("  %4d  %-26s %9.3f %9.3f %9.3f %12.1f", r.number, shortEnd(r.status), u.wall().Seconds(),
			seconds(u.resources.Utime), seconds(u.resources.Stime), float64(u.resources.Maxrss)/1024))
	}
	return lines
}

// shortEnd is endText without the verb.
func shortEnd(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return signalText(ws.Signal())
	}
	return strings.TrimPrefix(endText(ws), "ended with ")
}
