package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	cardVersion  = 1
	maxAddresses = 16
)

// encodeCard encodes the addresses that a rank listens on: version, number of
// addresses, port, then for each address its family (4 or 6) and its bytes.
func encodeCard(addrs []netip.Addr, port uint16) []byte {
	card := []byte{cardVersion, byte(len(addrs))}
	card = binary.LittleEndian.AppendUint16(card, port)
	for _, a := range addrs {
		if a.Is4() {
			card = append(card, 4)
		} else {
			card = append(card, 6)
		}
		card = append(card, a.AsSlice()...)
	}
	return card
}

// decodeCard decodes a card that encodeCard made.
func decodeCard(card []byte) ([]netip.AddrPort, error) {
	if len(card) < 4 || card[0] != cardVersion {
		return nil, fmt.Errorf("a card of %d bytes is none of TCP's, version %d", len(card), cardVersion)
	}
	count, port, rest := int(card[1]), binary.LittleEndian.Uint16(card[2:]), card[4:]
	if count == 0 || count > maxAddresses || port == 0 {
		return nil, fmt.Errorf("a card has %d addresses and port %d", count, port)
	}
	list := make([]netip.AddrPort, 0, count)
	for range count {
		if len(rest) == 0 || rest[0] != 4 && rest[0] != 6 {
			return nil, errors.New("a card has an address of no known family")
		}
		n := map[byte]int{4: 4, 6: 16}[rest[0]]
		if len(rest) < 1+n {
			return nil, errors.New("a card ends in an address")
		}
		a, _ := netip.AddrFromSlice(rest[1 : 1+n])
		list, rest = append(list, netip.AddrPortFrom(a, port)), rest[1+n:]
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("a card has %d bytes too many", len(rest))
	}
	return list, nil
}
