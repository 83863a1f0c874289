package shm

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys/atom"
)

const (
	line       = 64
	ringHeader = 2 * line
	recordData = 1 << 24
	recordSkip = 2 << 24
	linesMask  = 1<<24 - 1
	// prefix is the commit word, the payload's length and the header.
	prefix = 8 + fabric.HeaderBytes
)

// ring is one side's view of a ring: the shared words, and this side's position.
type ring struct {
	head  *uint64
	base  unsafe.Pointer // first record
	lines uint64         // capacity
	pos   uint64         // lines written (sender) or consumed (receiver) so far
	seen  uint64         // sender: last known head
}

func newRing(mem []byte) ring {
	return ring{
		head:  (*uint64)(unsafe.Pointer(&mem[0])),
		base:  unsafe.Pointer(&mem[ringHeader]),
		lines: uint64(len(mem)-ringHeader) / line,
	}
}

// maxPayload returns the longest payload of a record that takes a quarter of the
// ring, so that a sender never waits for the ring to drain completely.
func maxPayload(ringBytes int) int { return (ringBytes-ringHeader)/4/line*line - prefix }

func (r *ring) at(pos uint64) unsafe.Pointer { return unsafe.Add(r.base, (pos%r.lines)*line) }

// send writes one record, or returns false if there is no room. If the payload
// faults, the record was never there: the next one is written in its place.
func (r *ring) send(h *fabric.Header, payload []byte) bool {
	need := uint64(prefix+len(payload)+line-1) / line
	skip := uint64(0)
	if left := r.lines - r.pos%r.lines; left < need {
		skip = left
	}
	// One line more, for the commit word behind the record.
	if r.pos+skip+need+1 > r.seen+r.lines {
		r.seen = atom.Load64(r.head)
		if r.pos+skip+need+1 > r.seen+r.lines {
			return false
		}
	}
	if skip > 0 {
		*(*uint32)(r.base) = 0
		atom.Store32((*uint32)(r.at(r.pos)), recordSkip|uint32(skip))
		r.pos += skip
	}
	p := r.at(r.pos)
	*(*uint32)(r.at(r.pos + need)) = 0
	*(*uint32)(unsafe.Add(p, 4)) = uint32(len(payload))
	*(*fabric.Header)(unsafe.Add(p, 8)) = *h
	if len(payload) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(p, prefix)), len(payload)), payload)
	}
	r.pos += need
	atom.Publish32((*uint32)(p), recordData|uint32(need))
	prefetchWrite(r.at(r.pos + 1)) // of the next record's successor, whose commit word the next call clears; the receiver's cache has it
	return true
}

// receive passes the next message to deliver, or returns false if there is none.
func (r *ring) receive(deliver func(h *fabric.Header, payload []byte)) bool {
	for {
		p := r.at(r.pos)
		word := atom.Load32((*uint32)(p))
		if word == 0 {
			return false
		}
		data := word&recordData != 0
		prefetchRead(r.at(r.pos + uint64(word&linesMask))) // the next commit word, which is looked at after this message
		if data {
			length := *(*uint32)(unsafe.Add(p, 4))
			deliver((*fabric.Header)(unsafe.Add(p, 8)), unsafe.Slice((*byte)(unsafe.Add(p, prefix)), int(length)))
		}
		r.pos += uint64(word & linesMask)
		atom.Store64(r.head, r.pos)
		if data {
			return true
		}
	}
}

// empty reports whether all messages have been delivered. Any thread of the receiver may
// call it. It is certain only if the sender has ended.
func (r *ring) empty() bool { return atom.Load32((*uint32)(r.at(atom.Load64(r.head)))) == 0 }
