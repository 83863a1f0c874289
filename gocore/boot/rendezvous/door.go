package rendezvous

import (
	"errors"
	"fmt"
	"net"
	"strconv"
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
	// waiting are in their handshakes. A rank of the job that is evicted comes again.
	waiting *handshake.Waiting
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
		d := &door{server: s, secret: secret, tag: protocol.Tag(secret), listen: l, waiting: handshake.NewWaiting(s.size + strangers)}
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
			d.waiting.Evict()
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if d.waiting.Hold(conn) {
			go d.admit(conn)
		}
	}
}

// admit has the handshake with who has called, and serves it.
func (d *door) admit(conn net.Conn) {
	defer d.waiting.Release(conn)
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
	// Another rank's entry may close the door before this one's verdict.
	if !d.waiting.Release(conn) {
		conn.Close()
		return
	}
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
// encrypted after it. Its deadlines before the verdict are those of the handshake, which admit sets and
// clears; so the link that it is given to waits until then before it sets one of its own:
//
//	admit: deadline of the handshake, verdict, no deadline, close(open)
//	link:                                                               deadline, write
type heldConn struct {
	net.Conn
	open   chan struct{}
	sealed *seal.Conn // set when open is closed; nil: the handshake has failed
}

func (h *heldConn) SetWriteDeadline(t time.Time) error {
	<-h.open
	return h.Conn.SetWriteDeadline(t)
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
	d.listen.Close()
	d.waiting.Close()
}
