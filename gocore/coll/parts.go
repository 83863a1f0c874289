package coll

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// Collectives with a count for each rank go by single copies, too (SingleCopyOp). A rank knows how many bytes it sends, but not
// how many the others do. So each decides alone how it publishes what it sends, and the ranks that read find that out:
//
//   - The slot has a head (partsHead), which is a source and the number of bytes.
//   - Few bytes follow in the slot, or in its data, or in its long slot if that is free (slotRoom). Then the rank need not wait for those that
//     read it, as on the board.
//   - Of more bytes the head says where they are, as in other collectives by single copies. Then the rank waits.
//   - What differs by reader, and is not for one reader alone, has a table in the slot's data: where the part of each rank begins,
//     and how long it is.
//
// A part that is longer than the room for it is the error of the rank that reads it, which the others don't notice, as that of a message.

// partsHead is what a rank publishes in its slot.
type partsHead struct {
	source       // addr 0: the data are in the slot; share inLong: in the long one
	bytes  int64 // of the part; inTable: of each rank another one
	short  [shortPart]byte
}

const (
	shortPart = 16
	inTable   = -1
)

var _ [shortSlot - unsafe.Sizeof(partsHead{})]struct{}

// partPlace is an entry of a table: where a part begins, from the beginning of the slot's data or of the source, and its number of bytes.
type partPlace struct{ off, bytes int64 }

const partPlaceBytes = int(unsafe.Sizeof(partPlace{}))

// trialAfter is after how many collectives on a communicator a rooted one may be the first by single copies. In the first one all ranks
// wait for all others (SingleCopyOp), which they don't have to for their parts; a communicator that is used for long needs that once.
const trialAfter = 8

// SingleCopyOpV is SingleCopyOp for a collective with a count for each rank: of the sides that have such, which it copies.
func (c *Comm) SingleCopyOpV(a *Args, send, recv *Vec) *SingleCopyOp {
	switch {
	case c.board == nil || c.singleCopy == singleCopyNo || c.Size < 2:
		return nil
	case a.Kind.tabled() && c.Size > 2 && 2*c.Size*partPlaceBytes > c.board.bytes: // no room for tables
		return nil
	case c.singleCopy == singleCopyUnknown && a.Kind.Rooted() && c.seq < trialAfter:
		return nil
	}
	d := c.takeCopy(a)
	d.vecs[0].set(send)
	d.vecs[1].set(recv)
	d.SendV, d.RecvV = &d.vecs[0], &d.vecs[1]
	d.start()
	return d
}

// tabled reports whether a rank may publish another part for each rank.
func (k Kind) tabled() bool { return k == KindScatterv || k == KindAlltoallv }

// set makes v a copy of other, which may be nil.
func (v *Vec) set(other *Vec) {
	if other == nil {
		*v = Vec{Counts: v.Counts[:0], Displs: v.Displs[:0]}
		return
	}
	v.Addr, v.Type = other.Addr, other.Type
	v.Counts, v.Displs = append(v.Counts[:0], other.Counts...), append(v.Displs[:0], other.Displs...)
}

// scheduleV is schedule for collectives with a count for each rank.
func (d *SingleCopyOp) scheduleV() []func() bool {
	switch {
	case d.Kind == KindGatherv && d.isRoot():
		return []func() bool{d.join(&d.k), d.read(&d.k, d.anyRank), then(d.collectParts), d.leave(&d.k), then(d.keepPart)}
	case d.Kind == KindGatherv:
		return []func() bool{d.publishing(&d.k, d.writeParts), d.leave(&d.k), d.waitExposed(&d.k, true)}
	case d.Kind == KindScatterv && d.isRoot():
		return []func() bool{d.publishing(&d.k, d.writeParts), d.leave(&d.k), then(d.keepPart), d.waitExposed(&d.k, false)}
	case d.Kind == KindScatterv:
		return []func() bool{d.join(&d.k), d.read(&d.k, d.root), then(func() { d.takePart(d.Recv, d.Root) }), d.leave(&d.k)}
	}
	return []func() bool{d.publishing(&d.k, d.writeParts), d.read(&d.k, d.anyRank), then(d.collectParts), d.leave(&d.k), then(d.keepPart), d.waitExposed(&d.k, false)}
}

