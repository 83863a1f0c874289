package handshake

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// The lengths of the messages and their parts, see the package comment.
const (
	magic          = "gormapy"
	openingBytes   = 16
	tagBytes       = 16
	nonceBytes     = 32
	helloBytes     = openingBytes + tagBytes + nonceBytes
	challengeBytes = openingBytes + nonceBytes + proofBytes
	lengthBytes    = 4
	proofBytes     = sha256.Size
)

var (
	// ErrForeign is the error of a peer that speaks another protocol.
	ErrForeign = errors.New("it does not speak this protocol")
	// ErrUnknown is the error of a tag that the acceptor does not know.
	ErrUnknown = errors.New("it does not know this secret")
	// ErrProof is the error of a message without a valid proof.
	ErrProof = errors.New("it could not prove that it knows the secret")
	// ErrNoKeys is the error of a keyed protocol in a program that may not make its keys.
	ErrNoKeys = errors.New("the keys of this handshake are of X25519, which this program may not use: GODEBUG must not have fips140=only")
	// ErrLength is the error of a body that is longer than the protocol allows.
	ErrLength = errors.New("the message is too long")
)

// VersionError is the error of a peer that speaks another version of the protocol.
type VersionError struct{ Theirs, Ours byte }

func (e *VersionError) Error() string {
	return fmt.Sprintf("it speaks version %d; this is version %d", e.Theirs, e.Ours)
}

// Protocol describes the messages that follow hello and challenge.
type Protocol struct {
	Name    string // at most 8 bytes
	Version byte
	// Limits has the greatest length of the body of each message. The initiator sends
	// the first.
	Limits []int
	// Keyed says that the nonces are public keys, so that both sides can have Keys.
	Keyed bool
}

// Tag names a secret.
type Tag [tagBytes]byte

// Tag returns the tag of a secret.
func (p *Protocol) Tag(secret []byte) (t Tag) {
	copy(t[:], sum(secret, magic+" "+p.Name+" tag"))
	return t
}

func (p *Protocol) opening() []byte {
	var b [openingBytes]byte
	copy(b[:], magic)
	b[len(magic)] = p.Version
	copy(b[len(magic)+1:], p.Name)
	return b[:]
}

// checkOpening checks the peer's opening.
func (p *Protocol) checkOpening(b []byte) error {
	theirs := b[len(magic)]
	other := *p
	other.Version = theirs
	switch {
	case string(b) != string(other.opening()):
		return ErrForeign
	case theirs != p.Version:
		return &VersionError{theirs, p.Version}
	}
	return nil
}

// Exchange is one side of a handshake. It is not safe for concurrent use.
type Exchange struct {
	protocol  *Protocol
	initiator bool
	find      func(Tag) []byte
	secret    []byte
	private   *ecdh.PrivateKey // of this side's nonce, if the protocol is keyed
	err       error

	said  []byte // by both, and the begin of the awaited message
	begun int    // where the awaited message begins in said
	steps int    // number of complete messages
	body  []byte // of the peer's last message
}

// Initiate begins the initiator's side. The caller sends hello. If there is none, because no key can
// be made, x has an error, which its methods return.
func (p *Protocol) Initiate(secret []byte) (x *Exchange, hello []byte) {
	x = &Exchange{protocol: p, initiator: true, secret: secret}
	var nonce []byte
	if nonce, x.err = x.nonce(); x.err != nil {
		return x, nil
	}
	tag := p.Tag(secret)
	hello = append(p.opening(), tag[:]...)
	return x, x.say(append(hello, nonce...))
}

// Accept begins the acceptor's side. find returns the secret with a tag, nil if there is
// none.
func (p *Protocol) Accept(find func(Tag) []byte) *Exchange {
	return &Exchange{protocol: p, find: find}
}

// Steps returns how many messages have been said and taken, the hello being the first.
func (x *Exchange) Steps() int { return x.steps }

// Over reports whether all messages of the protocol have been said and taken.
func (x *Exchange) Over() bool { return x.steps == 2+len(x.protocol.Limits) }

// Body returns the body of the peer's last message, nil before the first.
func (x *Exchange) Body() []byte { return x.body }

// Missing returns how many bytes may be taken now. If it is 0, the handshake is over or it
// is this side's turn.
func (x *Exchange) Missing() int {
	if x.Over() || x.initiator == (x.steps%2 == 0) {
		return 0
	}
	have := len(x.said) - x.begun
	switch {
	case x.steps < 2 && have < openingBytes: // it is checked before the rest is awaited
		return openingBytes - have
	case x.steps == 0:
		return helloBytes - have
	case x.steps == 1:
		return challengeBytes - have
	case have < lengthBytes:
		return lengthBytes - have
	}
	return lengthBytes + x.length() + proofBytes - have
}

