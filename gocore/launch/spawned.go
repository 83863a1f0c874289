package launch

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// A process that spawns a job (MPI_Comm_spawn) starts a launcher for it, which differs in this: it takes no other
// engine, its ranks learn the port at which they meet their parents, and it ends the job when its descriptor parentFD
// is at its end, because then the process that has started it has ended, or will not wait for the job any more. It goes on without
// failed ranks if the job of that process does.

// parentVariable has the name of the port. Ranks don't get it.
const parentVariable = "GORMAPY_JOB_PARENT"

const parentFD = 3

// parentProcessVariable has the pid and the start time of that process: processes that it has forked keep the pipe open.
const parentProcessVariable = "GORMAPY_JOB_PARENT_PROCESS"

// recoveryVariable tells the ranks, for the launchers of what they spawn, that the job goes on when one fails.
const recoveryVariable = "GORMAPY_JOB_RECOVERY"

// recoveryVariables is recoveryVariable for the environment of a rank.
func (o *Options) recoveryVariables() []string {
	if !o.Recovery {
		return nil
	}
	return []string{recoveryVariable + "=1"}
}

// parentEvery is how often the launcher looks whether the process lives.
const parentEvery = 100 * time.Millisecond

// endWithParent ends the job with the process that has spawned it.
func (l *launcher) endWithParent() {
	unix.CloseOnExec(parentFD)
	pipe := os.NewFile(parentFD, "parent")
	var pid int
	var started uint64
	if _, err := fmt.Sscan(os.Getenv(parentProcessVariable), &pid, &started); err == nil && started != 0 {
		go func() {
			for sys.Look(pid, started) != sys.Ended {
				time.Sleep(parentEvery)
			}
			l.signals <- unix.SIGTERM
		}()
	}
	go func() {
		var b [1]byte
		for {
			if _, err := pipe.Read(b[:]); err != nil {
				l.signals <- unix.SIGTERM
				return
			}
		}
	}()
}
