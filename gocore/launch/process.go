package launch

import (
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/boot/pmi"
)

// pmiFD is the rank's end of its connection to the PMI-1 server. Shell scripts
// use the descriptors up to 9, which they can name by one digit.
const pmiFD = 10

// rank is a process that the launcher started, and the leader of a process
// group.
type rank struct {
	number  int
	pid     int
	ended   bool
	status  unix.WaitStatus
	reaped  bool
	streams []*stream
	usage   usage
	pmi     pmi.Conduct // its state at its end, if it is an MPICH program
}

// signal sends sig to the process group of r, or to the process alone if it has moved
// to another group. It does nothing if r has ended.
func (r *rank) signal(sig unix.Signal) {
	if !r.ended && unix.Kill(-r.pid, sig) == unix.ESRCH {
		_ = unix.Kill(r.pid, sig)
	}
}

// reap reaps the process if it has ended, so that the kernel may reuse its pid.
func (r *rank) reap() {
	if r.ended && !r.reaped {
		reap(r.pid)
		r.reaped = true
	}
}

// failed reports whether r has ended as no rank should. That ends the job, unless it recovers.
func (r *rank) failed() bool {
	return exitStatus(r.status) != 0 || r.pmi.Aborted || r.unfinished() != ""
}

// code returns the exit code of a job whose rank r has failed, as of an Abort.
func (r *rank) code() int {
	switch status := exitStatus(r.status); {
	case r.pmi.Aborted && r.pmi.Code != 0:
		return r.pmi.Code
	case status != 0:
		return status
	}
	return 1
}

// exitStatus returns the exit status that a shell reports for a wait status.
func exitStatus(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// label prefixes what r writes to standard error from now on with its rank.
func (r *rank) label() {
	if len(r.streams) > 0 {
		r.streams[len(r.streams)-1].label()
	}
}

// starter starts the ranks of a job.
type starter struct {
	*launcher
	null  int // descriptor of /dev/null
	stdin int // rank 0's standard input
}

// outlets are the standard output and error of a rank.
type outlets struct {
	ends    [2]int    // the descriptors that the rank inherits
	streams []*stream // the launcher's ends, which don't run yet
}

// connect makes the outlets of a rank.
func (s *starter) connect(number int) (p *outlets, err error) {
	p = &outlets{ends: [2]int{-1, -1}}
	defer func() {
		if err != nil {
			p.undo()
			p.close()
		}
	}()
	sinks := [2]*sink{s.stdout, s.stderr}
	if s.outputs != nil {
		files, paths, err := s.outputs.take(number)
		if err != nil || !s.opt.Tag {
			p.ends = files
			return p, err
		}
		for i, fd := range files {
			sinks[i] = newSink(fd, s.onUnwritable(paths[i]))
		}
	}
	for i := range p.ends {
		if i == 1 && s.opt.Merge {
			p.ends[1], err = unix.FcntlInt(uintptr(p.ends[0]), unix.F_DUPFD_CLOEXEC, 3)
			return p, err
		}
		in, end, err := pipe()
		if err != nil {
			return p, err
		}
		p.ends[i] = end
		p.streams = append(p.streams, newStream(in, sinks[i], number, s.opt.Tag))
	}
	return p, nil
}

// close closes the launcher's copies of the rank's descriptors.
func (p *outlets) close() {
	for _, fd := range p.ends {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// undo closes streams that will not run.
func (p *outlets) undo() {
	for _, st := range p.streams {
		st.in.Close()
	}
}

// start starts rank number. It must be called by the main thread: the kernel
// kills the rank when the thread that started it ends.
func (s *starter) start(number int) (*rank, error) {
	r := &rank{number: number}
	t := s.tasks[number]
	p, err := s.connect(number)
	if err != nil {
		return nil, startError(t.Name, number, err)
	}
	defer p.close()
	client, err := s.pmi.Connect(number)
	if err == nil {
		defer unix.Close(client)
		r.usage.begun = time.Now()
		err = s.binding.with(number, func() error { return s.fork(r, t, p.ends, client) })
	}
	if err != nil {
		p.undo()
		return nil, startError(t.Name, number, err)
	}
	r.streams = p.streams
	for _, st := range r.streams {
		go st.run()
	}
	return r, nil
}

// fork starts the process of r.
func (s *starter) fork(r *rank, t *task, ends [2]int, client int) (err error) {
	stdin := s.null
	if r.number == 0 {
		stdin = s.stdin
	}
	files := []uintptr{uintptr(stdin), uintptr(ends[0]), uintptr(ends[1])}
	for len(files) < pmiFD {
		files = append(files, ^uintptr(0))
	}
	// ForkExec returns once the program runs, or with the error of exec.
	r.pid, err = syscall.ForkExec(t.path, append([]string{t.Name}, t.Args...), &syscall.ProcAttr{
		Dir:   t.Dir,
		Env:   rankEnviron(t.env, s.segment(r.number), r.number, t.number, slices.Concat(s.recording.variables(r.number), s.checking.variables(r.number), s.opt.recoveryVariables())...),
		Files: append(files, uintptr(client)),
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	return err
}

// pipe makes a pipe whose reading end is non-blocking, for Go's poller, and whose
// writing end is blocking, as programs expect of a standard output.
func pipe() (read, write int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return -1, -1, os.NewSyscallError("fcntl", err)
	}
	return p[0], p[1], nil
}
