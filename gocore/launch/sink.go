package launch

import (
	"sync"

	"golang.org/x/sys/unix"
)

// sink writes output to a descriptor, such as the launcher's standard output or error.
// Many streams write to it, whole lines where possible.
type sink struct {
	fd     int
	broken func(err error) // called once, when nothing can be written any more

	mu      sync.Mutex
	free    sync.Cond // signalled when owner becomes nil
	owner   *stream   // the stream in the middle of a line longer than its buffer
	midLine bool      // the last byte written was not a newline
	failed  error
}

func newSink(fd int, broken func(error)) *sink {
	s := &sink{fd: fd, broken: broken}
	s.free.L = &s.mu
	return s
}

// sameFile reports whether two descriptors refer to one file, so that lines of both must
// not be written at the same time.
func sameFile(a, b int) bool {
	var sa, sb unix.Stat_t
	return unix.Fstat(a, &sa) == nil && unix.Fstat(b, &sb) == nil && sa.Dev == sb.Dev && sa.Ino == sb.Ino
}

// write writes b for the stream from. With more, b ends within a line whose rest follows
// at once: no other stream writes until it has come, or release is called.
func (s *sink) write(from *stream, b []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.owner != nil && s.owner != from {
		s.free.Wait()
	}
	if from.tag != nil && !from.holding && s.midLine && len(b) > 0 {
		s.put([]byte{'\n'}) // a stream without tags stopped in the middle of a line
	}
	s.put(b)
	if more {
		s.owner = from
	} else {
		s.disown(from)
	}
}

// release lets other streams write before the rest of from's line has come.
func (s *sink) release(from *stream) {
	s.mu.Lock()
	s.disown(from)
	s.mu.Unlock()
}

func (s *sink) disown(from *stream) {
	if s.owner == from {
		s.owner = nil
		s.free.Broadcast()
	}
}

// message writes a line of the launcher's own, on a line of its own.
func (s *sink) message(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.midLine {
		line = "\n" + line
	}
	s.put([]byte(line + "\n"))
}

// put writes all of b. After an error it writes nothing more.
func (s *sink) put(b []byte) {
	if len(b) == 0 {
		return
	}
	s.midLine = b[len(b)-1] != '\n'
	for len(b) > 0 && s.failed == nil {
		n, err := unix.Write(s.fd, b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN: // another process made the descriptor non-blocking
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}, -1)
		case err != nil:
			s.failed = err
			s.broken(err)
		default:
			b = b[n:]
		}
	}
}
