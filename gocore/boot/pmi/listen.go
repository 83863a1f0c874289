package pmi

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listener waits for all connections of a server. It has an epoll of its own, which is
// one descriptor for Go's poller, and one goroutine.
type listener struct {
	fd   int // of file, for epoll_ctl
	file *os.File
}

func listen(ready func(rank int)) (*listener, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // required by Go's poller
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	l := &listener{fd, os.NewFile(uintptr(fd), "PMI")}
	raw, err := l.file.SyscallConn()
	if err != nil {
		l.file.Close()
		return nil, err
	}
	go l.run(raw, ready)
	return l, nil
}

func (l *listener) run(raw syscall.RawConn, ready func(rank int)) {
	var events [64]unix.EpollEvent
	_ = raw.Read(func(fd uintptr) (done bool) {
		for {
			n, err := unix.EpollWait(int(fd), events[:], 0)
			if err != nil && err != unix.EINTR {
				return true
			}
			if n == 0 {
				return false // wait until there is more
			}
			for _, ev := range events[:max(n, 0)] {
				ready(int(ev.Fd))
			}
		}
	})
}

// add listens to a connection until it is closed.
func (l *listener) add(fd, rank int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(rank)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// close ends run.
func (l *listener) close() { l.file.Close() }
