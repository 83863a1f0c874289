package launch

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sentryName is argument 0 of the sentry.
const sentryName = "gormapy-sentry"

// catchAway subscribes to the signals that concern a job away. SIGHUP stays ignored if it was
// (nohup).
func catchAway() <-chan os.Signal {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(signals, unix.SIGHUP)
	}
	return signals
}

// sentry is a process in the process group of this one. It writes to a pipe the number of each
// signal that it gets: those were sent to the group.
type sentry struct {
	pid int

	mu   sync.Mutex
	last map[unix.Signal]time.Time
}

// startSentry starts a second copy of this program.
func startSentry() (*sentry, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make the sentry's pipe: %w", err)
	}
	defer unix.Close(p[1])
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(p[0])
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(null)
	s := &sentry{last: map[unix.Signal]time.Time{}}
	s.pid, err = syscall.ForkExec("/proc/self/exe", []string{sentryName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{uintptr(null), uintptr(p[1]), uintptr(null)},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		unix.Close(p[0])
		return nil, fmt.Errorf("start the sentry: %w", err)
	}
	go s.read(os.NewFile(uintptr(p[0]), "pipe"))
	return s, nil
}

func (s *sentry) read(from *os.File) {
	defer from.Close()
	var b [1]byte
	for {
		if n, err := from.Read(b[:]); n == 0 || err != nil {
			return
		}
		s.mu.Lock()
		s.last[unix.Signal(b[0])] = time.Now()
		s.mu.Unlock()
	}
}

// seen reports whether the sentry got a signal just now.
func (s *sentry) seen(sig unix.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last[sig]) < 2*sentryDelay
}

// stop ends the sentry.
func (s *sentry) stop() {
	_ = unix.Kill(s.pid, unix.SIGKILL)
	reap(s.pid)
}

// isSentry reports whether this process was started by startSentry.
func isSentry(args []string) bool { return len(args) == 1 && args[0] == sentryName }

// standSentry is the main function of the sentry. It ends with the process that started it.
func standSentry() {
	name := append([]byte("gormapy-sentry"), 0) // for ps; at most 15 bytes
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	for s := range catchAway() {
		if _, err := os.Stdout.Write([]byte{byte(s.(unix.Signal))}); err != nil {
			return
		}
	}
}
