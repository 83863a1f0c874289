package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// guardianName is argument 0 of the guardian. It has nothing in common with the
// launcher's, so that killing all processes of that name spares the guardian.
const guardianName = "gormapy-guardian"

// # Protocol of the guardian
//
// The launcher writes lines to a pipe, each the number of a process group and the start
// time of its leader. It kills the guardian at the end of the job. If the pipe closes
// before, the launcher is dead, and the guardian kills the groups. While the launcher
// lives, its zombies keep the kernel from reusing the numbers; later they may be reused,
// perhaps before the guardian has read them. So it has a pidfd of each group's leader,
// unless the process that has the number has started at another time.

// guardian is the launcher's end of the pipe, and the process.
type guardian struct {
	id   string
	pid  int // 0 when there is none
	pipe int
}

// startGuardian starts a second copy of this program. It returns as soon as the process
// exists: from then on it will notice that the pipe is closed.
func startGuardian(id string) (*guardian, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make the guardian's pipe: %w", err)
	}
	defer unix.Close(p[0])
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(p[1])
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(null)
	// No environment: it must not be marked as a process of this or an outer job. A
	// session of its own: signals to the launcher's process group or from its terminal
	// do not reach it.
	pid, err := syscall.ForkExec("/proc/self/exe", []string{guardianName, id}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: []uintptr{uintptr(p[0]), uintptr(null), uintptr(null)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(p[1])
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	return &guardian{id: id, pid: pid, pipe: p[1]}, nil
}

// add sends the guardian the process group of a leader that has not been reaped. A dead
// guardian is not an error here: the reaper reports it.
func (g *guardian) add(leader int) {
	if g.pid != 0 {
		_, _ = unix.Write(g.pipe, fmt.Appendf(nil, "%d %d\n", leader, sys.StartTime(leader)))
	}
}

// reaped records that the guardian died and was reaped.
func (g *guardian) reaped() {
	unix.Close(g.pipe)
	g.pid = 0
}

// stop ends the guardian. It must come after the end of the job.
func (g *guardian) stop() {
	if g.pid == 0 {
		return
	}
	_ = unix.Kill(g.pid, unix.SIGKILL)
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(g.pid, &ws, 0, nil); err != unix.EINTR {
			break
		}
	}
	g.reaped()
}

// IsGuardian reports whether this process was started by startGuardian.
func IsGuardian(args []string) bool { return len(args) == 2 && args[0] == guardianName }

// Guard is the main function of the guardian of job id: it waits for the launcher's
// death and kills the remaining processes of the job.
func Guard(id string) {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	name := append([]byte("gormapy-guard"), 0) // for ps; at most 15 bytes
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)

	for _, group := range readGroups(os.Stdin) {
		group.Kill()
	}
	sweep(marked(id))
}

// readGroups returns the groups that are read from r, once all have been.
func readGroups(r io.Reader) (groups []*sys.Group) {
	for in := bufio.NewScanner(r); in.Scan(); {
		var leader int
		var started uint64
		if _, err := fmt.Sscan(in.Text(), &leader, &started); err == nil && leader > 1 {
			groups = append(groups, sys.OpenGroup(leader, started))
		}
	}
	return groups
}
