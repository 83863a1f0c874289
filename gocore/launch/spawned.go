package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// A process that spawns a job (MPI_Comm_spawn) starts a launcher for it, which differs in this: it takes no other
// engine, its ranks learn the port at which they meet their parents, and it ends the job when its descriptor parentFD
// is at its end, because then the process that has started it has ended, or will not wait for the job any more.

// parentVariable has the name of the port. Ranks don't get it.
const parentVariable = "GORMAPY_JOB_PARENT"

const parentFD = 3

// endWithParent ends the job with the process that has spawned it.
func (l *launcher) endWithParent() {
	unix.CloseOnExec(parentFD)
	pipe := os.NewFile(parentFD, "parent")
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
