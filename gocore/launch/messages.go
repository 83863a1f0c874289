package launch

import "time"

// messageWriter writes the launcher's own messages. It has a goroutine of its own,
// because the reader of standard error may be slow, and the end of a job must not wait
// for it.
type messageWriter struct {
	lines chan any // string, or a channel to close once all lines before it are written
}

func newMessageWriter(to *sink) *messageWriter {
	s := &messageWriter{lines: make(chan any, 4096)}
	go func() {
		for line := range s.lines {
			switch line := line.(type) {
			case string:
				to.message(line)
			case chan struct{}:
				close(line)
			}
		}
	}()
	return s
}

// print queues a line for writing. It never waits.
func (s *messageWriter) print(line string) {
	select {
	case s.lines <- line:
	default: // the queue is full: the line is dropped
	}
}

// flush waits until all queued lines are written, at most d.
func (s *messageWriter) flush(d time.Duration) {
	written := make(chan struct{})
	select {
	case s.lines <- written:
	default:
		return
	}
	select {
	case <-written:
	case <-time.After(d):
	}
}
