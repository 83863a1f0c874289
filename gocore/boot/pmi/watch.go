package pmi

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/boot/store"
)

var _ store.Watcher = (*Store)(nil)

// lookEvery bounds how long the watch of a connection that this process has closed goes on.
const lookEvery = time.Second

// Watch has f called when the process manager of this host has ended.
func (s *Store) Watch(f func(store.Event)) {
	go func() {
		if s.client.wire.awaitEnd() {
			f(store.Event{Kind: store.Lost, Rank: -1, Why: fmt.Sprintf("%s, which started it, has ended", s.name)})
		}
	}()
}

// awaitEnd waits until the other side closes the connection. It returns false if this process
// has done so first.
func (w *wire) awaitEnd() bool {
	var socket, now unix.Stat_t
	if unix.Fstat(w.fd, &socket) != nil {
		return false
	}
	for {
		w.mu.Lock()
		fd, closed := w.fd, w.closed
		w.mu.Unlock()
		if closed {
			return false
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if _, err := unix.Poll(fds, int(lookEvery/time.Millisecond)); err != nil && err != unix.EINTR {
			time.Sleep(lookEvery) // no memory
		}
		w.mu.Lock()
		closed = w.closed // then the number may be another file's
		w.mu.Unlock()
		// The program may have closed the descriptor, and its number may be another file's.
		if closed || fds[0].Revents&unix.POLLNVAL != 0 || unix.Fstat(fd, &now) != nil || now.Ino != socket.Ino {
			return false
		}
		if fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP) != 0 {
			return true
		}
	}
}
