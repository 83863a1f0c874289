package launch

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstBuffer = 8 << 10
	// readSize is the capacity of a pipe: there is rarely more to read at once.
	readSize = 64 << 10
	// maxLine bounds how much of a line is kept. A longer line is passed on in pieces,
	// while the output of other ranks waits.
	maxLine = 1 << 20
	// A program that buffers its output writes whole blocks, which end in the middle
	// of a line. An unfinished line after blockSize bytes without a pause is taken for
	// the end of a block, not for a prompt, and is kept for delays.block.
	blockSize = 4 << 10
)

// delays are for how long an unfinished line is kept.
type delays struct {
	// prompt is long enough for the rest of a line written in parts, too short for a user to
	// notice before a prompt.
	prompt time.Duration
	block  time.Duration // see blockSize
	dots   time.Duration // at most, if it grows all the time
}

var usualDelays = delays{prompt: 50 * time.Millisecond, block: time.Second, dots: 200 * time.Millisecond}

// stream carries the standard output or error of one rank to a sink.
type stream struct {
	in  *os.File
	fd  int // of in, for ioctl only
	to  *sink
	tag []byte // prefix of each line; nil for none
	own []byte // the tag after label

	buf     []byte // input that was not passed on: the beginning of a line
	holding bool   // a line is being passed on in pieces: this stream owns the sink
	out     []byte // tagged lines

	burst int       // bytes read since the last pause or complete line
	since time.Time // when the unfinished line began
	timed bool      // a deadline is set

	delays  delays
	seen    atomic.Int64 // bytes read
	writing atomic.Bool
	labels  atomic.Bool // label was called
	closing atomic.Bool
	done    chan struct{}
}

// newStream makes the stream of rank from fd, which must be non-blocking and now belongs
// to the stream. run must be called.
func newStream(fd int, to *sink, rank int, tagged bool) *stream {
	s := &stream{in: os.NewFile(uintptr(fd), "pipe"), fd: fd, to: to, delays: usualDelays, done: make(chan struct{})}
	s.own = []byte("[" + strconv.Itoa(rank) + "] ")
	if tagged {
		s.tag = s.own
	}
	return s
}

// label prefixes each line that is read from now on with the rank.
func (s *stream) label() { s.labels.Store(true) }

// beginTags begins to tag lines. The first had bytes of buf were read before.
func (s *stream) beginTags(had int) {
	if had > 0 || s.holding {
		s.write(s.buf[:had], false)
		s.buf = s.buf[:copy(s.buf, s.buf[had:])]
	}
	s.tag = s.own
}

// run reads until all holders of the other end have closed it, or until close.
func (s *stream) run() {
	defer close(s.done)
	defer s.in.Close()
	for {
		s.room()
		had := len(s.buf)
		n, err := s.in.Read(s.buf[had:cap(s.buf)])
		if n > 0 {
			s.seen.Add(int64(n))
			s.burst += n
			s.buf = s.buf[:had+n]
			if s.tag == nil && s.labels.Load() {
				s.beginTags(had)
				had = 0
			}
			s.pass(had)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			// On a busy machine the deadline may pass while there is more to read,
			// which would split a line without need.
			if more, e := unix.IoctlGetInt(s.fd, unix.TIOCINQ); e == nil && more > 0 {
				_ = s.in.SetReadDeadline(time.Now().Add(s.delays.prompt))
				continue
			}
			if s.closing.Load() {
				s.finish()
				return
			}
			s.pause()
		case err != nil:
			s.finish()
			return
		}
		s.schedule()
	}
}

// schedule sets the time until which the rest of an unfinished line is awaited.
func (s *stream) schedule() {
	unfinished := s.holding || s.tag == nil && len(s.buf) > 0
	if !unfinished {
		s.burst, s.since = 0, time.Time{}
		if !s.timed {
			return
		}
	}
	var until time.Time
	if unfinished {
		now := time.Now()
		if s.since.IsZero() {
			s.since = now
		}
		switch until = now.Add(s.delays.prompt); {
		case s.holding:
		case s.burst >= blockSize:
			until = now.Add(s.delays.block)
		case until.After(s.since.Add(s.delays.dots)):
			until = s.since.Add(s.delays.dots)
		}
	}
	s.timed = unfinished
	_ = s.in.SetReadDeadline(until)
	if s.closing.Load() { // close may have set its deadline just before
		_ = s.in.SetReadDeadline(time.Unix(1, 0))
	}
}

// close makes run pass on its buffer and return soon, although another process still
// holds the other end.
func (s *stream) close() {
	s.closing.Store(true)
	_ = s.in.SetReadDeadline(time.Unix(1, 0))
}

// room makes room in buf: little for a rank that writes little, much for one that fills
// its pipe or writes long lines.
func (s *stream) room() {
	free := cap(s.buf) - len(s.buf)
	if free >= blockSize || free > 0 && cap(s.buf) == firstBuffer {
		return
	}
	size := firstBuffer
	switch c := cap(s.buf); {
	case c >= readSize:
		size = 2 * c
	case c > 0:
		size = readSize
	}
	bigger := make([]byte, len(s.buf), size)
	copy(bigger, s.buf)
	s.buf = bigger
}

// pass passes on the complete lines in buf; its first had bytes contain no end of a
// line. It keeps the rest, unless that is too long.
func (s *stream) pass(had int) {
	if i := bytes.LastIndexByte(s.buf[had:], '\n'); i >= 0 {
		end := had + i + 1
		s.write(s.buf[:end], false)
		s.buf = s.buf[:copy(s.buf, s.buf[end:])]
		s.since = time.Time{}
	}
	if len(s.buf) >= maxLine || s.holding && len(s.buf) > 0 {
		s.write(s.buf, true)
		s.buf = s.buf[:0]
	}
}

// pause stops waiting for the rest of a line.
func (s *stream) pause() {
	s.burst, s.since = 0, time.Time{}
	switch {
	case s.tag == nil && len(s.buf) > 0:
		s.write(s.buf, false)
		s.buf = s.buf[:0]
	case s.tag != nil && s.holding:
		// Others may write now, so this line has to end here.
		s.write([]byte{'\n'}, false)
	case s.holding:
		s.holding = false
		s.to.release(s)
	}
}

// finish passes on the rest at the end of the input.
func (s *stream) finish() {
	if s.tag != nil && (s.holding || len(s.buf) > 0) {
		s.buf = append(s.buf, '\n')
	}
	if len(s.buf) > 0 {
		s.write(s.buf, false)
		s.buf = s.buf[:0]
	}
	if s.holding {
		s.holding = false
		s.to.release(s)
	}
}

// write passes b to the sink. With more, b ends within a line whose rest follows before
// any other stream's output.
func (s *stream) write(b []byte, more bool) {
	if s.tag != nil {
		s.out = s.out[:0]
		for inLine := s.holding; len(b) > 0; inLine = false {
			if !inLine {
				s.out = append(s.out, s.tag...)
			}
			end := bytes.IndexByte(b, '\n') + 1
			if end == 0 {
				end = len(b)
			}
			s.out = append(s.out, b[:end]...)
			b = b[end:]
		}
		b = s.out
	}
	s.writing.Store(true)
	s.to.write(s, b, more)
	s.writing.Store(false)
	s.holding = more
}
