// Package sockets has what the sockets of the software back ends and of the
// transfer engine have in common: an Acceptor, which bounds the connections that
// are not authenticated yet, and the list of all open descriptors.
//
// A forked child has to close these descriptors: as long as it holds them, peers
// do not see this process end. So a socket is listed before it is connected, not
// when that has succeeded, and no socket is made while the process forks (fork.go).
//
// It may import only the standard library.
package sockets

import (
	"sync"
	"syscall"
)

// all has the open sockets, and some that are closed.
var all struct {
	sync.Mutex
	raw   map[syscall.RawConn]struct{}
	sweep int // closed ones are removed when there are so many
}

// note adds a socket to the list until it is closed.
func note(raw syscall.RawConn) {
	all.Lock()
	defer all.Unlock()
	if all.raw == nil {
		all.raw = map[syscall.RawConn]struct{}{}
	}
	if len(all.raw) >= all.sweep {
		for r := range all.raw {
			if r.Control(func(uintptr) {}) != nil {
				delete(all.raw, r)
			}
		}
		all.sweep = 2*len(all.raw) + 16
	}
	all.raw[raw] = struct{}{}
}

// Track adds an accepted connection to the list.
func Track(socket any) {
	if s, ok := socket.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			note(raw)
		}
	}
}

// Open returns the descriptors of all open sockets of the list.
func Open() []int32 {
	var fds []int32
	all.Lock()
	defer all.Unlock()
	for r := range all.raw {
		r.Control(func(fd uintptr) { fds = append(fds, int32(fd)) }) //nolint:errcheck // a closed one has none
	}
	return fds
}
