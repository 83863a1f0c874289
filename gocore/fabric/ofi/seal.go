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
// one sender's transport, which uses each number once.
type seal struct {
	token uint64
	gmac  cipher.AEAD // nil: the token is the tag
	// Arguments of gmac lie here, because those of an interface's method escape.
	number [12]byte
	tag    [tagBytes]byte
	made   [tagBytes]byte
}

// newSeal returns the seal of frames from one rank to another, which has drawn n.
func newSeal(secret []byte, from, to int, n nonce, authenticate bool) *seal {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("gormapy ofi frames"))
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[:], uint64(from))
	binary.LittleEndian.PutUint64(pair[8:], uint64(to))
	m.Write(pair[:])
	m.Write(n[:])
	key := m.Sum(nil)
	if !authenticate {
		return &seal{token: binary.LittleEndian.Uint64(key)}
	}
	block, err := aes.NewCipher(key[:16])
	if err == nil {
		var gmac cipher.AEAD
		if gmac, err = cipher.NewGCM(block); err == nil {
			return &seal{gmac: gmac}
		}
	}
	panic(fmt.Sprintf("make AES-GCM of a key of 16 bytes: %v", err)) // impossible
}

// put writes the tag into a frame, whose number is in its prefix.
func (s *seal) put(b []byte) {
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
	copy(s.number[:], b[numberOffset:numberOffset+8])
	return s.gmac.Seal(s.made[:0], s.number[:], nil, b)
}
