package launch

import (
	"os"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// reaper reports which of the launcher's children ended, in the order in which they
// ended: the first rank that failed is the one to report, and its peers may follow
// within a millisecond. SIGCHLD and wait(2) do not keep that order, an epoll on pidfds
// does. Before Linux 5.3 there are no pidfds, and the order of ends that are noticed
// together is lost.
type reaper struct {
	ended chan int // pids; the process is a zombie when its pid is sent

	mu      sync.Mutex
	epoll   int
	fds     map[int]int // pid to pidfd
	poll    sync.Once
	polled  map[int]struct{} // pids without a pidfd
	signals chan os.Signal
}

func newReaper() (*reaper, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	r := &reaper{ended: make(chan int, 64), epoll: ep, fds: map[int]int{}, polled: map[int]struct{}{}}
	// Needed with pidfds, too: children that end while SIGCHLD is ignored leave no
	// status, and the launcher may have inherited that it is ignored.
	r.signals = make(chan os.Signal, 1)
	signal.Notify(r.signals, unix.SIGCHLD)
	go r.run()
	return r, nil
}

// watch adds a child that was not reaped.
func (r *reaper) watch(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fd, ok, err := sys.PidFD(pid); ok && err == nil {
		unix.CloseOnExec(fd)
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(pid)}
		if unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd, &ev) == nil {
			r.fds[pid] = fd
			return
		}
		unix.Close(fd)
	}
	r.polled[pid] = struct{}{}
	r.poll.Do(func() { go r.runPolled() })
	select { // it may have ended before it was listed
	case r.signals <- unix.SIGCHLD:
	default:
	}
}

// run reports the children whose pidfd has become readable.
func (r *reaper) run() {
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(r.epoll, events[:], -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, ev := range events[:max(n, 0)] {
			pid := int(ev.Fd)
			r.mu.Lock()
			unix.Close(r.fds[pid])
			delete(r.fds, pid)
			r.mu.Unlock()
			r.ended <- pid
		}
	}
}

// runPolled reports, at every SIGCHLD, the children without a pidfd that have ended. It
// does not reap them.
func (r *reaper) runPolled() {
	for range r.signals {
		r.mu.Lock()
		var found []int
		for pid := range r.polled {
			var info unix.Siginfo
			err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
			if err == nil && info.Signo != 0 {
				delete(r.polled, pid)
				found = append(found, pid)
			}
		}
		r.mu.Unlock()
		for _, pid := range found {
			r.ended <- pid
		}
	}
}

// statusOf returns the status of a child that has ended, and its resource usage. The
// child stays a zombie.
func statusOf(pid int) (ws unix.WaitStatus, used unix.Rusage) {
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, &used) == unix.EINTR {
	}
	// struct siginfo of a SIGCHLD: si_pid, si_uid and si_status follow three numbers
	// and, where pointers have 8 bytes, padding.
	status := *(*int32)(unsafe.Add(unsafe.Pointer(&info), siginfoStatus))
	switch info.Code {
	case childExited:
		return unix.WaitStatus(status << 8), used
	case childDumped:
		return unix.WaitStatus(status | 0x80), used
	}
	return unix.WaitStatus(status), used
}

// CLD_EXITED and CLD_DUMPED of linux/siginfo.h, and the offset of si_status.
const (
	childExited   = 1
	childDumped   = 3
	siginfoStatus = 16 + 8
)

// reap reaps a child that has ended and returns its status and resource usage.
func reap(pid int) (unix.WaitStatus, unix.Rusage) {
	var ws unix.WaitStatus
	var used unix.Rusage
	for {
		if _, err := unix.Wait4(pid, &ws, 0, &used); err != unix.EINTR {
			return ws, used
		}
	}
}
