package soft

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
	"unsafe"

	"gormapy/gocore/rdmaapi/sockets"
)

// Messages of the handshake, all little-endian, each with magic and version:
//
//	challenge  8 magic, 16 nonce
//	hello      8 magic, 4 to, 4 from, 16 nonce, 8 address and 8 value of the probe,
//	           32 proof with the secret of to, 32 proof with that of from
//	welcome    8 magic (byte 5: link.reaches), 8 address and 8 value of the probe, 32 proof
//	ready      8 magic (byte 5: link.reaches), 32 proof
const (
	challengeBytes = 24
	helloBody      = 48
	helloBytes     = helloBody + 2*sha256.Size
	welcomeBody    = 24
	welcomeBytes   = welcomeBody + sha256.Size
	readyBody      = 8
	readyBytes     = readyBody + sha256.Size
)

// patience is how long a peer may take for a message of the handshake.
const patience = 10 * time.Second

var errUnauthenticated = errors.New("the peer could not prove that it has the connection info")

func magic(reaches bool) []byte {
	m := []byte("gmRC\x01\x00\x00\x00")
	if reaches {
		m[5] = 1
	}
	return m
}

func checkMagic(b []byte) error {
	m := magic(b[5] == 1)
	if !bytes.Equal(m, b[:8]) {
		return fmt.Errorf("what answers is no queue pair of this version (%q)", b[:8])
	}
	return nil
}

// proof returns the proof of knowing a secret, over the bytes sent so far.
func proof(secret []byte, what string, said ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	io.WriteString(h, what) //nolint:errcheck // a hash takes everything
	for _, s := range said {
		h.Write(s)
	}
	return h.Sum(nil)
}

// acceptedConn is a connection of a peer that has proved that it has the info of a
// queue pair here. The program here may not have called Connect yet.
type acceptedConn struct {
	conn      net.Conn
	challenge []byte
	hello     []byte
}

func (ac *acceptedConn) from() uint32 { return binary.LittleEndian.Uint32(ac.hello[12:]) }

// welcome does the agent's side of the handshake up to the hello, and parks the
// connection with the queue pair that the peer names.
func (c *context) welcome(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // the socket is new
	ac := &acceptedConn{conn: conn, challenge: append(magic(false), random(16)...), hello: make([]byte, helloBytes)}
	if _, err := conn.Write(ac.challenge); err != nil {
		conn.Close()
		return
	}
	if _, err := io.ReadFull(conn, ac.hello); err != nil || checkMagic(ac.hello) != nil {
		conn.Close()
		return
	}
	q := c.qp(binary.LittleEndian.Uint32(ac.hello[8:]))
	if q == nil || !q.provedTo(ac) {
		conn.Close()
		return
	}
	c.acceptor.Authenticated(conn)
	conn.SetDeadline(time.Time{}) //nolint:errcheck // as above
	q.park(ac)
}

// finish does the rest of the agent's side, once Connect was called. It returns the
// link, or why there is none.
func (ac *acceptedConn) finish(q *qp, secret []byte, remote info) (l *link, err error) {
	ac.conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // an error shows in the next read or write
	body := ac.hello[:helloBody]
	want := proof(remote.secret, "hello from", ac.challenge, body)
	if !hmac.Equal(want, ac.hello[helloBody+sha256.Size:]) {
		return nil, errUnauthenticated
	}
	l = newLink(q, ac.conn)
	l.reaches = l.try(ac.hello[32:48])
	defer func() {
		if err != nil {
			l.process.close()
			l = nil
		}
	}()
	both := append(append([]byte(nil), remote.secret...), secret...)
	welcome := append(magic(l.reaches), q.ctx.probeBytes()...)
	welcome = append(welcome, proof(both, "welcome", ac.challenge, ac.hello, welcome)...)
	ready := make([]byte, readyBytes)
	if _, err := ac.conn.Write(welcome); err != nil {
		return l, err
	}
	if _, err := io.ReadFull(ac.conn, ready); err != nil {
		return l, err
	}
	want = proof(both, "ready", ac.challenge, ac.hello, welcome, ready[:readyBody])
	if checkMagic(ready) != nil || !hmac.Equal(want, ready[readyBody:]) {
		return l, errUnauthenticated
	}
	l.reached = ready[5] == 1
	return l, ac.conn.SetDeadline(time.Time{})
}

// dial does the dialer's side. It waits as long as the peer's program takes to call
// Connect. opened gets the socket; closing the socket ends dial.
func dial(q *qp, secret []byte, remote info, opened func(net.Conn) bool) (*link, error) {
	for end := time.Now().Add(patience); ; {
		conn, err := reach(q.ctx.kind, remote.addresses)
		if err != nil {
			return nil, err
		}
		if !opened(conn) {
			conn.Close()
			return nil, net.ErrClosed
		}
		l, err := introduce(q, conn, secret, remote)
		if err == nil {
			return l, nil
		}
		conn.Close()
		if !sockets.Evicted(err) || time.Now().After(end) {
			return nil, err
		}
	}
}

// reach dials the addresses of a peer in turn until one accepts.
func reach(kind string, addresses []string) (net.Conn, error) {
	network := "tcp"
	if kind == "shm" {
		network = "unix"
	}
	var err error
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = sockets.Dialer(patience).Dial(network, a); err != nil {
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
	challenge := make([]byte, challengeBytes)
	if _, err := io.ReadFull(conn, challenge); err != nil {
		return nil, err
	}
	if err := checkMagic(challenge); err != nil {
		return nil, err
	}
	hello := magic(false)
	hello = binary.LittleEndian.AppendUint32(hello, remote.num)
	hello = binary.LittleEndian.AppendUint32(hello, q.num)
	hello = append(hello, random(16)...)
	hello = append(hello, q.ctx.probeBytes()...)
	body := hello[:helloBody:helloBody]
	hello = append(hello, proof(remote.secret, "hello to", challenge, body)...)
	hello = append(hello, proof(secret, "hello from", challenge, body)...)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Time{}) //nolint:errcheck // as above
	welcome := make([]byte, welcomeBytes)
	if _, err := io.ReadFull(conn, welcome); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the peer has no queue pair %d any more", remote.num)
		}
		return nil, err
	}
	both := append(append([]byte(nil), secret...), remote.secret...)
	if checkMagic(welcome) != nil || !hmac.Equal(proof(both, "welcome", challenge, hello, welcome[:welcomeBody]), welcome[welcomeBody:]) {
		return nil, errUnauthenticated
	}
	l := newLink(q, conn)
	l.reached = welcome[5] == 1
	l.reaches = l.try(welcome[8:24])
	ready := magic(l.reaches)
	ready = append(ready, proof(both, "ready", challenge, hello, welcome, ready)...)
	if _, err := conn.Write(ready); err != nil {
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
