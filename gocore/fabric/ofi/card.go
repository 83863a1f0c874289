package ofi

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gormapy/gocore/fabric"
)

// card is what a rank publishes: the address of its endpoint, and what others seal frames to
// it with.
type card struct {
	provider string
	name     []byte // the endpoint's, as libfabric has it
	nonce    nonce
}

const cardVersion = 2

var errBadCard = errors.New("what it published is no card of this transport")

// encode encodes a card: version, length of the provider's name, the name, length of the
// address (2 bytes), the address, nonce.
func (c *card) encode() ([]byte, error) {
	b := []byte{cardVersion, byte(len(c.provider))}
	b = append(b, c.provider...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.name)))
	b = append(b, c.name...)
	b = append(b, c.nonce[:]...)
	if len(c.provider) > 255 || len(c.name) == 0 || len(b) > fabric.CardBytes {
		return nil, fmt.Errorf("the address of provider %s has %d bytes, and there is room for %d",
			c.provider, len(c.name), fabric.CardBytes-len(b)+len(c.name))
	}
	return b, nil
}

func decodeCard(b []byte) (*card, error) {
	if len(b) < 2 || len(b) > fabric.CardBytes || b[0] != cardVersion {
		return nil, errBadCard
	}
	n, b := int(b[1]), b[2:]
	if len(b) < n+2 {
		return nil, errBadCard
	}
	c := &card{provider: string(b[:n])}
	b = b[n:]
	n, b = int(binary.LittleEndian.Uint16(b)), b[2:]
	if n == 0 || len(b) < n+len(c.nonce) {
		return nil, errBadCard
	}
	c.name = append([]byte(nil), b[:n]...)
	copy(c.nonce[:], b[n:])
	return c, nil
}
