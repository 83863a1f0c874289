package ofi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"gormapy/gocore/fabric"
)

// card is what a rank publishes: the address of its endpoint.
type card struct {
	provider string
	name     []byte // the endpoint's, as libfabric has it
}

const cardVersion = 1

var errBadCard = errors.New("what it published is no card of this transport")

func (c *card) encode() ([]byte, error) {
	b := []byte{cardVersion, byte(len(c.provider))}
	b = append(b, c.provider...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.name)))
	b = append(b, c.name...)
	if len(c.provider) > 255 || len(c.name) == 0 || len(b) > fabric.CardBytes {
		return nil, fmt.Errorf("the address of provider %s has %d bytes, and there is room for %d",
			c.provider, len(c.name), fabric.CardBytes-len(b)+len(c.name))
	}
	return b, nil
}

func decodeCard(b []byte) (*card, error) {
	if len(b) < 2 || b[0] != cardVersion {
		return nil, errBadCard
	}
	n, b := int(b[1]), b[2:]
	if len(b) < n+2 {
		return nil, errBadCard
	}
	c := &card{provider: string(b[:n])}
	b = b[n:]
	n, b = int(binary.LittleEndian.Uint16(b)), b[2:]
	if n == 0 || len(b) < n {
		return nil, errBadCard
	}
	c.name = append([]byte(nil), b[:n]...)
	return c, nil
}

// token returns the token of the frames from one rank to another.
func token(secret []byte, from, to int) uint64 {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("gormapy ofi frame"))
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[:], uint64(from))
	binary.LittleEndian.PutUint64(pair[8:], uint64(to))
	m.Write(pair[:])
	return binary.LittleEndian.Uint64(m.Sum(nil))
}
