package tcp

import (
	"encoding/binary"
	"fmt"

	"gormapy/gocore/fabric"
)

const (
	frameMagic  = 'g' // of the byte that follows the length
	prefixBytes = 8
	numberMask  = 1<<24 - 1 // numbers of frames count modulo 2^24
	headBytes   = prefixBytes + fabric.HeaderBytes
)

// frameBytes returns the length of a frame with a payload of n bytes.
func frameBytes(n int) int { return headBytes + (n+7)&^7 }

// encodeHead writes the part of a frame that precedes its payload of n bytes.
func encodeHead(b []byte, h *fabric.Header, n int, number uint32) {
	le := binary.LittleEndian
	b = b[:headBytes]
	le.PutUint32(b[0:], uint32(n))
	le.PutUint32(b[4:], frameMagic|number<<8)
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
	if b[4] != frameMagic {
		return 0, fmt.Errorf("a frame has %#x behind its length, not %#x", b[4], frameMagic)
	}
	size := le.Uint32(b)
	if size > maxShort {
		return 0, fmt.Errorf("a frame has %d bytes, there are at most %d", size, maxShort)
	}
	return int(size), nil
}

// numberOf returns the number of a frame, of which b has at least prefixBytes.
func numberOf(b []byte) uint32 { return binary.LittleEndian.Uint32(b[4:]) >> 8 }

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
