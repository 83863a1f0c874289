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
	errDead         = errors.New("the link is closed")
	errDeregistered = errors.New("local memory was deregistered while it was sent")
)

const (
	readerBytes = 64 << 10
	writerBytes = 32 << 10 // collected before a write
	smallBytes  = 4096     // longer payloads are sent without a copy
	byAddrBytes = 8192     // shorter payloads go through the socket even if the kernel can copy
	lingerTime  = 5 * time.Second
)

// link is a connection to the queue pair of a peer.
type link struct {
	qp        *qp
	conn      net.Conn
	raw       syscall.RawConn
	process   *process // the peer's process, nil if unknown
	reaches   bool     // this side can copy from and to the peer's memory
	reached   bool     // the peer can copy from and to this process's memory
	requester bool     // requests of qp are sent on this link
	drained   chan struct{}

	// Writer. wmu guards wbuf, woff and big.
	wmu  sync.Mutex
	wbuf []byte // wbuf[woff:] is to be sent
	woff int
	big  span // the payload to be sent after wbuf
	kick chan struct{}

	// Guarded by qp.mu.
	answers []answer
	closing bool // no more requests; the socket is shut down once answers are sent
	rnrSent bool // an rnr was sent: the peer waits for a receive
	lent    bool // the peer may write to this process by itself until it closes the socket

	// moving is held while this side moves data into its own memory, or copies from
	// or to the peer's memory. dead is written with it held.
	moving sync.Mutex
	dead   bool

	// Reader.
	rbuf      []byte
	r, w      int
	in        inbound
	expect    uint32
	skipping  bool // after an rnr: requests are discarded until the expected one is repeated
	ackDue    bool
	ackQueued bool // an ack is among the answers, which pump has not sent yet
}

func newLink(q *qp, conn net.Conn) *link {
	return &link{qp: q, conn: conn, drained: make(chan struct{}), kick: make(chan struct{}, 1), rbuf: make([]byte, readerBytes)}
}

// start starts the link's goroutines. It is a link of the queue pair by now.
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

// kill ends the link: nothing that arrives from now on has an effect. The caller
// holds qp.mu.
func (l *link) kill() {
	l.closing = true
	l.moving.Lock()
	l.dead = true
	l.moving.Unlock()
	l.conn.SetDeadline(time.Now().Add(lingerTime)) //nolint:errcheck // it fails only if the socket is closed
	l.wake()
}

// wake wakes the writer.
func (l *link) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// pump sends pending frames as far as the socket takes data, and leaves the rest to
// the writer.
func (l *link) pump() {
	if !l.wmu.TryLock() {
		l.wake() // the holder of wmu may have looked for frames before the newest was added
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

// send writes frames until there are none. If block is false it stops when the
// socket takes no more data, and returns more as true.
func (l *link) send(block bool) (more bool, err error) {
	for {
		if l.woff == len(l.wbuf) && l.big.n == 0 {
			// The region of a payload that is sent may be closed by now.
			l.wbuf, l.woff, l.big = l.wbuf[:0], 0, span{}
			if l.fill(); len(l.wbuf) == 0 {
				return false, l.finish()
			}
		}
		var n int
		var e error
		err := l.raw.Write(func(fd uintptr) bool {
			if !l.big.region.use(func() { n, e = l.output(int(fd)) }) {
				e = errDeregistered
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

// fill collects frames to send in wbuf, and a long payload in big.
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

// finish shuts the socket down if the link is closing and all answers are sent.
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

// shut shuts down the sending side of the socket.
func (l *link) shut() {
	if c, ok := l.conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite() //nolint:errcheck // it fails only if the peer has closed the socket
	}
}

// read is the reader. Only it closes the socket.
func (l *link) read() {
	debug.SetPanicOnFault(true)
	_, err := l.guarded(l.serve)
	if err == nil {
		err = io.EOF
	}
	l.qp.lost(l, err)
	for err = error(os.ErrDeadlineExceeded); errors.Is(err, os.ErrDeadlineExceeded); {
		_, err = io.Copy(io.Discard, l.conn) // until the peer has shut down its side, or lingerTime is up
		if !l.waitsForPeer() {
			break
		}
	}
	close(l.drained)
	l.conn.Close()
	l.process.close()
}

// waitsForPeer reports whether the reader has to wait for the peer as long as it
// lives, although lingerTime is up: a peer that is stopped may, when it continues,
// still carry out a read by address. If so it shuts down the sending side, so that
// the peer learns of the end.
func (l *link) waitsForPeer() bool {
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

// need reads until at least n bytes are in the buffer.
func (l *link) need(n int) error {
	for l.w-l.r < n {
		l.sendDueAck()
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

// sendDueAck sends the ack that is due, before the reader waits for the peer.
func (l *link) sendDueAck() {
	if l.ackDue {
		l.ackDue, l.ackQueued = false, false
		l.qp.answer(l, answer{frame: frame{kind: frAck, psn: l.expect - 1}})
	} else if l.ackQueued {
		l.ackQueued = false
		l.pump()
	}
}

// discard reads n bytes and drops them.
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

// move calls f if the region is registered (ok) and the link is not dead (alive).
// Neither changes during f.
func (l *link) move(r *region, f func()) (ok, alive bool) {
	l.moving.Lock()
	defer l.moving.Unlock()
	if l.dead {
		return false, false
	}
	return r.use(f), true
}

// receive reads the payload into memory. If the memory is not registered any more
// it discards the payload and returns gone as true.
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
		l.sendDueAck()
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

// input reads from the socket directly into memory.
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

// word returns a span of 8 bytes as a word.
func word(s span) *uint64 { return (*uint64)(unsafe.Pointer(s.p)) }
