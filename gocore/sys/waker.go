package sys

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Waker informs an event loop of the program of what has ended: its descriptor becomes readable, and it keeps the numbers of
// what has ended until they are taken.
type Waker struct {
	mu       sync.Mutex
	fd       int // an eventfd; -1 when closed
	ended    []int64
	signaled bool // the descriptor is readable
}

// NewWaker makes a Waker.
func NewWaker() (*Waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &Waker{fd: fd}, nil
}

// FD returns the descriptor, -1 if the Waker is closed.
func (w *Waker) FD() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fd
}

// Close closes the descriptor.
func (w *Waker) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fd := w.fd
	w.fd = -1
	if fd < 0 {
		return os.ErrClosed
	}
	return unix.Close(fd)
}

var one = [8]byte{0: 1} // written to an eventfd to make it readable

// Notify adds the number of something that has ended. It does not wait.
func (w *Waker) Notify(number int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return
	}
	w.ended = append(w.ended, number)
	if !w.signaled {
		w.signaled = true
		unix.Write(w.fd, one[:]) //nolint:errcheck // it fails only if the descriptor is readable already
	}
}

// Take moves numbers to out and returns how many. If out has room for more, the descriptor is not readable any more.
func (w *Waker) Take(out []int64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := copy(out, w.ended)
	w.ended = append(w.ended[:0], w.ended[n:]...)
	if len(w.ended) == 0 && w.signaled && w.fd >= 0 {
		var b [8]byte
		unix.Read(w.fd, b[:]) //nolint:errcheck // it does not block
		w.signaled = false
	}
	return n
}
