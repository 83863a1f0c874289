package home

import (
	"crypto/rand"
	"encoding/json"
	"errors"
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
	At      time.Time // if Over: when the connection ended
}

// Home is mpiexec's side.
type Home struct {
	listener net.Listener
	secret   []byte
	events   chan Event
	waiting  *handshake.Waiting
	now      func() int64
}

const (
	// strangers is how many connections may be in their handshakes beside those of the job's ranks.
	strangers = 64
	// acceptPause is the pause after an accept that failed, for lack of descriptors for example.
	acceptPause = 10 * time.Millisecond
)

// Listen makes the home of a job of a number of ranks. now is mpiexec's clock, in nanoseconds.
func Listen(ranks int, now func() int64) (*Home, error) {
	h := &Home{secret: make([]byte, 32), events: make(chan Event, 1024), waiting: handshake.NewWaiting(ranks + strangers), now: now}
	if _, err := rand.Read(h.secret); err != nil {
		return nil, fmt.Errorf("make a secret: %w", err)
	}
	err := seal.Usable()
	if err != nil {
		return nil, err
	}
	if h.listener, err = net.Listen("tcp", ":0"); err != nil {
		return nil, fmt.Errorf("listen for the ranks: %w", err)
	}
	go h.accept()
	return h, nil
}

// Where returns where the ranks find this home: at the addresses of this host that lead to it from others,
// and from here, too. The loopback addresses are left out, because on another host they lead to that
// one; unless there are no others, when the ranks can't be elsewhere.
func (h *Home) Where() (addresses []string, secret []byte) {
	port := strconv.Itoa(h.listener.Addr().(*net.TCPAddr).Port)
	for _, ip := range published() {
		addresses = append(addresses, net.JoinHostPort(ip.String(), port))
	}
	return addresses, h.secret
}

func published() []net.IP {
	all, _ := net.Interfaces()
	return reachable(all, func(i *net.Interface) []net.Addr {
		addrs, _ := i.Addrs()
		return addrs
	})
}

// reachable returns the addresses of interfaces to publish.
func reachable(all []net.Interface, addresses func(*net.Interface) []net.Addr) (ips []net.IP) {
	var loopback []net.IP
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addresses(&i) {
			switch n, ok := a.(*net.IPNet); {
			case !ok || n.IP.IsLinkLocalUnicast():
			case n.IP.IsLoopback():
				loopback = append(loopback, n.IP)
			default:
				ips = append(ips, n.IP)
			}
		}
	}
	if len(ips) == 0 {
		return loopback
	}
	return ips
}

// Events are what happens to the ranks, for each rank in order.
func (h *Home) Events() <-chan Event { return h.events }

// Close ends listening. Connections stay.
func (h *Home) Close() { _ = h.listener.Close() }

func (h *Home) accept() {
	for {
		conn, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.waiting.Evict()
			time.Sleep(acceptPause)
			continue
		}
		h.waiting.Hold(conn)
		go func() {
			l := h.greet(conn)
			if l == nil {
				h.waiting.Release(conn)
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
	// It is of this job. From here on it is not evicted: the rank would take that for the end of mpiexec.
	if !h.waiting.Release(conn) || x.Tell(conn, nil) != nil {
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
			h.events <- Event{Link: l, Over: true, At: l.ended(err)}
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
