package home

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"gormapy/gocore/handshake"
	"gormapy/gocore/seal"
)

// Event is what has happened to a rank: it has connected (Message is nil and Over false),
// said something, or its connection is over.
type Event struct {
	Link    *Link
	Message *Message
	Over    bool
}

// Home is mpiexec's side.
type Home struct {
	listener net.Listener
	secret   []byte
	events   chan Event
	shaking  chan struct{} // one for each handshake in progress
	now      func() int64
}

// maxShaking bounds the connections that have not proved yet that they are of this job.
const maxShaking = 64

// Listen makes the home of a job. now is mpiexec's clock, in nanoseconds.
func Listen(now func() int64) (*Home, error) {
	h := &Home{secret: make([]byte, 32), events: make(chan Event, 1024), shaking: make(chan struct{}, maxShaking), now: now}
	if _, err := rand.Read(h.secret); err != nil {
		return nil, fmt.Errorf("make a secret: %w", err)
	}
	var err error
	if h.listener, err = net.Listen("tcp", ":0"); err != nil {
		return nil, fmt.Errorf("listen for the ranks: %w", err)
	}
	go h.accept()
	return h, nil
}

// Where returns where the ranks find this home: at any address of this host.
func (h *Home) Where() (addresses []string, secret []byte) {
	port := strconv.Itoa(h.listener.Addr().(*net.TCPAddr).Port)
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			addresses = append(addresses, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return addresses, h.secret
}

// Events are what happens to the ranks, for each rank in order.
func (h *Home) Events() <-chan Event { return h.events }

// Close ends listening. Connections stay.
func (h *Home) Close() { _ = h.listener.Close() }

func (h *Home) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.shaking <- struct{}{}
		go func() {
			l := h.greet(conn)
			<-h.shaking
			if l == nil {
				conn.Close()
				return
			}
			h.serve(l)
		}()
	}
}

// greet has the handshake, and returns nil if the other side is no rank of this job.
func (h *Home) greet(conn net.Conn) *Link {
	_ = conn.SetDeadline(time.Now().Add(answerLimit))
	tag := protocol.Tag(h.secret)
	x := protocol.Accept(func(t handshake.Tag) []byte {
		if t != tag {
			return nil
		}
		return h.secret
	})
	body, err := x.Hear(conn)
	l := &Link{}
	if err != nil || json.Unmarshal(body, &l.Hello) != nil || l.Hello.Rank < 0 || l.Hello.Rank >= l.Hello.Size {
		return nil
	}
	if x.Tell(conn, nil) != nil {
		return nil
	}
	if l.conn, err = seal.Secure(conn, x); err != nil {
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	return l
}

// serve passes on what the rank says. It answers questions for the time itself, at once.
func (h *Home) serve(l *Link) {
	h.events <- Event{Link: l}
	for {
		m, err := l.Receive()
		if err != nil {
			h.events <- Event{Link: l, Over: true}
			return
		}
		if m.Kind == Clock {
			m.Times[1] = h.now()
			if l.Send(m) != nil {
				l.Close()
			}
			continue
		}
		h.events <- Event{Link: l, Message: m}
	}
}
