package rendezvous

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"gormapy/gocore/handshake"
	"gormapy/gocore/seal"
)

const (
	// helloLimit is the time for the handshake of a connection that somebody makes.
	helloLimit = 10 * time.Second
	// strangers is how many connections may be in their handshake beside those of the
	// job's ranks.
	strangers = 64
)

// door listens for the ranks and lets in who knows the secret.
type door struct {
	server *server
	secret []byte
	tag    handshake.Tag
	listen net.Listener

	mu      sync.Mutex
	waiting []net.Conn // in their handshakes, the oldest first
	closed  bool
}

// openDoor listens at the first free address of the candidates.
func openDoor(s *server, where place, secret []byte) (*door, error) {
	var failed error
	for _, port := range where.ports {
		l, err := net.Listen("tcp", net.JoinHostPort(where.bind(), strconv.Itoa(port)))
		if err != nil {
			failed = err
			continue
		}
		d := &door{server: s, secret: secret, tag: protocol.Tag(secret), listen: l}
		s.door = d
		go d.run()
		return d, nil
	}
	return nil, fmt.Errorf("rank 0 can't listen for the others at %s: %w", where, failed)
}

func (d *door) run() {
	for {
		conn, err := d.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors, for example: the ranks try again
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if d.hold(conn) {
			go d.admit(conn)
		}
	}
}

// hold notes a connection that is in its handshake. If there are too many the oldest is
// closed: a rank of the job would come again.
func (d *door) hold(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		conn.Close()
		return false
	}
	if d.waiting = append(d.waiting, conn); len(d.waiting) > d.server.size+strangers {
		d.waiting[0].Close()
		d.waiting = d.waiting[1:]
	}
	return true
}

func (d *door) release(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.waiting {
		if c == conn {
			d.waiting = append(d.waiting[:i:i], d.waiting[i+1:]...)
			return
		}
	}
}

// admit has the handshake with who has called, and serves it.
func (d *door) admit(conn net.Conn) {
	defer d.release(conn)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive)
	}
	_ = conn.SetDeadline(time.Now().Add(helloLimit))
	x := protocol.Accept(func(t handshake.Tag) []byte {
		if t != d.tag {
			return nil
		}
		return d.secret
	})
	body, err := x.Hear(conn)
	var c card
	if err == nil {
		err = c.unmarshal(body)
	}
	if err != nil {
		conn.Close()
		return
	}
	d.release(conn) // another rank's entry may close the door before this one's verdict
	held := &heldConn{Conn: conn, open: make(chan struct{})}
	l, refusal := d.server.join(held, c)
	err = x.Tell(conn, []byte(refusal[:min(len(refusal), verdictBytes)]))
	if l == nil {
		conn.Close()
		return
	}
	if err == nil {
		held.sealed, err = seal.Secure(conn, x)
	}
	if err != nil {
		d.server.leave(c.rank, l)
	} else {
		_ = conn.SetDeadline(time.Time{})
		d.server.entered()
	}
	close(held.open)
	if err == nil {
		d.server.serve(c.rank, l)
	}
}

// heldConn is a connection on which nothing is read or written before the verdict, and everything is
// encrypted after it.
type heldConn struct {
	net.Conn
	open   chan struct{}
	sealed *seal.Conn // set when open is closed; nil: the handshake has failed
}

func (h *heldConn) Write(b []byte) (int, error) {
	if <-h.open; h.sealed == nil {
		return 0, net.ErrClosed
	}
	return h.sealed.Write(b)
}

func (h *heldConn) Read(b []byte) (int, error) {
	if <-h.open; h.sealed == nil {
		return 0, net.ErrClosed
	}
	return h.sealed.Read(b)
}

// close ends listening, and all handshakes.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.listen.Close()
	for _, c := range d.waiting {
		c.Close()
	}
	d.waiting = nil
}
