package soft

import (
	gocontext "context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
	"unsafe"

	"gormapy/gocore/handshake"
	"gormapy/gocore/rdmaapi/sockets"
)

// The bodies of the handshake's messages, all little-endian:
//
//	introduction  4 number of the queue pair, probe, 32 binding of what precedes
//	welcome       1 link.reaches, probe
//	ready         1 link.reaches
//
// A probe has 8 bytes for the address and 8 for the value.
const (
	probeBytes        = 16
	boundBytes        = 4 + probeBytes
	introductionBytes = boundBytes + 32
	welcomeBytes      = 1 + probeBytes
	readyBytes        = 1
)

var protocol = handshake.Protocol{Name: "soft", Version: 2, Limits: []int{introductionBytes, welcomeBytes, readyBytes}}

// patience is how long a peer may take for a message of the handshake.
const patience = 10 * time.Second

// redialTime is how long a dialer calls again whose connections end unanswered.
const redialTime = 5 * time.Second

var errUnauthenticated = errors.New("the peer could not prove that it has the connection info")

// flag encodes link.reaches.
func flag(reaches bool) []byte {
	if reaches {
		return []byte{1}
	}
	return []byte{0}
}

// hear takes the peer's next message, which has n bytes.
func hear(x *handshake.Exchange, conn net.Conn, n int) ([]byte, error) {
	said, err := x.Hear(conn)
	if errors.Is(err, handshake.ErrProof) || errors.Is(err, handshake.ErrLength) || err == nil && len(said) != n {
		return nil, errUnauthenticated
	}
	return said, err
}

// acceptedConn is a connection of a peer that has proved that it has the info of a
// queue pair here. The program here may not have called Connect yet.
type acceptedConn struct {
	conn         net.Conn
	x            *handshake.Exchange
	introduction []byte
}

func (ac *acceptedConn) from() uint32 { return binary.LittleEndian.Uint32(ac.introduction) }

// welcome does the agent's side of the handshake up to the introduction, and parks the
// connection with the queue pair that the peer names.
func (c *context) welcome(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // the socket is new
	var q *qp
	x := protocol.Accept(func(tag handshake.Tag) []byte {
		if q = c.find(tag); q == nil {
			return nil
		}
		c.acceptor.Greeted(conn)
		return q.mySecret()
	})
	introduction, err := hear(x, conn, introductionBytes)
	if err != nil {
		conn.Close()
		return
	}
	if !c.acceptor.Authenticated(conn) { // evicted meanwhile: the dialer tries again
		conn.Close()
		return
	}
	conn.SetDeadline(time.Time{}) //nolint:errcheck // as above
	q.park(&acceptedConn{conn, x, introduction})
}

// finish does the rest of the agent's side, once Connect was called. It returns the
// link, or why there is none.
func (ac *acceptedConn) finish(q *qp, secret []byte, remote info) (l *link, err error) {
	ac.conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // an error shows in the next read or write
	bound, binding := ac.introduction[:boundBytes], ac.introduction[boundBytes:]
	if !ac.x.Bound(remote.secret, bound, binding) {
		return nil, errUnauthenticated
	}
	l = newLink(q, ac.conn)
	l.reaches = l.try(bound[4:])
	defer func() {
		if err != nil {
			l.process.close()
			l = nil
		}
	}()
	ac.x.Use(slices.Concat(remote.secret, secret))
	if err := ac.x.Tell(ac.conn, append(flag(l.reaches), q.ctx.probeBytes()...)); err != nil {
		return l, err
	}
	ready, err := hear(ac.x, ac.conn, readyBytes)
	if err != nil {
		return l, err
	}
	l.reached = ready[0] == 1
	return l, ac.conn.SetDeadline(time.Time{})
}

// dial does the dialer's side. It waits as long as the peer's program takes to call
// Connect. opened gets the socket; closing the socket ends dial.
func dial(q *qp, secret []byte, remote info, opened func(net.Conn) bool) (l *link, err error) {
	err = sockets.Redial(redialTime, func() error {
		conn, err := reach(q.ctx.kind, remote.addresses)
		if err != nil {
			return err
		}
		if !opened(conn) {
			conn.Close()
			return net.ErrClosed
		}
		if l, err = introduce(q, conn, secret, remote); err != nil {
			conn.Close()
		}
		return err
	})
	return l, err
}

// goneError is the error of a dialer whose introduction is not answered. The agent may have
// evicted the connection before it read the introduction, or have no such queue pair.
type goneError struct{ num uint32 }

func (e goneError) Error() string {
	return fmt.Sprintf("the peer's queue pair %d has ended, or is connected to another one", e.num)
}

func (e goneError) Unwrap() error { return io.EOF }

// reach dials the addresses of a peer in turn until one accepts.
func reach(kind string, addresses []string) (net.Conn, error) {
	network := "tcp"
	if kind == "shm" {
		network = "unix"
	}
	var err error
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = sockets.Dial(gocontext.Background(), patience, network, a); err != nil {
			continue
		}
		if sockets.SameUser(conn) {
			return conn, nil
		}
		conn.Close()
		err = fmt.Errorf("a process of another user listens at %s", a)
	}
	return nil, err
}

func introduce(q *qp, conn net.Conn, secret []byte, remote info) (*link, error) {
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // an error shows in the next read or write
	gone := fmt.Errorf("the peer has no queue pair %d any more", remote.num)
	x, err := protocol.Call(conn, remote.secret)
	switch {
	case errors.Is(err, handshake.ErrUnknown):
		return nil, gone
	case errors.Is(err, handshake.ErrProof):
		return nil, errUnauthenticated
	case errors.Is(err, handshake.ErrForeign):
		return nil, errors.New("what answers is no queue pair")
	case err != nil:
		return nil, err
	}
	introduction := append(binary.LittleEndian.AppendUint32(nil, q.num), q.ctx.probeBytes()...)
	introduction = append(introduction, x.Bind(secret, introduction)...)
	if err := x.Tell(conn, introduction); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Time{}) //nolint:errcheck // as above
	x.Use(slices.Concat(secret, remote.secret))
	welcome, err := hear(x, conn, welcomeBytes)
	if errors.Is(err, io.EOF) {
		return nil, goneError{remote.num}
	}
	if err != nil {
		return nil, err
	}
	l := newLink(q, conn)
	l.reached = welcome[0] == 1
	l.reaches = l.try(welcome[1:])
	if err := x.Tell(conn, flag(l.reaches)); err != nil {
		l.process.close()
		return nil, err
	}
	return l, nil
}

// probeBytes returns address and value of the number that peers try to read.
func (c *context) probeBytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(uintptr(unsafe.Pointer(c.probe))))
	return binary.LittleEndian.AppendUint64(b, *c.probe)
}
