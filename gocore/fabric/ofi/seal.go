package ofi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
)

// nonce is what a rank draws when it makes its transport, and publishes.
type nonce [16]byte

func drawNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // it never fails
	return n
}

// seal makes or checks the tags of the frames from one rank to another. It is not safe for
// concurrent use.
//
// Its key is made of the job's secret, the two ranks and the receiver's nonce. The receiver's
// alone: it knows what it has drawn before the sender's card has come, which a frame may
// overtake. And a rank is one process for its whole life, so with a receiver's nonce there is
// one sender's transport, which numbers the tags that it makes.
type seal struct {
	token uint64
	tags  uint64      // that put has made
	gmac  cipher.AEAD // nil: the token is the tag
	// Arguments of gmac lie here, because those of an interface's method escape.
	number [12]byte
	tag    [tagBytes]byte
	made   [tagBytes]byte
}

// newSeal returns the seal of frames from one rank to another, which has drawn n.
func newSeal(secret []byte, from, to int, n nonce, authenticate bool) (*seal, error) {
	key := sealKey(secret, from, to, n, authenticate)
	if !authenticate {
		return &seal{token: binary.LittleEndian.Uint64(key)}, nil
	}
	block, err := aes.NewCipher(key[:16])
	if err != nil {
		return nil, fmt.Errorf("make AES of a key of 16 bytes: %w", err) // impossible
	}
	gmac, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make the GMAC that authenticates frames, with numbers for nonces, which GODEBUG=fips140=only forbids: %w", err)
	}
	return &seal{gmac: gmac}, nil
}

// sealKey derives what a seal is made of. A token, which everybody on the host may see, and a key have
// different labels, so that a rank that takes one for the other does not give the key away.
func sealKey(secret []byte, from, to int, n nonce, authenticate bool) []byte {
	m := hmac.New(sha256.New, secret)
	if authenticate {
		m.Write([]byte("gormapy ofi frames authenticate"))
	} else {
		m.Write([]byte("gormapy ofi frames token"))
	}
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[:], uint64(from))
	binary.LittleEndian.PutUint64(pair[8:], uint64(to))
	m.Write(pair[:])
	m.Write(n[:])
	return m.Sum(nil)
}

// put writes the tag into a frame, and the number of the tag, which is the GMAC's nonce. A frame that the
// provider refuses is made again later, perhaps with other contents and with the same number of the frame.
// The tag has another number then.
func (s *seal) put(b []byte) {
	s.tags++
	binary.LittleEndian.PutUint64(b[nonceOffset:], s.tags)
	copy(b[tagOffset:], s.compute(b))
}

// check reports whether a frame has the right tag. It clears the tag.
func (s *seal) check(b []byte) bool {
	copy(s.tag[:], b[tagOffset:])
	return subtle.ConstantTimeCompare(s.tag[:], s.compute(b)) == 1
}

// compute returns the tag of a frame, and clears the one that is in it.
func (s *seal) compute(b []byte) []byte {
	clear(b[tagOffset:prefixBytes])
	if s.gmac == nil {
		binary.LittleEndian.PutUint64(s.made[:], s.token)
		return s.made[:]
	}
	copy(s.number[:], b[nonceOffset:nonceOffset+8])
	return s.gmac.Seal(s.made[:0], s.number[:], nil, b)
}
