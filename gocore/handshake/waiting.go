package handshake

import (
	"net"
	"slices"
	"sync"
)

// Waiting are the connections of an acceptor that are in their handshakes. They are bounded, and the
// oldest is closed when there are too many: whoever connects and says nothing takes no place from those
// who come after him. An initiator that is evicted calls again. It is safe for concurrent use.
type Waiting struct {
	mu     sync.Mutex
	max    int
	conns  []net.Conn // the oldest first
	closed bool
}

// NewWaiting returns room for a number of connections.
func NewWaiting(limit int) *Waiting { return &Waiting{max: limit} }

// Hold notes a connection, and evicts the oldest if there are too many. After Close it closes
// conn and returns false.
func (w *Waiting) Hold(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		conn.Close()
		return false
	}
	if w.conns = append(w.conns, conn); len(w.conns) > w.max {
		w.evict()
	}
	return true
}

// Release ends the time in which a connection may be evicted. It reports whether it has not been: one
// that was is closed.
func (w *Waiting) Release(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.conns, conn)
	if i >= 0 {
		w.conns = slices.Delete(w.conns, i, i+1)
	}
	return i >= 0
}

// Evict closes the oldest connection, if there is one, for an acceptor that has no descriptors left.
func (w *Waiting) Evict() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.conns) > 0 {
		w.evict()
	}
}

func (w *Waiting) evict() {
	w.conns[0].Close()
	w.conns = slices.Delete(w.conns, 0, 1)
}

// Len returns the number of connections.
func (w *Waiting) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// Close closes all connections, and those that come.
func (w *Waiting) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for len(w.conns) > 0 {
		w.evict()
	}
}
