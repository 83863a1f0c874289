package soft

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	errDead  = errors.New("the link is closed")
	errUsers = errors.New("local memory was deregistered while it was sent")
)

const (
	readerBytes = 64 << 10
	writerBytes = 32 << 10 // collected before a write
	smallBytes  = 4096     // longer payloads are sent from where they are
	byAddrBytes = 8192     // shorter payloads go through the socket even if the kernel can copy
	lingerTime  = 5 * time.Second
)

// link is a connection to the queue pair of a peer.
type link struct {
	qp        *qp
	conn      net.Conn
	raw       syscall.RawConn
	process   *process // the peer's, nil if unknown
	reaches   bool     // this side copies from and to the peer's memory
	reached   bool     // the peer does so here
	requester bool     // requests of qp go out here
	drained   chan struct{}

	// Writer. The buffer and what follows it belong to who holds wmu.
	wmu  sync.Mutex
	wbuf []byte
	woff int
	big  span
	kick chan struct{}

	// These belong to qp.mu.
	answers []answer
	closing bool // no more requests; the socket is shut down once answers are out
	asked   bool // the peer waits for a receive
	lent    bool // the peer may write here by itself until it closes the socket

	// moving is held while data is moved into memory here, or by this side in the
	// peer's; dead is written with it held.
	moving sync.Mutex
	dead   bool

	// Reader.
	rbuf   []byte
	r, w   int
	in     inbound
	expect uint32
	naked  bool // requests are thrown away until the one that is expected comes again
	ackDue bool
}

func newLink(q *qp, conn net.Conn) *link {
	return &link{qp: q, conn: conn, drained: make(chan struct{}), kick: make(chan struct{}, 1), rbuf: make([]byte, readerBytes)}
}

// start has the link serve. The queue pair knows it by now.
func (l *link) start() error {
	raw, err := l.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	l.raw = raw
	go l.write()
	go l.read()
	return nil
}

// kill makes everything that comes from now on go nowhere. The caller holds qp.mu.
func (l *link) kill() {
	l.closing = true
	l.moving.Lock()
	l.dead = true
	l.moving.Unlock()
	l.conn.SetDeadline(time.Now().Add(lingerTime)) //nolint:errcheck // it is closed already then
	l.wake()
}

// wake has the writer look for something to do.
func (l *link) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// pump sends what there is to send as far as the socket takes it, and leaves the
// rest to the writer.
func (l *link) pump() {
	if !l.wmu.TryLock() {
		l.wake() // who holds it may have looked before
		return
	}
	before := debug.SetPanicOnFault(true)
	more := false
	_, err := l.guarded(func() (err error) { more, err = l.send(false); return err })
	debug.SetPanicOnFault(before)
	l.wmu.Unlock()
	if err != nil {
		l.qp.lost(l, err)
	} else if more {
		l.wake()
	}
}

func (l *link) write() {
	debug.SetPanicOnFault(true)
	for {
		select {
		case <-l.kick:
		case <-l.drained:
			return
		}
		l.wmu.Lock()
		_, err := l.guarded(func() error { _, err := l.send(true); return err })
		l.wmu.Unlock()
		if err != nil {
			l.qp.lost(l, err)
			return
		}
	}
}

// guarded turns a fault in memory of the program into an error.
func (l *link) guarded(f func() error) (faulted bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			faulted, err = true, fmt.Errorf("access to memory failed: %v", p)
		}
	}()
	return false, f()
}

// send writes frames until there are none, or, if it is not to block, until the
// socket takes no more; then it returns true.
func (l *link) send(block bool) (more bool, err error) {
	for {
		if l.woff == len(l.wbuf) && l.big.n == 0 {
			l.wbuf, l.woff = l.wbuf[:0], 0
			if l.fill(); len(l.wbuf) == 0 {
				return false, l.finish()
			}
		}
		var n int
		var e error
		err := l.raw.Write(func(fd uintptr) bool {
			if !l.big.region.use(func() { n, e = l.output(int(fd)) }) {
				e = errUsers
			}
			return e != unix.EAGAIN || !block
		})
		switch {
		case err != nil:
			return false, err
		case e == unix.EAGAIN:
			return true, nil
		case e == unix.EINTR:
			continue
		case e != nil:
			return false, e
		}
		part := min(n, len(l.wbuf)-l.woff)
		l.woff += part
		if n -= part; n > 0 {
			l.big = l.big.at(n, l.big.n-n)
		}
	}
}

