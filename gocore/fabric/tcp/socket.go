package tcp

import (
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls do not wait, and move at most a frame and a little more. They are not announced to Go's scheduler: a thread that stops the
// world waits for them no longer than for a copy (see fabric.Copy). Where a call that takes
// longer than 20 us is announced, a thread of Go looks at it every 20 us, and takes the processor for that.

// receive reads from a socket, by one system call.
func receive(fd int, b []byte) (int, unix.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(r), errno
}

// send writes to a socket, by one system call.
func send(fd int, b []byte) (int, unix.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(r), errno
}

// sendVector writes several pieces by one system call.
func sendVector(fd int, m *unix.Msghdr) (int, unix.Errno) {
	r, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	return int(r), errno
}

// receiveVector reads into several pieces by one system call.
func receiveVector(fd int, m *unix.Msghdr) (int, unix.Errno) {
	r, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT)
	return int(r), errno
}

// ready takes the events that epoll has, without waiting, and returns their number.
func ready(epoll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0 // EINTR
	}
	return int(n)
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func socket(a netip.Addr) (int, error) {
	fd, err := unix.Socket(family(a), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	return fd, nil
}

// listen makes a listening socket on the first address of list that works.
func listen(list []netip.Addr) (fd int, at netip.AddrPort, err error) {
	for _, a := range list {
		if fd, at, err = listenOn(a); err == nil {
			return fd, at, nil
		}
	}
	return -1, at, err
}

func listenOn(a netip.Addr) (fd int, at netip.AddrPort, err error) {
	if fd, err = socket(a); err != nil {
		return -1, at, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
			fd = -1
		}
	}()
	if a == netip.IPv6Unspecified() { // for IPv4, too
		if err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return fd, at, fmt.Errorf("listen on %v: %w", a, err)
		}
	}
	if err = unix.Bind(fd, sockaddr(netip.AddrPortFrom(a, 0))); err != nil {
		return fd, at, fmt.Errorf("listen on %v: %w", a, err)
	}
	if err = unix.Listen(fd, 4096); err != nil {
		return fd, at, fmt.Errorf("listen on %v: %w", a, err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return fd, at, fmt.Errorf("listen on %v: %w", a, err)
	}
	return fd, addrPort(sa), nil
}

// tune makes a connection's socket send without delay, and notice the loss of the peer's
// host within a time, if it is not 0.
func tune(fd int, patience time.Duration) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if withinHost(fd) {
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, unpaced)
	}
	if patience == 0 {
		return
	}
	// The time limit holds for data, and for the probes of an idle connection.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience/time.Millisecond))
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1)
}

// unpaced is the congestion control of connections within a host, on which nothing gets lost. The system's may pace what
// it sends, as BBR does: that halves the rate of long messages. This one does not, every kernel has it, and every user may choose it.
const unpaced = "reno"

// withinHost reports whether both ends of a connection are on this host.
func withinHost(fd int) bool {
	local, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	remote, err := unix.Getpeername(fd)
	if err != nil {
		return false
	}
	to := addrPort(remote).Addr()
	return to.IsLoopback() || to == addrPort(local).Addr()
}

// connectError returns the error of a non-blocking connect(2), nil if there is
// none so far.
func connectError(fd int) error {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if code != 0 {
		return unix.Errno(code)
	}
	return nil
}

// ends returns the two addresses of a connection, for error texts.
func ends(fd int) string {
	local, err := unix.Getsockname(fd)
	if err != nil {
		return "no connection"
	}
	remote, err := unix.Getpeername(fd)
	if err != nil {
		return fmt.Sprintf("%v, not connected", addrPort(local))
	}
	return fmt.Sprintf("%v to %v", addrPort(local), addrPort(remote))
}
