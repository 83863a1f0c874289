package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"gormapy/gocore/handshake"
)

// The protocol on the socket of an engine, the acceptor, is the handshake of package
// handshake with the acceptor's secret; the initiator is the engine that connects. The
// bodies are a hello of the initiator and an answer of the acceptor. So only an engine
// that has the acceptor's descriptor is accepted, and only one that has it can answer.
// Bodies are not encrypted. Then either one may send a goodbye at any time, preceded by its length in 4
// bytes.
const (
	idBytes      = 16
	secretBytes  = 32
	maxBody      = 64 << 10
	maxName      = 255
	maxLanes     = 64
	maxInfoBytes = 512
	maxGoodbye   = 1000
	goodbyeTime  = time.Second
)

var protocol = handshake.Protocol{Name: "transfer", Version: 2, Limits: []int{maxBody, maxBody}}

var errProof = errors.New("its answer has a wrong proof")

// Card is the descriptor of an engine.
type Card struct {
	Name    string
	ID      [idBytes]byte
	Secret  [secretBytes]byte
	Backend string
	Address string // host:port of its socket
}

// hello is the message of the initiator.
type hello struct {
	from, to [idBytes]byte
	name     string
	backend  string
	infos    [][]byte
}

func (h *hello) bytes() []byte {
	b := append(append([]byte(nil), h.from[:]...), h.to[:]...)
	b = append(append(b, byte(len(h.name))), h.name...)
	b = append(append(b, byte(len(h.backend))), h.backend...)
	return appendInfos(b, h.infos)
}

func appendInfos(b []byte, infos [][]byte) []byte {
	b = append(b, byte(len(infos)))
	for _, i := range infos {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(i)))
		b = append(b, i...)
	}
	return b
}

// reader decodes a message. After the first missing part all others are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return make([]byte, min(n, maxBody))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) infos() [][]byte {
	n := int(r.take(1)[0])
	if n == 0 || n > maxLanes {
		r.bad = true
		return nil
	}
	var all [][]byte
	for range n {
		size := int(binary.LittleEndian.Uint16(r.take(2)))
		if size > maxInfoBytes {
			r.bad = true
		}
		all = append(all, slices.Clone(r.take(size)))
	}
	return all
}

func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return errors.New("the message is malformed")
	}
	return nil
}

func parseHello(b []byte) (h hello, err error) {
	r := reader{b: b}
	copy(h.from[:], r.take(idBytes))
	copy(h.to[:], r.take(idBytes))
	h.name = string(r.take(int(r.take(1)[0])))
	h.backend = string(r.take(int(r.take(1)[0])))
	h.infos = r.infos()
	return h, r.end()
}

// answer is the message of the acceptor: infos, or the reason of its refusal.
type answer struct {
	infos   [][]byte
	refusal string
}

func (a *answer) bytes() []byte {
	if a.refusal != "" {
		return append([]byte{0}, a.refusal[:min(len(a.refusal), 1000)]...)
	}
	return appendInfos([]byte{1}, a.infos)
}

func parseAnswer(b []byte) (a answer, err error) {
	r := reader{b: b}
	if r.take(1)[0] == 0 {
		a.refusal = string(r.b)
		if r.bad || a.refusal == "" {
			return a, errors.New("the answer is malformed")
		}
		return a, nil
	}
	a.infos = r.infos()
	return a, r.end()
}

// slowness multiplies the time for a message before which the other end makes lanes.
// Some providers of libfabric take half a second for each on a busy machine.
const slowness = 4

// initiate does the initiator's side of the handshake and returns the infos of the
// acceptor's lanes. patience is the time for the challenge.
func initiate(conn net.Conn, to *Card, h hello, patience time.Duration) ([][]byte, error) {
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // a socket has deadlines
	x, err := protocol.Call(conn, to.Secret[:])
	switch {
	case errors.Is(err, handshake.ErrForeign):
		return nil, errors.New("what listens there is no engine")
	case errors.Is(err, handshake.ErrUnknown):
		return nil, errors.New("it does not know this descriptor: it is of another engine, which has ended")
	case errors.Is(err, handshake.ErrProof):
		return nil, errProof
	case errors.As(err, new(*handshake.VersionError)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	h.to = to.ID
	if err := x.Tell(conn, h.bytes()); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(slowness * patience)) //nolint:errcheck // a socket has deadlines
	said, err := x.Hear(conn)
	switch {
	case errors.Is(err, handshake.ErrProof):
		return nil, errProof
	case errors.Is(err, io.EOF):
		// It may also have evicted this connection: the caller tries again.
		return nil, fmt.Errorf("it has ended, or does not know this descriptor: %w", io.EOF)
	case err != nil:
		return nil, err
	}
	a, err := parseAnswer(said)
	if err != nil {
		return nil, err
	}
	if a.refusal != "" {
		return nil, fmt.Errorf("it refuses: %s", a.refusal)
	}
	if len(a.infos) != len(h.infos) {
		return nil, fmt.Errorf("it has %d lanes for %d", len(a.infos), len(h.infos))
	}
	return a.infos, nil
}

// respond does the acceptor's side of the handshake. greeted is called for a caller that
// names this engine, decide gets its authenticated hello and returns the answer, or an error if there is to be
// none.
func respond(conn net.Conn, self *Card, greeted func(), decide func(hello) (answer, error), patience time.Duration) error {
	conn.SetDeadline(time.Now().Add(slowness * patience)) //nolint:errcheck // a socket has deadlines
	x := protocol.Accept(func(tag handshake.Tag) []byte {
		if tag != protocol.Tag(self.Secret[:]) {
			return nil
		}
		greeted()
		return self.Secret[:]
	})
	said, err := x.Hear(conn)
	if err != nil {
		return err
	}
	h, err := parseHello(said)
	if err != nil {
		return err
	}
	if h.to != self.ID {
		return errors.New("a caller without this engine's descriptor")
	}
	a, err := decide(h)
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // a socket has deadlines
	if err = x.Tell(conn, a.bytes()); err == nil && a.refusal != "" {
		err = errors.New(a.refusal)
	}
	return err
}

// goodbye sends why the socket is being closed, as far as the other end still reads,
// and closes it.
func goodbye(conn net.Conn, why string) {
	b := []byte(why[:min(len(why), maxGoodbye)])
	conn.SetWriteDeadline(time.Now().Add(goodbyeTime))                              //nolint:errcheck // an error shows in the write
	conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)) //nolint:errcheck // the message is best effort
	conn.Close()
}

// ended waits for a goodbye or the end of the socket, and returns the reason.
func ended(conn net.Conn) string {
	b, err := readGoodbye(conn)
	switch {
	case err == nil:
		return string(b)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it has ended"
	case errors.Is(err, net.ErrClosed):
		return "the connection was closed here"
	}
	return err.Error()
}

func readGoodbye(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxGoodbye {
		return nil, fmt.Errorf("a goodbye of %d bytes; the limit is %d", n, maxGoodbye)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