// waitExposed is wait for a rank whose memory others read; another one does not wait.
func (d *SingleCopyOp) waitExposed(k *uint32, rooted bool) func() bool {
	wait := d.wait(k, rooted)
	return func() bool { return d.nexposes == 0 || wait() }
}

// keepPart copies what this rank sends to itself, like Op.keep.
func (d *SingleCopyOp) keepPart() {
	d.keep()
	if to, from := d.kept(); to.Type != nil && from.Bytes() > to.Bytes() {
		d.tooLong(d.c.Rank, from.Bytes(), to.Bytes())
	}
}

func (d *SingleCopyOp) tooLong(r, n, room int) {
	if d.own == nil {
		d.own = tooLong(d.Kind.String(), d.c.Rank, r, n, room)
	}
}

func tooLong(name string, me, r, n, room int) *errs.Error {
	if r == me {
		return errs.New(errs.Truncate, "%s: this rank sends itself %d bytes for a part of %d bytes (both counts must be equal)", name, n, room)
	}
	return errs.New(errs.Truncate, "%s: rank %d of the communicator has sent %d bytes for a part of %d bytes (the counts of both must be equal)", name, r, n, room)
}

// head returns where rank r publishes its partsHead of collective k.
func (b *Board) head(r int, k uint32) *partsHead { return (*partsHead)(b.place(r, k, sourceBytes)) }

// slotData returns the address of the data of rank r's slot of collective k.
func (b *Board) slotData(r int, k uint32) unsafe.Pointer { return b.place(r, k, b.bytes) }

// inLong is the share of a source without an address if the data are in the rank's long slot.
const inLong = 1

// slotRoom returns room for n bytes, in this rank's slot or in its long one, and the source that says which; nil if there is none: others may
// still read the long one.
func (d *SingleCopyOp) slotRoom(n int) (to unsafe.Pointer, where source) {
	b := d.c.board
	switch {
	case n <= b.bytes:
		return b.slotData(d.c.Rank, d.k), source{}
	case n <= b.longBytes && (n <= pairMost || kernelIsSlow()) && b.room(d.k, n):
		return b.place(d.c.Rank, d.k, n), source{share: inLong}
	}
	return nil, source{}
}

// slotAt returns where the data in rank r's slot, or in its long one, begin.
func (d *SingleCopyOp) slotAt(r int, where *source) unsafe.Pointer {
	b := d.c.board
	if where.share == inLong {
		return b.place(r, d.k, b.longBytes)
	}
	return b.slotData(r, d.k)
}

// table returns the table in rank r's slot.
func (d *SingleCopyOp) table(r int) []partPlace {
	return unsafe.Slice((*partPlace)(d.c.board.slotData(r, d.k)), d.c.Size)
}

// writeParts writes what this rank publishes into its slot.
func (d *SingleCopyOp) writeParts() {
	b, me := d.c.board, d.c.Rank
	h := b.head(me, d.k)
	*h = partsHead{}
	if d.Kind.tabled() && d.c.Size > 2 {
		h.bytes = inTable
		d.writeTable(h)
		return
	}
	p := d.sentTo(1 - me) // to any rank, if there are more
	n := p.Bytes()
	h.bytes = int64(n)
	if n <= shortPart {
		if n > 0 {
			pack(h.short[:n], p)
		}
		return
	}
	to, where := d.slotRoom(n)
	switch {
	case to != nil:
		h.source = where
		atom.Writes(to, n)
		pack(unsafe.Slice((*byte)(to), n), p)
	case d.Kind == KindAlltoallv && d.SendInPlace:
		h.source = d.packed(p, n)
	default:
		h.source = d.dense(p, 1)
	}
}

// sentTo returns this rank's part for rank r.
func (d *SingleCopyOp) sentTo(r int) p2p.Buf {
	switch {
	case d.Kind == KindAlltoallv && d.SendInPlace:
		return d.RecvV.part(r)
	case d.Kind.tabled():
		return d.SendV.part(r)
	case d.SendInPlace:
		return d.RecvV.part(d.c.Rank)
	}
	return d.Send
}