// length returns the length of the body of the awaited message.
func (x *Exchange) length() int { return int(binary.LittleEndian.Uint32(x.said[x.begun:])) }

// Take takes bytes of the peer, at most Missing. If it returns an answer the caller sends
// it. After an error, which may come with an answer, the caller drops the connection.
func (x *Exchange) Take(b []byte) (answer []byte, err error) {
	if x.err != nil {
		return nil, x.err
	}
	if len(b) == 0 {
		return nil, nil
	}
	if more := len(b) - x.Missing(); more > 0 {
		x.err = fmt.Errorf("%d bytes more than the handshake has", more)
		return nil, x.err
	}
	x.said = append(x.said, b...)
	answer, x.err = x.check()
	return answer, x.err
}

// check checks the awaited message as far as it has arrived.
func (x *Exchange) check() (answer []byte, err error) {
	m := x.said[x.begun:]
	switch {
	case x.steps < 2 && len(m) == openingBytes:
		if err = x.protocol.checkOpening(m); errors.As(err, new(*VersionError)) && !x.initiator {
			answer = x.refusal()
		}
		return answer, err
	case x.steps >= 2 && len(m) == lengthBytes:
		if limit := x.protocol.Limits[x.steps-2]; binary.LittleEndian.Uint32(m) > uint32(limit) {
			return nil, fmt.Errorf("%w: %d bytes; the limit is %d", ErrLength, binary.LittleEndian.Uint32(m), limit)
		}
		return nil, nil
	case x.Missing() > 0:
		return nil, nil
	}
	switch x.steps {
	case 0:
		if x.secret = x.find(Tag(m[openingBytes:])); x.secret == nil {
			return x.refusal(), ErrUnknown
		}
		nonce, err := x.nonce()
		if err != nil {
			return nil, err
		}
		x.taken()
		challenge := append(x.protocol.opening(), nonce...)
		return x.say(append(challenge, x.proof(false, x.said, challenge)...)), nil
	case 1:
		if [nonceBytes]byte(m[openingBytes:]) == [nonceBytes]byte{} {
			return nil, ErrUnknown
		}
		rest := len(m) - proofBytes
		if !hmac.Equal(m[rest:], x.proof(false, x.said[:x.begun+rest])) {
			return nil, ErrProof
		}
	default:
		rest := len(m) - proofBytes
		if !hmac.Equal(m[rest:], x.proof(!x.initiator, x.said[:x.begun+rest])) {
			return nil, ErrProof
		}
		x.body = bytes.Clone(m[lengthBytes:rest])
	}
	x.taken()
	return nil, nil
}

// taken ends the awaited message.
func (x *Exchange) taken() {
	x.begun = len(x.said)
	x.steps++
}

func (x *Exchange) refusal() []byte {
	return append(x.protocol.opening(), make([]byte, challengeBytes-openingBytes)...)
}

// say adds a message of this side.
func (x *Exchange) say(m []byte) []byte {
	x.said = append(x.said, m...)
	x.taken()
	return m
}

// Say returns this side's next message, which the caller sends. It must be this side's
// turn.
func (x *Exchange) Say(body []byte) []byte {
	m := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	m = append(m, body...)
	return x.say(append(m, x.proof(x.initiator, x.said, m)...))
}

// Use makes secret the one with which later messages of both sides are proved.
func (x *Exchange) Use(secret []byte) { x.secret = secret }

// Bind returns a proof, with any secret, of the hello, the challenge and b. It is for the
// body of a message that has to be proved with a second secret, which the peer may learn
// later.
func (x *Exchange) Bind(secret, b []byte) []byte {
	return sum(secret, magic+" "+x.protocol.Name+" bound\x00", x.said[:helloBytes+challengeBytes], b)
}

// Bound reports whether proof is what Bind returned at the other side.
func (x *Exchange) Bound(secret, b, proof []byte) bool { return hmac.Equal(proof, x.Bind(secret, b)) }

// proof returns the proof of a message of one of the sides.
func (x *Exchange) proof(initiator bool, said ...[]byte) []byte {
	return sum(x.secret, magic+" "+x.protocol.Name+" "+role(initiator)+"\x00", said...)
}

func sum(secret []byte, label string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(label))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}
