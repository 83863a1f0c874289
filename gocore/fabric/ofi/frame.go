package ofi

import (
	"encoding/binary"
	"unsafe"

	"gormapy/gocore/fabric"
)

// prefixBytes is the size of the prefix, with which every frame begins (little-endian).
//
//	0  4  kind
//	4  4  rank of the sender
//	8  8  number of the frame, from 1 on
//	16 8  number of the tag, see seal
//	24 16 tag
const (
	numberOffset = 8
	nonceOffset  = 16
	tagOffset    = 24
	tagBytes     = 16
	prefixBytes  = tagOffset + tagBytes
)

// Kinds of frames.
const (
	frameMessage = 1 // a header and a payload
	frameAck     = 2 // slots of puts that have arrived, 2 bytes each
	frameBye     = 3 // empty: the last frame of a transport that closes
	frameHello   = 4 // empty: before the first operation, so that the target sends this rank its goodbye
)

// frameBytes is the longest frame. Providers over message endpoints (ofi_rxm)
// send up to 16 KiB, their own header included, without a rendezvous.
const frameBytes = 16 << 10

const (
	rxmHeader = 128 // more than ofi_rxm puts before a frame
	maxShort  = frameBytes - rxmHeader - prefixBytes - 48
)

var _ [48]byte = [fabric.HeaderBytes]byte{}

// putPrefix writes a prefix without the tag and its number, see seal.
func putPrefix(b []byte, kind byte, src int, number uint64) {
	_ = b[prefixBytes-1]
	binary.LittleEndian.PutUint32(b, uint32(kind))
	binary.LittleEndian.PutUint32(b[4:], uint32(src))
	binary.LittleEndian.PutUint64(b[numberOffset:], number)
}

// frame is a decoded frame. It refers to the bytes that it was decoded from.
type frame struct {
	kind   byte
	src    int
	number uint64
	header *fabric.Header
	rest   []byte
}

// decodeFrame decodes a frame, and checks all but its tag and number. b is aligned to 8
// bytes.
func decodeFrame(b []byte, ranks int) (f frame, ok bool) {
	if len(b) < prefixBytes {
		return f, false
	}
	kind := binary.LittleEndian.Uint32(b)
	src := binary.LittleEndian.Uint32(b[4:])
	f.number = binary.LittleEndian.Uint64(b[numberOffset:])
	if uint64(src) >= uint64(ranks) {
		return f, false
	}
	f.src = int(src)
	f.rest = b[prefixBytes:]
	switch kind {
	case frameMessage:
		f.kind = frameMessage
		if len(f.rest) < fabric.HeaderBytes {
			return f, false
		}
		f.header = (*fabric.Header)(unsafe.Pointer(&f.rest[0]))
		f.rest = f.rest[fabric.HeaderBytes:]
		return f, f.header.Kind != fabric.KindNone && f.header.Kind < fabric.Kinds
	case frameAck:
		f.kind = frameAck
		return f, len(f.rest)%2 == 0
	case frameBye, frameHello:
		f.kind = byte(kind)
		return f, len(f.rest) == 0
	}
	return f, false
}
