package soft

import (
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

var errNotReached = errors.New("the memory of the peer's process can't be copied")

// process is the process at the other end of a Unix socket.
type process struct {
	pid int
	age uint64       // its start time, see sys.StartTime
	fd  atomic.Int32 // of pidfd_open
}

// peerProcess returns the process at the other end, nil if that is not certain.
func peerProcess(conn net.Conn) *process {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil
	}
	var cred *unix.Ucred
	if raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}) != nil || err != nil || cred.Pid <= 0 {
		return nil
	}
	fd, ok, err := sys.PidFD(int(cred.Pid))
	if err != nil || !ok {
		return nil
	}
	p := &process{pid: int(cred.Pid), age: sys.StartTime(int(cred.Pid))}
	p.fd.Store(int32(fd))
	return p
}

// lives reports whether the process has not ended, so that its id is not another
// process's by now. If the program has closed the pidfd, and its number may be
// another file's, it is replaced.
func (p *process) lives() bool {
	if p.unchanged() {
		return true
	}
	if p.age == 0 || sys.Look(p.pid, p.age) != sys.Living {
		return false
	}
	fd, ok, err := sys.PidFD(p.pid)
	if !ok || err != nil {
		return false
	}
	p.fd.Store(int32(fd))
	return sys.Look(p.pid, p.age) == sys.Living && p.unchanged()
}

// unchanged reports whether the descriptor is valid and not readable. A pidfd is
// readable once the process has ended.
func (p *process) unchanged() bool {
	fds := []unix.PollFd{{Fd: p.fd.Load(), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR { // by one of the signals that Go's run-time sends its threads
			return n == 0 && err == nil
		}
	}
}

func (p *process) close() {
	if p != nil {
		unix.Close(int(p.fd.Load()))
	}
}

// try reports whether the peer's probe can be read.
func (l *link) try(probe []byte) bool {
	l.process = peerProcess(l.conn)
	if l.process == nil {
		return false
	}
	var got [8]byte
	err := sys.ReadProcess(l.process.pid, unsafe.Pointer(&got[0]), binary.LittleEndian.Uint64(probe), len(got))
	return err == nil && got == [8]byte(probe[8:16]) && l.process.lives()
}

// copyStep is the number of bytes that are copied at a time with the region's lock
// held.
const copyStep = 1 << 20

// pull copies from address addr of the peer's process. gone is true if the local
// memory is not registered any more.
func (l *link) pull(to span, addr uint64) (gone bool, err error) {
	return l.across(to, addr, sys.ReadProcess)
}

// push copies to address addr of the peer's process, likewise.
func (l *link) push(from span, addr uint64) (gone bool, err error) {
	return l.across(from, addr, sys.WriteProcess)
}

func (l *link) across(s span, addr uint64, copy func(int, unsafe.Pointer, uint64, int) error) (gone bool, err error) {
	if !l.reaches {
		return false, errNotReached
	}
	for off := 0; off < s.n && err == nil; off += copyStep {
		part := s.at(off, min(copyStep, s.n-off))
		if !l.process.lives() {
			return false, errNotReached
		}
		ok, alive := l.move(part.region, func() { err = copy(l.process.pid, part.p, addr+uint64(off), part.n) })
		if !alive {
			return false, errDead
		}
		if !ok {
			return true, nil
		}
	}
	return false, err
}
