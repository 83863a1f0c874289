package tcp

import (
	"encoding/binary"
	"fmt"

	"gormapy/gocore/fabric"
)

const (
	frameMagic  = 0x31746d67 // gmt1
	prefixBytes = 8
	headBytes   = prefixBytes + fabric.HeaderBytes
)

// frameBytes returns the length of a frame with a payload of n bytes.
func frameBytes(n int) int { return headBytes + (n+7)&^7 }

// encodeHead writes the part of a frame that precedes its payload of n bytes.
func encodeHead(b []byte, h *fabric.Header, n int) {
	le := binary.LittleEndian
	b = b[:headBytes]
	le.PutUint32(b[0:], uint32(n))
	le.PutUint32(b[4:], frameMagic)
	b[8], b[9], b[10], b[11] = byte(h.Kind), h.Flags, 0, 0
	le.PutUint32(b[12:], h.Gen)
	le.PutUint32(b[16:], h.Ctx)
	le.PutUint32(b[20:], uint32(h.Src))
	le.PutUint32(b[24:], uint32(h.Tag))
	le.PutUint32(b[28:], h.Aux)
	le.PutUint64(b[32:], h.Len)
	le.PutUint64(b[40:], h.A)
	le.PutUint64(b[48:], h.B)
}

// decodePrefix decodes the begin of a frame, prefixBytes long, and returns the length of the
// payload.
func decodePrefix(b []byte) (n int, err error) {
	le := binary.LittleEndian
	if magic := le.Uint32(b[4:]); magic != frameMagic {
		return 0, fmt.Errorf("a frame begins with %#x, not %#x", magic, frameMagic)
	}
	size := le.Uint32(b)
	if size > maxShort {
		return 0, fmt.Errorf("a frame has %d bytes, there are at most %d", size, maxShort)
	}
	return int(size), nil
}

// decodeHead decodes what encodeHead wrote and returns the length of the payload.
// b has at least headBytes.
func decodeHead(b []byte, h *fabric.Header) (n int, err error) {
	le := binary.LittleEndian
	b = b[:headBytes]
	size, err := decodePrefix(b)
	if err != nil {
		return 0, err
	}
	if b[10] != 0 || b[11] != 0 {
		return 0, fmt.Errorf("a header has %#x in its unused bytes", le.Uint16(b[10:]))
	}
	*h = fabric.Header{
		Kind: fabric.Kind(b[8]), Flags: b[9], Gen: le.Uint32(b[12:]), Ctx: le.Uint32(b[16:]), Src: int32(le.Uint32(b[20:])),
		Tag: int32(le.Uint32(b[24:])), Aux: le.Uint32(b[28:]), Len: le.Uint64(b[32:]), A: le.Uint64(b[40:]), B: le.Uint64(b[48:]),
	}
	return size, nil
}
