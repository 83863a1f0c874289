package launch

import "time"

// messageWriter writes the launcher's own messages. It has a goroutine of its own,
// because whoever reads standard error may be slow, and the end of a job must
// not wait for that.
type messageWriter struct {
	lines chan any // string, or a channel to close once all before it is written
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

// say writes a line soon; it never waits.
func (s *messageWriter) say(line string) {
	select {
	case s.lines <- line:
	default: // thousands of lines wait for a reader
	}
}

// flush waits until all lines are written, at most d.
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
