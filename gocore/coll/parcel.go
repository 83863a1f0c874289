package coll

import (
	"encoding/binary"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// A parcel is what goes in one message for several ranks, by their nodes' leaders: blocks of
// data one after the other, each with its length before it. A leader does not know how long
// the blocks of others are. So a block of more than a limit, which all ranks know, is not in
// the parcel: only its length is, and the block goes straight from its source to its
// destination, which posts the receive when it has got the parcel.
//
// The direct messages are the last step of both sides: a rank that waited for them earlier
// could wait for one that gets the parcel only after this rank has passed it on.

const (
	// parcelBlock is the limit of a block in bytes.
	parcelBlock = 512
	// parcelBytes bounds the blocks of all ranks in a parcel.
	parcelBytes = 64 << 10
	// parcelHead is the length of a block's length.
	parcelHead = 8
)

// inParcel is the largest block that goes in a parcel.
func (c *Comm) inParcel() int { return min(parcelBlock, parcelBytes/c.Size) }

// outgoing is a parcel that is being filled.
type outgoing struct {
	mem   []byte
	limit int
}

// parcel returns an empty parcel with room for n blocks.
func (o *Op) parcel(n int) *outgoing {
	limit := o.c.inParcel()
	room := n * (parcelHead + limit)
	return &outgoing{unsafe.Slice((*byte)(o.temp(room)), room)[:0], limit}
}

// add appends a block, or its length if it is to go straight to its destination.
func (p *outgoing) add(b p2p.Buf) {
	n := b.Bytes()
	p.mem = binary.LittleEndian.AppendUint64(p.mem, uint64(n))
	if n > 0 && n <= p.limit {
		p.mem = p.mem[:len(p.mem)+n]
		pack(p.mem[len(p.mem)-n:], b)
	}
}

// pass appends n blocks of another parcel.
func (p *outgoing) pass(from *incoming, n int) {
	for range n {
		if length, data, ok := from.next(); ok {
			p.mem = binary.LittleEndian.AppendUint64(p.mem, uint64(length))
			p.mem = append(p.mem, data...)
		}
	}
}

func (p *outgoing) buf() p2p.Buf { return raw(unsafe.Pointer(unsafe.SliceData(p.mem)), len(p.mem)) }

// opened returns the parcel for the rank that has filled it.
func (p *outgoing) opened(o *Op) *incoming { return &incoming{o: o, mem: p.mem, limit: p.limit} }

// incoming is a parcel to read.
type incoming struct {
	o     *Op
	from  int
	mem   []byte
	limit int
	req   *p2p.Request // until it is open
}

// recvParcel receives a parcel of at most n blocks. open is called at the beginning of the next
// step.
func (o *Op) recvParcel(n, from int) *incoming {
	limit := o.c.inParcel()
	room := n * (parcelHead + limit)
	p := &incoming{o: o, from: from, limit: limit, mem: unsafe.Slice((*byte)(o.temp(room)), room)}
	o.recv(raw(unsafe.Pointer(unsafe.SliceData(p.mem)), room), from)
	p.req = o.wait[o.used-1]
	return p
}

func (p *incoming) open() { p.mem = p.mem[:p.req.Status().Bytes] }

// next takes the next block out of the parcel: its length and, unless it goes straight to its
// destination, its data.
func (p *incoming) next() (length int, data []byte, ok bool) {
	if len(p.mem) < parcelHead {
		p.damaged()
		return 0, nil, false
	}
	n := binary.LittleEndian.Uint64(p.mem)
	p.mem = p.mem[parcelHead:]
	if n > uint64(p.limit) {
		return int(n), nil, true
	}
	if n > uint64(len(p.mem)) {
		p.damaged()
		return 0, nil, false
	}
	data, p.mem = p.mem[:n], p.mem[n:]
	return int(n), data, true
}

// damaged ends the collective: a parcel has not as many blocks as it should.
func (p *incoming) damaged() {
	p.o.fail(errs.New(errs.Intern, "%s: the message from rank %d of the communicator, which passes on data of others, is incomplete", p.o.Name(), p.from))
}

// deliver stores the next block, which is that of rank from, in b, or begins to receive it
// from there.
func (p *incoming) deliver(b p2p.Buf, from int) {
	n, data, ok := p.next()
	switch {
	case !ok:
	case n > p.limit:
		p.o.recv(b, from)
	case n > b.Bytes():
		p.o.fail(errs.New(errs.Truncate, "%s: rank %d of the communicator has sent %d bytes for a part of %d bytes (the counts of both must be equal)",
			p.o.Name(), from, n, b.Bytes()))
	case n > 0 && b.Type.Dense():
		copy(unsafe.Slice((*byte)(b.Addr), n), data)
	case n > 0:
		b.Type.Unpack(b.Addr, data, b.Count)
	}
}

// fail sets the error with which the collective ends after this step.
func (o *Op) fail(e *errs.Error) {
	if o.err == nil {
		o.err = e
	}
}
