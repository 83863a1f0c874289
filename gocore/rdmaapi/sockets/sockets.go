// Package sockets has what the sockets of the software back ends and of the
// transfer engine have in common: who is let in (Door), and the descriptors of
// all that are open. A forked child has to close them: as long as it holds them,
// peers would not see this process end. So a socket is noted before it is
// connected, and not when that has succeeded. It may import only the standard
// library.
package sockets

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// all are the open sockets, and some that are closed.
var all struct {
	sync.Mutex
	raw  map[syscall.RawConn]struct{}
	look int // for closed ones when there are so many
}

// note notes a socket until it is closed.
func note(raw syscall.RawConn) {
	all.Lock()
	defer all.Unlock()
	if all.raw == nil {
		all.raw = map[syscall.RawConn]struct{}{}
	}
	if len(all.raw) >= all.look {
		for r := range all.raw {
			if r.Control(func(uintptr) {}) != nil {
				delete(all.raw, r)
			}
		}
		all.look = 2*len(all.raw) + 16
	}
	all.raw[raw] = struct{}{}
}

// Track notes a connection that was accepted, or a listener.
func Track(socket any) {
	if s, ok := socket.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			note(raw)
		}
	}
}

// Dialer makes connections that are noted from the beginning.
func Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, Control: func(_, _ string, raw syscall.RawConn) error {
		note(raw)
		return nil
	}}
}

// Open returns the descriptors.
func Open() []int {
	var fds []int
	all.Lock()
	defer all.Unlock()
	for r := range all.raw {
		r.Control(func(fd uintptr) { fds = append(fds, int(fd)) }) //nolint:errcheck // a closed one has none
	}
	return fds
}
