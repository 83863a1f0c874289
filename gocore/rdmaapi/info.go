package rdmaapi

import (
	"encoding/binary"
	"hash/crc32"
)

// The connection info that peers exchange: magic, version, length of the back end's
// name, length of the payload in 2 bytes, name, payload, and a CRC-32 of all that
// precedes.
const (
	infoMagic   = "gRDM"
	infoVersion = 1
	infoHead    = 8
	maxInfo     = 1024
)

func envelope(name string, payload []byte) []byte {
	b := append([]byte(infoMagic), infoVersion, byte(len(name)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(payload)))
	b = append(append(b, name...), payload...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// open checks the info b of back end name and returns its payload.
func open(name string, b []byte) ([]byte, *Error) {
	s := sizes{"info": int64(len(b))}
	wrong := func(format string, args ...any) ([]byte, *Error) {
		return nil, refuse("EINVAL", "connect", s, format+": pass on what the peer's QueuePair.info() returned", args...)
	}
	if len(b) < infoHead+4 || string(b[:4]) != infoMagic {
		return wrong("these %d bytes are no connection info", len(b))
	}
	if b[4] != infoVersion {
		return wrong("the connection info has version %d; this is version %d", b[4], infoVersion)
	}
	n, m := int(b[5]), int(binary.LittleEndian.Uint16(b[6:]))
	if want := infoHead + n + m + 4; len(b) != want {
		return wrong("the connection info has %d bytes and should have %d", len(b), want)
	}
	if crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return wrong("the connection info is damaged")
	}
	if peer := string(b[infoHead : infoHead+n]); peer != name {
		return nil, refuse("EINVAL", "connect", s, "the peer's queue pair is of back end %q, this one of %q: open devices of the same back end", peer, name)
	}
	return b[infoHead+n : infoHead+n+m], nil
}
