package launch

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
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
// The launcher writes lines to a pipe, each the number of a process group. It kills the
// guardian at the end of the job. If the pipe closes before, the launcher is dead, and
// the guardian kills the groups. While the launcher lives, its zombies keep the kernel
// from reusing the numbers; later they may be reused, so the guardian has a pidfd of
// each group's leader.

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

// add sends the guardian a process group. A dead guardian is not an error here: the
// reaper reports it.
func (g *guardian) add(group int) {
	if g.pid != 0 {
		_, _ = unix.Write(g.pipe, append(strconv.AppendInt(nil, int64(group), 10), '\n'))
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

	var groups []*sys.Group
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if leader, err := strconv.Atoi(in.Text()); err == nil && leader > 1 {
			groups = append(groups, sys.OpenGroup(leader))
		}
	}
	for _, group := range groups {
		group.Kill()
	}
	sweep(marked(id))
}
