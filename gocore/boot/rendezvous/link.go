package rendezvous

import (
	"net"
	"sync"
	"time"
)

const (
	// maxQueue bounds the memory for a peer that does not read.
	maxQueue = 4 * maxFrame
	// sendLimit is the time that a peer may take for what is sent to it.
	sendLimit = 30 * time.Second
)

// keepAlive finds that a host has vanished within 15 s. A stopped process answers by its
// kernel.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}

// link is rank 0's end of a connection. Sending never waits: a goroutine writes.
type link struct {
	conn net.Conn
	// before, if it is not nil, is called before a frame is written after which the peer
	// may end its process.
	before func()

	mu     sync.Mutex
	queue  [][]byte
	bytes  int
	last   bool // close after the queue
	closed bool
	ready  *sync.Cond
}

func newLink(conn net.Conn, before func()) *link {
	l := &link{conn: conn, before: before}
	l.ready = sync.NewCond(&l.mu)
	go l.write()
	return l
}

// send sends a frame; a peer that leaves too much unread is cut off.
func (l *link) send(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.last {
		return
	}
	b := f.marshal()
	l.queue = append(l.queue, b)
	if l.bytes += len(b); l.bytes > maxQueue {
		l.shut()
	}
	l.ready.Broadcast()
}

// end closes the connection when everything has been sent.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = true
	l.ready.Broadcast()
}

// close closes the connection.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut()
}

func (l *link) shut() {
	l.closed = true
	l.conn.Close()
	l.ready.Broadcast()
}

func (l *link) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.queue) == 0 && !l.last && !l.closed {
			l.ready.Wait()
		}
		if l.closed {
			return
		}
		if len(l.queue) == 0 {
			l.shut()
			return
		}
		b := l.queue[0]
		l.mu.Unlock()
		if l.before != nil && (op(b[4]) == opEvent || op(b[4]) == opFailed) {
			l.before()
		}
		_ = l.conn.SetWriteDeadline(time.Now().Add(sendLimit))
		_, err := l.conn.Write(b)
		l.mu.Lock()
		if err != nil {
			l.shut()
			return
		}
		l.queue = l.queue[1:]
		l.bytes -= len(b)
		l.ready.Broadcast()
	}
}

// flush waits until everything has been passed to the kernel, at most until the timer
// ends.
func (l *link) flush(end time.Time) {
	wake := time.AfterFunc(time.Until(end), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ready.Broadcast()
	})
	defer wake.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 && !l.closed && time.Now().Before(end) {
		l.ready.Wait()
	}
}
