package mpi

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/job"
)

// # Jobs whose ranks end themselves
//
// Ranks that joined by a rendezvous have nobody who ends them when one of them fails. So
// each rank ends itself when it learns that a rank has aborted, or that one has ended
// without finalizing, as mpiexec ends the ranks of its jobs. The ranks of a process manager end
// themselves only when it has ended without ending them.

// eventDelay is the time in which the output of the rank that failed, and a better reason than
// a lost connection, may come.
const eventDelay = 300 * time.Millisecond

// onEvent ends this process because of what has happened to the job.
func (n *process) onEvent(e store.Event) {
	if atomic.LoadUint32(&n.me.State) == job.StateFinalized {
		return
	}
	code := 1
	if e.Kind == store.Aborted {
		if code = e.Code & 0xff; code == 0 {
			code = 1
		}
		n.seg.Abort(max(e.Rank, 0), code)
	}
	time.AfterFunc(eventDelay, func() {
		if atomic.LoadUint32(&n.me.State) == job.StateFinalized {
			return
		}
		if _, _, told := n.seg.Aborted(); !told { // else that rank, or one of its node, has told
			fmt.Fprintf(os.Stderr, "gormapy: rank %d ends: %s\n", n.rank, e.Why)
		}
		os.Exit(code)
	})
}
