package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// finish reports after the end of the engine, and returns the job's exit status.
func (a *away) finish(ws unix.WaitStatus, signals <-chan os.Signal) int {
	for late := time.After(lateDelay); ; {
		select {
		case e := <-a.home.Events():
			a.onEvent(e)
			continue
		case s := <-signals: // which the engine may have got, and ended, before this process ran
			a.onSignal(s.(unix.Signal))
			continue
		case <-late:
		}
		break
	}
	status := exitStatus(ws)
	if a.lost != nil && a.status == 0 && (status != 0 || a.urged) {
		how := "was killed, or has ended without calling MPI_Finalize"
		if sig := signalOf(status, a.engine.name); sig != 0 && !a.urged {
			how, status = endText(unix.WaitStatus(sig)), 128+int(sig)
		}
		if a.urged {
			status = 1
		}
		a.fail(a.lost, status, how)
	}
	if a.status != 0 {
		status = a.status
	}
	return a.report(status)
}

// signalOf returns the signal that a rank was killed by, from the exit status of an engine; 0
// if it was none. Hydra returns the wait status.
func signalOf(status int, engine string) unix.Signal {
	switch {
	case status > 128 && status < 128+65:
		return unix.Signal(status - 128)
	case engine == "mpiexec.hydra" && status > 0 && status < 65:
		return unix.Signal(status)
	}
	return 0
}
