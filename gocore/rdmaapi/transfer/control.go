package transfer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
)

// The protocol on the socket of an engine, the acceptor; the initiator is the engine
// that connects:
//
//	acceptor → initiator  greeting: magic, version, 3 bytes of zero, nonce
//	initiator → acceptor  hello and its proof
//	acceptor → initiator  answer and its proof
//	then, at any time, either one: goodbye
//
// Hello, answer and goodbye are preceded by their length in 4 bytes. A proof is the
// HMAC-SHA256, with the secret of the acceptor, over all bytes sent so far: only an
// engine that has the acceptor's descriptor is accepted, and only the acceptor
// itself can answer.
const (
	magic        = "gENG"
	version      = 1
	nonceBytes   = 16
	greeting     = 8 + nonceBytes
	idBytes      = 16
	secretBytes  = 32
	maxBody      = 64 << 10
	maxName      = 255
	maxLanes     = 64
	maxInfoBytes = 512
	goodbyeTime  = time.Second
)

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
	nonce    [nonceBytes]byte
	from, to [idBytes]byte
	name     string
	backend  string
	infos    [][]byte
}

func (h *hello) bytes() []byte {
	b := append(append(append([]byte(nil), h.nonce[:]...), h.from[:]...), h.to[:]...)
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
	copy(h.nonce[:], r.take(nonceBytes))
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

func proof(secret [secretBytes]byte, what string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, secret[:])
	m.Write([]byte(what))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

func readBody(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > uint32(limit) {
		return nil, fmt.Errorf("a message of %d bytes; the limit is %d", n, limit)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

func withLength(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func nonce() (n [nonceBytes]byte) {
	rand.Read(n[:]) //nolint:errcheck // it ends the program rather than fail
	return n
}

// slowness multiplies the time for a message before which the other end makes lanes.
// Some providers of libfabric take half a second for each on a busy machine.
const slowness = 4

// initiate does the initiator's side of the handshake and returns the infos of the
// acceptor's lanes. patience is the time for the greeting.
func initiate(conn net.Conn, to *Card, h hello, patience time.Duration) ([][]byte, error) {
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // a socket has deadlines
	var g [greeting]byte
	if _, err := io.ReadFull(conn, g[:]); err != nil {
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	if string(g[:4]) != magic {
		return nil, errors.New("what listens there is no engine")
	}
	if g[4] != version {
		return nil, fmt.Errorf("it speaks version %d; this is version %d", g[4], version)
	}
	h.nonce, h.to = nonce(), to.ID
	body := h.bytes()
	if _, err := conn.Write(append(withLength(body), proof(to.Secret, "hello", g[:], body)...)); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(slowness * patience)) //nolint:errcheck // a socket has deadlines
	said, err := readBody(conn, maxBody)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it does not know this descriptor: it is of another engine, which has ended")
	}
	if err != nil {
		return nil, err
	}
	var mac [sha256.Size]byte
	if _, err := io.ReadFull(conn, mac[:]); err != nil {
		return nil, err
	}
	if !hmac.Equal(mac[:], proof(to.Secret, "answer", g[:], body, said)) {
		return nil, errors.New("its answer has a wrong proof")
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

// respond does the acceptor's side of the handshake. decide gets the authenticated
// hello and returns the answer.
func respond(conn net.Conn, self *Card, decide func(hello) answer, patience time.Duration) error {
	conn.SetDeadline(time.Now().Add(slowness * patience)) //nolint:errcheck // a socket has deadlines
	g := append(append([]byte(magic), version, 0, 0, 0), make([]byte, nonceBytes)...)
	n := nonce()
	copy(g[8:], n[:])
	if _, err := conn.Write(g); err != nil {
		return err
	}
	body, err := readBody(conn, maxBody)
	if err != nil {
		return err
	}
	var mac [sha256.Size]byte
	if _, err := io.ReadFull(conn, mac[:]); err != nil {
		return err
	}
	h, err := parseHello(body)
	if err != nil {
		return err
	}
	if !hmac.Equal(mac[:], proof(self.Secret, "hello", g, body)) || h.to != self.ID {
		return errors.New("a caller without this engine's descriptor")
	}
	a := decide(h)
	said := a.bytes()
	conn.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // a socket has deadlines
	_, err = conn.Write(append(withLength(said), proof(self.Secret, "answer", g, body, said)...))
	if err == nil && a.refusal != "" {
		err = errors.New(a.refusal)
	}
	return err
}

// goodbye sends why the socket is being closed, as far as the other end still reads,
// and closes it.
func goodbye(conn net.Conn, why string) {
	conn.SetWriteDeadline(time.Now().Add(goodbyeTime))       //nolint:errcheck // an error shows in the write
	conn.Write(withLength([]byte(why[:min(len(why), 500)]))) //nolint:errcheck // the message is best effort
	conn.Close()
}

// ended waits for a goodbye or the end of the socket, and returns the reason.
func ended(conn net.Conn) string {
	b, err := readBody(conn, 1000)
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
