package soft

import (
	"encoding/binary"
	"fmt"

	"gormapy/gocore/rdmaapi/backend"
)

// Sizes of frames.
const (
	headerBytes = 56
	segment     = 256 << 10 // longest payload of a frame
	maxText     = 512       // longest text of a nak
	maxMessage  = 1 << 30
)

// Kinds of frames. Those up to lastRequest are requests, numbered as backend.Op
// plus one.
const (
	frWrite       = 1
	frSend        = 3
	frRead        = 5
	frCompareSwap = 6
	frFetchAdd    = 7
	lastRequest   = 15
	frAck         = 16
	frData        = 17
	frFetched     = 18
	frNak         = 19
	frRNR         = 20
	frReceive     = 21
)

// Flags of frames.
const (
	flFirst  = 1 << 0 // the first piece of a request
	flLast   = 1 << 1 // the last one, of a request or of data
	flImm    = 1 << 2 // with immediate data
	flByAddr = 1 << 3 // the data is in the requester's memory, at local
	flagMask = 1<<4 - 1
)

// frame is the header that all data on a link has, little-endian.
type frame struct {
	kind    uint8  // @0
	flags   uint8  // @1
	status  uint8  // @2 of a nak; @3 is zero
	psn     uint32 // @4
	imm     uint32 // @8
	rkey    uint32 // @12
	n       uint64 // @16 payload, or bytes at local
	total   uint64 // @24 length of the whole message
	remote  uint64 // @32 address at the responder; offset in a message or in data
	local   uint64 // @40 address at the requester; compare
	operand uint64 // @48 swap, add, fetched value
}

func (f *frame) append(b []byte) []byte {
	b = append(b, f.kind, f.flags, f.status, 0)
	b = binary.LittleEndian.AppendUint32(b, f.psn)
	b = binary.LittleEndian.AppendUint32(b, f.imm)
	b = binary.LittleEndian.AppendUint32(b, f.rkey)
	b = binary.LittleEndian.AppendUint64(b, f.n)
	b = binary.LittleEndian.AppendUint64(b, f.total)
	b = binary.LittleEndian.AppendUint64(b, f.remote)
	b = binary.LittleEndian.AppendUint64(b, f.local)
	return binary.LittleEndian.AppendUint64(b, f.operand)
}

// payload returns how many bytes follow the header.
func (f *frame) payload() int {
	if f.flags&flByAddr != 0 || f.kind == frRead {
		return 0
	}
	return int(f.n)
}

// parse decodes a header of headerBytes and refuses one that no correct peer sends.
func parse(b []byte) (f frame, err error) {
	f = frame{
		kind: b[0], flags: b[1], status: b[2],
		psn: binary.LittleEndian.Uint32(b[4:]), imm: binary.LittleEndian.Uint32(b[8:]), rkey: binary.LittleEndian.Uint32(b[12:]),
		n: binary.LittleEndian.Uint64(b[16:]), total: binary.LittleEndian.Uint64(b[24:]), remote: binary.LittleEndian.Uint64(b[32:]),
		local: binary.LittleEndian.Uint64(b[40:]), operand: binary.LittleEndian.Uint64(b[48:]),
	}
	limit := uint64(0)
	switch f.kind {
	case frWrite, frSend:
		limit = segment
		if f.flags&flByAddr != 0 {
			limit = maxMessage
		}
		whole := f.flags&(flFirst|flLast) == flFirst|flLast
		if f.n > f.total || whole && f.n != f.total {
			return f, fmt.Errorf("a piece of %d bytes in a message of %d", f.n, f.total)
		}
	case frRead:
		limit = maxMessage
		if f.n != f.total {
			return f, fmt.Errorf("a read of %d and of %d bytes", f.n, f.total)
		}
	case frData:
		limit = segment
	case frNak:
		limit = maxText
		if s := backend.Status(f.status); s == backend.Success || s > backend.GeneralErr {
			return f, fmt.Errorf("a nak with status %d", f.status)
		}
	case frCompareSwap, frFetchAdd, frAck, frFetched, frRNR, frReceive:
	default:
		return f, fmt.Errorf("a frame of unknown kind %d", f.kind)
	}
	if f.n > limit || f.total > maxMessage || f.flags&^flagMask != 0 || b[3] != 0 {
		return f, fmt.Errorf("a frame of kind %d with length %d of %d, flags %#x", f.kind, f.n, f.total, f.flags)
	}
	return f, nil
}
