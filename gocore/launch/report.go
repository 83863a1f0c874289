package launch

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gormapy/gocore/job"
)

// endText returns how a process ended, as a clause.
func endText(ws unix.WaitStatus) string { return job.EndText(ws) }

func signalText(sig unix.Signal) string { return job.SignalText(sig) }

// stoppingText returns a clause about the ranks that still run, which are stopped.
func stoppingText(live, total int) string {
	switch {
	case live == 0:
		return ""
	case live == total:
		return "; stopping " + count(total, "rank")
	case live == 1:
		return "; stopping the other rank"
	}
	return fmt.Sprintf("; stopping the other %d ranks", live)
}

// goingOnText returns a clause about the ranks that still run, which go on.
func goingOnText(live int) string {
	switch live {
	case 0:
		return ""
	case 1:
		return "; the other rank goes on"
	}
	return fmt.Sprintf("; the other %d ranks go on", live)
}

// rankList returns "rank 3" or "ranks 0, 1, 5".
func rankList(ranks []int) string {
	text := "rank"
	if len(ranks) != 1 {
		text = "ranks"
	}
	for i, r := range ranks {
		if i > 0 {
			text += ","
		}
		if i == 8 {
			return fmt.Sprintf("%s … (%d in all)", text, len(ranks))
		}
		text += fmt.Sprintf(" %d", r)
	}
	return text
}

// abortStatus returns the exit status for the code of an Abort: the low byte, as of
// exit(3), but never 0 for an error code.
func abortStatus(code int) int {
	if code != 0 && code&0xff == 0 {
		return 1
	}
	return code & 0xff
}