// writeTable writes a table, and the parts if there is room.
func (d *SingleCopyOp) writeTable(h *partsHead) {
	b, me := d.c.board, d.c.Rank
	data := b.slotData(me, d.k)
	atom.Writes(data, b.bytes)
	table := d.table(me)
	at := int64(d.c.Size * partPlaceBytes)
	total := int64(0)
	for i := range table {
		table[i] = partPlace{}
		if i != me {
			table[i].bytes = int64(d.sentTo(i).Bytes())
			total += table[i].bytes
		}
	}
	switch {
	case total == 0:
		return
	case at+total <= int64(b.bytes):
		d.packParts(data, table, at)
		return
	}
	if to, where := d.slotRoom(int(max(total, int64(b.bytes)+1))); to != nil {
		h.source = where
		atom.Writes(to, int(total))
		d.packParts(to, table, 0)
		return
	}
	var lo, hi uintptr
	for i := range table {
		if p := d.sentTo(i); table[i].bytes > 0 {
			from := uintptr(p.Addr)
			if hi == 0 || from < lo {
				lo = from
			}
			hi = max(hi, from+uintptr(table[i].bytes))
		}
	}
	v, staged := d.SendV, d.stagesIn(int(total)/(d.c.Size-1), int(total))
	if !d.SendInPlace && v.Addr != nil && v.Type.Dense() {
		first := unsafe.Add(v.Addr, int(lo-uintptr(v.Addr)))
		if !staged || d.c.eng.Share(first, int(hi-lo)) != 0 {
			for i := range table {
				if table[i].bytes > 0 {
					table[i].off = int64(uintptr(d.sentTo(i).Addr) - lo)
				}
			}
			h.source = d.source(first, int(hi-lo))
			return
		}
	}
	var to unsafe.Pointer // the parts are packed: what lies between them may be no memory
	if staged {
		to = d.stage(int(total))
	}
	if to == nil {
		to = d.temp(int(total))
	}
	atom.Writes(to, int(total))
	d.packParts(to, table, 0)
	h.source = d.source(to, int(total))
}

// packParts copies the parts for the other ranks one after the other, from offset at of to on.
func (d *SingleCopyOp) packParts(to unsafe.Pointer, table []partPlace, at int64) {
	for i := range table {
		if n := table[i].bytes; n > 0 {
			table[i].off = at
			pack(unsafe.Slice((*byte)(unsafe.Add(to, at)), n), d.sentTo(i))
			at += n
		}
	}
}

// collectParts takes the other ranks' parts for this one.
func (d *SingleCopyOp) collectParts() {
	for i := range d.c.Size - 1 {
		r := d.c.after(i)
		d.takePart(d.RecvV.part(r), r)
	}
}

// takePart copies rank r's part for this rank to dst.
func (d *SingleCopyOp) takePart(dst p2p.Buf, r int) {
	b := d.c.board
	h := b.head(r, d.k)
	off, n := 0, int(h.bytes)
	from := unsafe.Pointer(&h.short)
	if n > shortPart {
		from = d.slotAt(r, &h.source)
	}
	if n == inTable {
		place := d.table(r)[d.c.Rank]
		off, n = int(place.off), int(place.bytes)
		from = unsafe.Add(d.slotAt(r, &h.source), off)
	}
	d.takeFrom(dst, r, h.addr == 0, from, off, n)
}

// takeFrom copies n bytes that rank r has sent this one to dst: from its slot, or at offset off of its memory.
func (d *SingleCopyOp) takeFrom(dst p2p.Buf, r int, inSlot bool, slot unsafe.Pointer, off, n int) {
	room := dst.Bytes()
	if n > room {
		d.tooLong(r, n, room)
		n = room
	}
	switch {
	case n == 0:
	case inSlot:
		atom.Reads(slot, n)
		if dst.Type.Dense() {
			fabric.Copy(dst.Addr, slot, n)
		} else {
			dst.Type.Unpack(dst.Addr, unsafe.Slice((*byte)(slot), n), dst.Count)
		}
	case dst.Type.Dense():
		d.get(dst.Addr, r, off, n)
	default:
		flat := d.temp(n)
		if d.get(flat, r, off, n); d.err == nil {
			dst.Type.Unpack(dst.Addr, unsafe.Slice((*byte)(flat), n), dst.Count)
		}
	}
}
