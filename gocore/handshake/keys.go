package handshake

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// keyBytes is the length of each of the keys.
const keyBytes = 32

// Usable returns why this program can't make the keys of handshakes, nil if it can.
func Usable() error {
	if _, err := ecdh.X25519().GenerateKey(rand.Reader); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoKeys, err)
	}
	return nil
}

// nonce makes this side's nonce.
func (x *Exchange) nonce() ([]byte, error) {
	if !x.protocol.Keyed {
		b := make([]byte, nonceBytes)
		rand.Read(b) //nolint:errcheck // it ends the program rather than fail
		return b, nil
	}
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoKeys, err)
	}
	x.private = private
	return private.PublicKey().Bytes(), nil
}

// Keys returns the keys for what this side sends and for what the other one sends. The
// handshake is over, and its protocol is keyed.
func (x *Exchange) Keys() (out, in []byte, err error) {
	if x.private == nil || !x.Over() {
		return nil, nil, errors.New("a handshake has keys when it is over, and if its protocol is keyed")
	}
	at := openingBytes + tagBytes // of the nonce in the hello
	if x.initiator {
		at = helloBytes + openingBytes // in the challenge
	}
	public, err := ecdh.X25519().NewPublicKey(x.said[at : at+nonceBytes])
	if err != nil {
		return nil, nil, err // impossible: it has the right length
	}
	shared, err := x.private.ECDH(public)
	if err != nil {
		return nil, nil, fmt.Errorf("its nonce is no public key: %w", err)
	}
	material, salt := slices.Concat(x.secret, shared), sha256.Sum256(x.said)
	if out, err = x.key(material, salt[:], x.initiator); err == nil {
		in, err = x.key(material, salt[:], !x.initiator)
	}
	return out, in, err
}

// key derives the key for what one of the sides sends.
func (x *Exchange) key(material, salt []byte, initiator bool) ([]byte, error) {
	return hkdf.Key(sha256.New, material, salt, magic+" "+x.protocol.Name+" "+role(initiator)+" key", keyBytes)
}

// role names a side.
func role(initiator bool) string {
	if initiator {
		return "initiator"
	}
	return "acceptor"
}
