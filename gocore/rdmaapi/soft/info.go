package soft

import (
	"encoding/binary"
	"fmt"

	"gormapy/gocore/rdmaapi/backend"
)

const (
	secretBytes  = 32
	infoVersion  = 1
	maxAddresses = 8
)

// info is the connection info of a queue pair, for the peer.
type info struct {
	num       uint32
	secret    []byte
	addresses []string // of the listening socket
}

// bytes encodes an info: version, number of addresses, 2 bytes of zero, number,
// secret, and each address with its length before it.
func (i info) bytes() []byte {
	b := []byte{infoVersion, byte(len(i.addresses)), 0, 0}
	b = binary.LittleEndian.AppendUint32(b, i.num)
	b = append(b, i.secret...)
	for _, a := range i.addresses {
		b = append(b, byte(len(a)))
		b = append(b, a...)
	}
	return b
}

func parseInfo(b []byte) (i info, err error) {
	wrong := func(what string) (info, error) {
		return info{}, &backend.Errno{Name: "EINVAL", Text: "the connection info " + what}
	}
	if len(b) < 8+secretBytes {
		return wrong(fmt.Sprintf("is cut off: %d bytes of at least %d", len(b), 8+secretBytes))
	}
	if b[0] != infoVersion {
		return wrong(fmt.Sprintf("has version %d; this is version %d", b[0], infoVersion))
	}
	n := int(b[1])
	if n == 0 || n > maxAddresses {
		return wrong(fmt.Sprintf("has %d addresses", n))
	}
	i.num = binary.LittleEndian.Uint32(b[4:])
	i.secret = append([]byte(nil), b[8:8+secretBytes]...)
	b = b[8+secretBytes:]
	for range n {
		if len(b) == 0 || b[0] == 0 || len(b) < 1+int(b[0]) {
			return wrong("ends in an address")
		}
		i.addresses = append(i.addresses, string(b[1:1+int(b[0])]))
		b = b[1+int(b[0]):]
	}
	if len(b) != 0 {
		return wrong(fmt.Sprintf("has %d bytes too many", len(b)))
	}
	return i, nil
}
