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

// MaxPending is the number of pending connections that an Acceptor has room for.
const MaxPending = 256

// acceptBackoff is the pause after an accept failed for lack of descriptors.
const acceptBackoff = 10 * time.Millisecond

// Acceptor accepts connections. A connection is pending until it is authenticated.
// If there are more than MaxPending, the oldest that has said nothing is evicted, so
// that pending connections do not keep peers from connecting. The zero Acceptor is
// ready for use; it is safe for concurrent use.
type Acceptor struct {
	mu      sync.Mutex
	pending []pending // in the order in which they were accepted
	max     int       // 0: MaxPending
}

// pending is a pending connection.
type pending struct {
	conn    net.Conn
	greeted bool // its hello has come
}

// Serve accepts connections and passes each to welcome until the listener is closed.
// welcome must not wait. Once a connection is authenticated, or closed, Authenticated
// must be called for it. At a Unix socket only processes of this user are accepted.
func (a *Acceptor) Serve(l net.Listener, welcome func(conn net.Conn)) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as out of descriptors: evicting a pending connection frees one
			a.makeRoom(0)
			time.Sleep(acceptBackoff)
			continue
		case !SameUser(conn):
			conn.Close()
			continue
		}
		Track(conn)
		a.enter(conn)
		welcome(conn)
	}
}

func (a *Acceptor) enter(conn net.Conn) {
	limit := MaxPending
	if a.max > 0 {
		limit = a.max
	}
	a.makeRoom(limit - 1)
	a.mu.Lock()
	a.pending = append(a.pending, pending{conn: conn})
	a.mu.Unlock()
}

// Greeted notes that a connection has sent a hello with a known tag. It is not silent
// from then on, although it has no unread bytes while it is answered.
func (a *Acceptor) Greeted(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.index(conn); i >= 0 {
		a.pending[i].greeted = true
	}
}

// Authenticated ends the time in which a connection is pending. It reports whether the
// connection was still pending: one that was evicted is closed.
func (a *Acceptor) Authenticated(conn net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.index(conn)
	if i >= 0 {
		a.pending = slices.Delete(a.pending, i, i+1)
	}
	return i >= 0
}

// index returns the place of a pending connection, -1 if it is none. The caller holds mu.
func (a *Acceptor) index(conn net.Conn) int {
	return slices.IndexFunc(a.pending, func(p pending) bool { return p.conn == conn })
}

// makeRoom evicts a pending connection if there are more than n: the oldest silent one,
// or else the oldest.
func (a *Acceptor) makeRoom(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) <= n {
		return
	}
	i := max(0, slices.IndexFunc(a.pending, pending.silent))
	a.pending[i].conn.Close()
	a.pending = slices.Delete(a.pending, i, i+1)
}

// silent reports whether a connection has said nothing. One whose hello has arrived but is
// not read yet, on a busy machine, is not silent.
func (p pending) silent() bool {
	said := p.greeted
	control(p.conn, func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		said = said || err == nil && n > 0
	})
	return !said
}

// SameUser reports whether the peer of a Unix socket is a process of this user. For
// other sockets, whose user the kernel does not know, it returns true.
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
			raw.Control(f) //nolint:errcheck // it fails only if the connection is closed
		}
	}
}

// Redial calls dial until it returns no error, or one that is not Evicted, or patience has
// passed since the first eviction. The pauses between calls grow.
func Redial(patience time.Duration, dial func() error) error {
	var end time.Time
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := dial()
		if err == nil || !Evicted(err) {
			return err
		}
		if end.IsZero() {
			end = time.Now().Add(patience)
		}
		if time.Now().Add(pause).After(end) {
			return err
		}
		time.Sleep(pause)
	}
}

// The pauses of Redial.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

// Evicted reports whether err, of a read or write during the handshake, may mean that
// the peer's Acceptor has evicted this connection. Then the caller tries again.
func Evicted(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