func (l *link) output(fd int) (int, error) {
	var two [2][]byte
	bufs := two[:0]
	if l.woff < len(l.wbuf) {
		bufs = append(bufs, l.wbuf[l.woff:])
	}
	if l.big.n > 0 {
		bufs = append(bufs, l.big.bytes())
	}
	return unix.SendmsgBuffers(fd, bufs, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// fill collects frames to send.
func (l *link) fill() {
	for len(l.wbuf) < writerBytes {
		f, s, from, ok := l.qp.nextFrame(l)
		if !ok {
			return
		}
		start := len(l.wbuf)
		l.wbuf = f.append(l.wbuf)
		fits := s.n <= smallBytes
		alive := s.n == 0 || s.region.use(func() {
			if fits {
				l.wbuf = append(l.wbuf, s.bytes()...)
			}
		})
		if !alive {
			l.wbuf = l.wbuf[:start]
			l.qp.unregistered(l, f, from)
			continue
		}
		if !fits {
			l.big = s
			return
		}
	}
}

// finish shuts the socket down when all has been said.
func (l *link) finish() error {
	l.qp.mu.Lock()
	closing := l.closing && len(l.answers) == 0
	l.qp.mu.Unlock()
	if !closing {
		return nil
	}
	l.shut()
	return nil
}

// shut says that nothing more is sent.
func (l *link) shut() {
	if c, ok := l.conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite() //nolint:errcheck // the peer has closed it then
	}
}

// read is the reader. It alone closes the socket.
func (l *link) read() {
	debug.SetPanicOnFault(true)
	_, err := l.guarded(l.serve)
	if err == nil {
		err = io.EOF
	}
	l.qp.lost(l, err)
	for err = error(os.ErrDeadlineExceeded); errors.Is(err, os.ErrDeadlineExceeded); {
		_, err = io.Copy(io.Discard, l.conn) // until the peer, too, has said all, or the time is up
		if !l.outlasts() {
			break
		}
	}
	close(l.drained)
	l.conn.Close()
	l.process.close()
}

// outlasts reports whether the peer, whose time is up, is to be waited for as long as
// it lives: when it goes on, it may do what it was asked for before. It is told
// that nothing more comes.
func (l *link) outlasts() bool {
	l.qp.mu.Lock()
	lent := l.lent
	l.qp.mu.Unlock()
	if lent {
		l.shut()
		l.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // it is open: only the reader closes it
	}
	return lent
}

func (l *link) serve() error {
	for {
		if err := l.need(headerBytes); err != nil {
			return err
		}
		f, err := parse(l.rbuf[l.r : l.r+headerBytes])
		if err != nil {
			return fmt.Errorf("the peer sent %w", err)
		}
		l.r += headerBytes
		if f.kind <= lastRequest {
			err = l.request(f)
		} else {
			err = l.answered(f)
		}
		if err != nil {
			return err
		}
	}
}

// need has at least n bytes in the buffer.
func (l *link) need(n int) error {
	for l.w-l.r < n {
		l.settle()
		if l.r > 0 {
			l.w = copy(l.rbuf, l.rbuf[l.r:l.w])
			l.r = 0
		}
		got, err := l.conn.Read(l.rbuf[l.w:])
		l.w += got
		if err != nil && l.w-l.r < n {
			return err
		}
	}
	return nil
}

// settle says what is owed before waiting for the peer.
func (l *link) settle() {
	if l.ackDue {
		l.ackDue = false
		l.qp.answer(l, answer{frame: frame{kind: frAck, psn: l.expect - 1}})
	}
}

// discard throws n bytes away.
func (l *link) discard(n int) error {
	for n > 0 {
		if err := l.need(1); err != nil {
			return err
		}
		part := min(n, l.w-l.r)
		l.r, n = l.r+part, n-part
	}
	return nil
}

// move calls f while memory of a region may be used and the link lives.
func (l *link) move(r *region, f func()) (ok, alive bool) {
	l.moving.Lock()
	defer l.moving.Unlock()
	if l.dead {
		return false, false
	}
	return r.use(f), true
}

// receive takes the payload into memory. gone is true if that is not registered
// any more; the payload is thrown away then.
func (l *link) receive(s span) (gone bool, err error) {
	for done := 0; done < s.n; {
		left := s.at(done, s.n-done)
		if buffered := l.w - l.r; buffered > 0 || left.n < smallBytes {
			if err := l.need(1); err != nil {
				return false, err
			}
			part := left.at(0, min(left.n, l.w-l.r))
			ok, alive := l.move(part.region, func() { copy(part.bytes(), l.rbuf[l.r:]) })
			if !alive {
				return false, errDead
			}
			if !ok {
				return true, l.discard(left.n)
			}
			l.r += part.n
			done += part.n
			continue
		}
		l.settle()
		n, gone, err := l.input(left)
		if err != nil {
			return false, err
		}
		if gone {
			return true, l.discard(left.n)
		}
		done += n
	}
	return false, nil
}

// input reads from the socket straight into memory.
func (l *link) input(s span) (n int, gone bool, err error) {
	var e error
	err = l.raw.Read(func(fd uintptr) bool {
		ok, alive := l.move(s.region, func() { n, e = unix.Read(int(fd), s.bytes()) })
		switch {
		case !alive:
			e = errDead
		case !ok:
			gone, e = true, nil
		}
		return e != unix.EAGAIN && e != unix.EINTR
	})
	switch {
	case err != nil:
		return 0, false, err
	case e != nil:
		return 0, false, e
	case !gone && n == 0:
		return 0, false, io.ErrUnexpectedEOF
	}
	return n, gone, nil
}

// word is 8 bytes of memory.
func word(s span) *uint64 { return (*uint64)(unsafe.Pointer(s.p)) }
