package sockets

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// MaxPending is how many callers that have not proved anything a door has room for.
const MaxPending = 256

// acceptBackoff is how long a process that has no descriptors left accepts nobody.
const acceptBackoff = 10 * time.Millisecond

// Acceptor lets callers in. Who has not proved yet that he may come in is a stranger.
// If there are more than it has room for, the one who has been silent for longest
// goes, so that strangers keep nobody else out. The zero Door is ready for use; it
// is safe for concurrent use.
type Acceptor struct {
	mu      sync.Mutex
	pending []net.Conn // in the order of their coming
	most    int        // 0: Strangers
}

// Serve has each caller welcomed until the listener is closed. welcome must not
// wait. It tells by Known, or by closing the connection and Known, that a caller is
// a stranger no longer. At a Unix socket there are none but processes of this user.
func (d *Acceptor) Serve(l net.Listener, welcome func(conn net.Conn)) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, say: those of strangers are to be had
			d.makeRoom(0)
			time.Sleep(acceptBackoff)
			continue
		case !SameUser(conn):
			conn.Close()
			continue
		}
		Track(conn)
		d.enter(conn)
		welcome(conn)
	}
}

func (d *Acceptor) enter(conn net.Conn) {
	most := MaxPending
	if d.most > 0 {
		most = d.most
	}
	d.makeRoom(most - 1)
	d.mu.Lock()
	d.pending = append(d.pending, conn)
	d.mu.Unlock()
}

// Authenticated takes a caller out of the strangers.
func (d *Acceptor) Authenticated(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.pending, conn); i >= 0 {
		d.pending = slices.Delete(d.pending, i, i+1)
	}
}

// makeRoom has a stranger go if there are more than n.
func (d *Acceptor) makeRoom(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) <= n {
		return
	}
	// What one has said may not have been read yet, on a machine with much else to do.
	i := max(0, slices.IndexFunc(d.pending, silent))
	d.pending[i].Close()
	d.pending = slices.Delete(d.pending, i, i+1)
}

// silent reports whether nothing that conn's other end has said is still to be read.
func silent(conn net.Conn) bool {
	said := false
	control(conn, func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		said = err == nil && n > 0
	})
	return !said
}

// SameUser reports whether a connection is one of a process of this user, as far as
// the kernel knows: it does for Unix sockets.
func SameUser(conn net.Conn) bool {
	if _, ok := conn.(*net.UnixConn); !ok {
		return true
	}
	same := false
	control(conn, func(fd uintptr) {
		cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		same = err == nil && int(cred.Uid) == os.Geteuid()
	})
	return same
}

func control(conn net.Conn, f func(fd uintptr)) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			raw.Control(f) //nolint:errcheck // of a closed one nothing is known
		}
	}
}

// Evicted reports whether err, of a read or write before this end has been told
// anything, may be because a Door had to make room: then trying again helps.
func Evicted(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
