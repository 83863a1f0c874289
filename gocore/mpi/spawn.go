package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// Spawn starts a job of its own: the root runs gormapy's mpiexec, which starts the processes on this host, reports
// their failures, and ends all of them if one fails. They meet the group that has spawned them as Connect meets
// Accept, in Init. The root keeps a pipe to their launcher: when it is closed, because the root has ended in whatever way, the
// launcher ends its job. Finalize of the root waits for the end of all that it has spawned.

// spawned are the jobs that this process has started.
type spawned struct {
	mu   sync.Mutex
	jobs []*spawnedJob
}

// spawnedJob is one of them.
type spawnedJob struct {
	launcher *exec.Cmd
	pipe     *os.File
	done     chan struct{} // closed when the launcher has ended
}

// These and the descriptor are known to package launch.
const (
	parentVariable        = "GORMAPY_JOB_PARENT"
	parentProcessVariable = "GORMAPY_JOB_PARENT_PROCESS"
)

// start starts a launcher.
func (s *spawned) start(port string, args, environ []string) (*spawnedJob, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	j := &spawnedJob{launcher: exec.Command(args[0], args[1:]...), pipe: ours, done: make(chan struct{})}
	c := j.launcher
	c.Env = append(environ, parentVariable+"="+port, fmt.Sprintf("%s=%d %d", parentProcessVariable, os.Getpid(), sys.StartTime(os.Getpid())))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.ExtraFiles = []*os.File{theirs}
	// A group of its own: Ctrl-C is for this process, and reaches the others by its end.
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	s.mu.Lock()
	s.jobs = append(s.jobs, j)
	s.mu.Unlock()
	go func() {
		_ = c.Wait()
		s.mu.Lock()
		for i, other := range s.jobs {
			if other == j {
				s.jobs = append(s.jobs[:i:i], s.jobs[i+1:]...)
			}
		}
		s.mu.Unlock()
		ours.Close()
		close(j.done)
		proc.me.Ring()
	}()
	return j, nil
}

// ended reports whether all these jobs have ended.
func (s *spawned) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs) == 0
}

// end ends those that have not.
func (s *spawned) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		j.pipe.Close()
	}
}

// CommSpawn begins to spawn n processes. At the root, args is the command line of mpiexec that starts them, and environ their
// environment: strings that end with a NUL. A root that can't give them passes n = 0, so that the others don't wait.
func CommSpawn(h int64, root, n int, args, environ string) (req int64, code Code) {
	defer Contain(&code)
	return connect("Spawn", h, root, func(t *talk) *errs.Error { return spawn(t, n, fields(args), fields(environ)) })
}

// fields returns strings that each end with a NUL.
func fields(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
}

// spawn starts a job and waits until it connects.
func spawn(t *talk, n int, args, environ []string) *errs.Error {
	if n == 0 {
		return errs.New(errs.Spawn, "Spawn: the root has given no processes to start")
	}
	port, e := newPort()
	if e != nil {
		return e
	}
	defer ports.close(port)
	j, err := proc.spawned.start(port, args, environ)
	if err != nil {
		return errs.New(errs.Spawn, "Spawn: %s can't be started: %v", args[0], err)
	}
	accepted := make(chan *errs.Error, 1)
	go func() { accepted <- t.accept(port) }()
	select {
	case e = <-accepted:
		if e != nil {
			j.pipe.Close()
		}
		return e
	case <-j.done:
	}
	ports.close(port)
	if e = <-accepted; e == nil {
		return nil // they have connected, and ended since
	}
	return errs.New(errs.Spawn, "Spawn: %s (their messages say why)", howNotSpawned(n, j.launcher.ProcessState))
}

func howNotSpawned(n int, s *os.ProcessState) string {
	what := fmt.Sprintf("the %d processes ended before they had initialised MPI", n)
	if n == 1 {
		what = "the process ended before it had initialised MPI"
	}
	if s != nil && s.ExitCode() != 0 {
		what += fmt.Sprintf(", with exit status %d", s.ExitCode())
	}
	return what
}

// meetParent connects this job to the processes that have spawned it.
func (n *process) meetParent(port string) Code {
	c, e := getComm(CommWorld)
	if e != nil {
		return CodeOf(e)
	}
	o := newConnecting("Init", c, 0, func(t *talk) *errs.Error { return t.connect(port) })
	why := &engine.Reason{Call: job.CallCommCreate, Peer: -2, Tag: -1, Info: "the processes that have spawned this one"}
	err := engine.ErrInterrupted
	for errors.Is(err, engine.ErrInterrupted) {
		err = n.eng.Wait(why, o.Advance, o.Check)
	}
	if err != nil {
		return codeOfErr(err)
	}
	if n.parent = o.made; o.err != nil {
		return CodeOf(o.err)
	}
	return 0
}

// CommParent returns the intercommunicator with the processes that have spawned this one; CommNull if there are none, or it
// has been freed.
func CommParent() int64 {
	if ready() != nil || comms.get(proc.parent) == nil {
		return CommNull
	}
	return proc.parent
}
