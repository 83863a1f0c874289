package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"gormapy/gocore/boot/pmi"
	"gormapy/gocore/job"
)

// pmiFD is the rank's end of its connection to the PMI-1 server. Shell scripts
// use the descriptors up to 9, which they can name by one digit.
const pmiFD = 10

// rank is a process that the launcher started, and the leader of a process
// group.
type rank struct {
	number int
	pid    int
	ended  bool
	status unix.WaitStatus
	// rest says that the group had other members when the leader was reaped;
	// without any, its number may be given to somebody else.
	rest    bool
	streams []*stream
	pmi     pmi.Conduct // what it said until it ended, if it is an MPICH program
}

// signal sends sig to the group of r while that is certain to be its group; to
// the process alone if it moved to another.
func (r *rank) signal(sig unix.Signal) {
	if !r.ended && unix.Kill(-r.pid, sig) == unix.ESRCH {
		_ = unix.Kill(r.pid, sig)
	}
}

// failed tells whether the end of r ends the job.
func (r *rank) failed() bool {
	return exitStatus(r.status) != 0 || r.pmi.Aborted || r.unfinished() != ""
}

// code is what the job of a failed rank ends with, as of an Abort.
func (r *rank) code() int {
	switch status := exitStatus(r.status); {
	case r.pmi.Aborted && r.pmi.Code != 0:
		return r.pmi.Code
	case status != 0:
		return status
	}
	return 1
}

// exitStatus is what a shell makes of a wait status.
func exitStatus(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// starter is what all ranks of a job have in common.
type starter struct {
	opt            *Options
	path           string
	env            []string
	seg            *job.Segment
	pmi            *pmi.Server
	stdout, stderr *sink
	null           int // descriptor of /dev/null
	stdin          int // what rank 0 reads
}

// start starts rank number. It must be called by the main thread: the kernel
// kills the rank when the thread that started it ends.
func (s *starter) start(number int) (*rank, error) {
	r := &rank{number: number}
	out, outEnd, err := pipe()
	if err != nil {
		return nil, startError(s.opt.Program, number, err)
	}
	defer unix.Close(outEnd)
	fds, errEnd := []int{out}, outEnd
	sinks := []*sink{s.stdout}
	if !s.opt.Merge {
		var in int
		if in, errEnd, err = pipe(); err != nil {
			unix.Close(out)
			return nil, startError(s.opt.Program, number, err)
		}
		defer unix.Close(errEnd)
		fds, sinks = append(fds, in), append(sinks, s.stderr)
	}
	stdin := s.null
	if number == 0 {
		stdin = s.stdin
	}
	client, err := s.pmi.Connect(number)
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, startError(s.opt.Program, number, err)
	}
	defer unix.Close(client)
	files := []uintptr{uintptr(stdin), uintptr(outEnd), uintptr(errEnd)}
	for len(files) < pmiFD {
		files = append(files, ^uintptr(0))
	}
	files = append(files, uintptr(client))
	// vfork semantics: it returns once the program runs, or with the reason
	// why exec failed.
	r.pid, err = syscall.ForkExec(s.path, append([]string{s.opt.Program}, s.opt.Args...), &syscall.ProcAttr{
		Dir:   s.opt.Dir,
		Env:   rankEnviron(s.env, s.seg, number),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, startError(s.opt.Program, number, err)
	}
	for i, fd := range fds {
		st := newStream(fd, sinks[i], number, s.opt.Tag)
		r.streams = append(r.streams, st)
		go st.run()
	}
	return r, nil
}

// pipe makes a pipe whose reading end suits Go's poller and whose writing end
// is what programs expect of a standard output.
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
