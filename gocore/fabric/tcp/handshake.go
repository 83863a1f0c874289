package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// The lengths of the handshake's messages, see the package comment.
const (
	magicBytes     = 8
	jobBytes       = 16
	nonceBytes     = 32
	helloBytes     = magicBytes + jobBytes + 4 + 4 + nonceBytes
	challengeBytes = magicBytes + nonceBytes
	responseBytes  = sha256.Size
	verdictBytes   = 8 + sha256.Size
	longestMessage = helloBytes

	handshakeMagic = "gormapy\x01"
)

// The verdicts.
const (
	verdictUse   = 1
	verdictYield = 2
)

var errOtherJob = errors.New("it does not know this job's secret")

// identity has the rank and the secret by which a rank proves itself in handshakes.
type identity struct {
	secret     []byte
	job        [jobBytes]byte
	rank, size int
}

func newIdentity(secret []byte, rank, size int) *identity {
	id := &identity{secret: secret, rank: rank, size: size}
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("gormapy tcp job"))
	copy(id.job[:], m.Sum(nil))
	return id
}

// stage is the step that a handshake waits for or has reached.
type stage uint8

const (
	awaitHello     stage = iota // acceptor
	awaitResponse               // acceptor
	proved                      // acceptor: the initiator has proved its identity, the verdict is due
	awaitChallenge              // initiator
	awaitVerdict                // initiator
	settled                     // initiator: the verdict is known
)

// handshake is one side of a handshake. It takes and returns bytes and does not
// depend on sockets.
type handshake struct {
	id    *identity
	stage stage
	peer  int  // world rank; an acceptor knows it from the hello
	use   bool // the verdict, once settled

	said [helloBytes + challengeBytes]byte // hello and challenge, which all MACs cover
	buf  [longestMessage]byte              // buf[:have] is the begin of the awaited message
	have int
}

// accepting begins the acceptor's side.
func accepting(id *identity) *handshake { return &handshake{id: id, stage: awaitHello, peer: -1} }

// initiating begins the initiator's side; the caller sends hello.
func initiating(id *identity, peer int) (h *handshake, hello []byte) {
	h = &handshake{id: id, stage: awaitChallenge, peer: peer}
	b := append(h.said[:0], handshakeMagic...)
	b = append(b, id.job[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(id.rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(peer))
	_, _ = rand.Read(h.said[len(b):helloBytes]) // it never fails
	return h, h.said[:helloBytes]
}

// missing returns how many bytes of the awaited message have not arrived, 0 if no
// message is awaited.
func (h *handshake) missing() int {
	want := map[stage]int{awaitHello: helloBytes, awaitResponse: responseBytes, awaitChallenge: challengeBytes, awaitVerdict: verdictBytes}[h.stage]
	return want - h.have
}

// take adds bytes, at most missing of them, and returns the answer to send, if any.
// After an error the caller drops the connection.
func (h *handshake) take(b []byte) (answer []byte, err error) {
	if len(b) > h.missing() {
		return nil, fmt.Errorf("%d bytes more than the handshake has", len(b)-h.missing())
	}
	h.have += copy(h.buf[h.have:], b)
	if h.missing() > 0 || h.have == 0 {
		return nil, nil
	}
	m := h.buf[:h.have]
	h.have = 0
	switch h.stage {
	case awaitHello:
		return h.takeHello(m)
	case awaitResponse:
		if !hmac.Equal(m, h.mac("initiator", nil)) {
			return nil, errOtherJob
		}
		h.stage = proved
	case awaitChallenge:
		if string(m[:magicBytes]) != handshakeMagic {
			return nil, errors.New("it does not speak this protocol")
		}
		copy(h.said[helloBytes:], m)
		h.stage = awaitVerdict
		return h.mac("initiator", nil), nil
	case awaitVerdict:
		if !hmac.Equal(m[8:], h.mac("acceptor", m[:8])) {
			return nil, errOtherJob
		}
		h.stage, h.use = settled, m[0] == verdictUse
	}
	return nil, nil
}

func (h *handshake) takeHello(m []byte) (challenge []byte, err error) {
	id := h.id
	if string(m[:magicBytes]) != handshakeMagic {
		return nil, errors.New("it does not speak this protocol")
	}
	if !hmac.Equal(m[magicBytes:][:jobBytes], id.job[:]) {
		return nil, errOtherJob
	}
	ranks := m[magicBytes+jobBytes:]
	from, to := binary.LittleEndian.Uint32(ranks), binary.LittleEndian.Uint32(ranks[4:])
	if uint64(from) >= uint64(id.size) || from == uint32(id.rank) || to != uint32(id.rank) {
		return nil, fmt.Errorf("rank %d wants rank %d, this is rank %d of %d", from, to, id.rank, id.size)
	}
	copy(h.said[:], m)
	h.peer, h.stage = int(from), awaitResponse
	copy(h.said[helloBytes:], handshakeMagic)
	_, _ = rand.Read(h.said[helloBytes+magicBytes:]) // it never fails
	return h.said[helloBytes:], nil
}

// verdict returns the acceptor's last message, for an initiator that is proved.
func (h *handshake) verdict(use bool) []byte {
	var word [8]byte
	word[0] = verdictYield
	if use {
		word[0] = verdictUse
	}
	return append(word[:], h.mac("acceptor", word[:])...)
}

func (h *handshake) mac(role string, word []byte) []byte {
	m := hmac.New(sha256.New, h.id.secret)
	m.Write([]byte("gormapy tcp " + role))
	m.Write(h.said[:])
	m.Write(word)
	return m.Sum(nil)
}
