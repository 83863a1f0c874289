package coll

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// Blocking exchanges among the neighbors of a topology go by single copies, too (SingleCopyOp). As in collectives with a count for each
// rank (parts.go), a rank decides alone how it publishes what it sends, and those at the other ends of its edges find that out. It waits
// for its own neighbors only: for those that send to it, and, if they copy from its memory, for those that it sends to.

// edgesHead is what a rank publishes in its slot.
type edgesHead struct {
	source        // addr 0: the data are in the slot; share inLong: in the long one
	bytes   int64 // of the message that goes along all edges; inTable: each has its own
	entries int64 // of the table
	short   [shortMessage]byte
}

const shortMessage = 8

var _ [shortSlot - unsafe.Sizeof(edgesHead{})]struct{}

// edgePlace is an entry of a table: to which rank an edge goes, and where what goes along it begins, from the beginning of the slot's data or
// of the source. The table is at the beginning of the slot's data or, if there is no room, of the source.
type edgePlace struct{ rank, off, bytes int64 }

const edgePlaceBytes = int(unsafe.Sizeof(edgePlace{}))

// edges are those of an exchange.
type edges struct {
	out, in  []Edge
	to, from []bool           // whether they go to, or come from, a rank
	next     []int            // by rank: from where on in its table the edge is that comes from there next
	tables   []unsafe.Pointer // by rank: a copy of its table, if that is not in its slot
}

func (x *edges) set(size int, out, in []Edge) {
	if len(x.next) != size {
		x.next, x.tables = make([]int, size), make([]unsafe.Pointer, size)
	}
	x.out, x.to = append(x.out[:0], out...), marked(x.to, size, out)
	x.in, x.from = append(x.in[:0], in...), marked(x.from, size, in)
}

func marked(ranks []bool, size int, all []Edge) []bool {
	if len(ranks) != size {
		ranks = make([]bool, size)
	}
	clear(ranks)
	for i := range all {
		ranks[all[i].Rank] = true
	}
	return ranks
}

// forget drops the addresses.
func (x *edges) forget() {
	clear(x.out)
	clear(x.in)
	clear(x.tables)
}

// SingleCopyNeighbor is SingleCopyOp for Neighbor, which copies the lists of edges. In KindNeighborAllgather the same goes along all edges.
func (c *Comm) SingleCopyNeighbor(call Call, out, in []Edge) *SingleCopyOp {
	if c.board == nil || c.singleCopy == singleCopyNo || c.Size < 2 {
		return nil
	}
	d := c.takeCopy(&Args{Call: call})
	d.edges.set(c.Size, out, in)
	d.start()
	return d
}

// neighborly reports whether the ranks read of their neighbors only.
func (k Kind) neighborly() bool { return k == KindNeighborAllgather || k == KindNeighborAlltoall }

func (d *SingleCopyOp) scheduleEdges() []func() bool {
	return []func() bool{d.publishing(&d.k, d.writeEdges), d.read(&d.k, d.sends), then(d.collectEdges), d.leave(&d.k), then(d.keepEdges), d.waitReceivers}
}

// sends reports whether an edge comes from rank r.
func (d *SingleCopyOp) sends(r int) bool { return d.edges.from[r] }

// waitReceivers is wait for the ranks that copy from this rank's memory.
func (d *SingleCopyOp) waitReceivers() bool {
	for ; d.nexposes > 0 && d.at < d.c.Size; d.at++ {
		if d.at == d.c.Rank || !d.edges.to[d.at] {
			continue
		}
		done := &d.c.board.ranks[d.at].done
		if int32(atom.Load32(done)-d.k) < 0 {
			d.c.board.wait(&d.waiting, true) // a rank that leaves after this rings
			if int32(atom.Load32(done)-d.k) < 0 {
				return false
			}
		}
	}
	d.c.board.wait(&d.waiting, false)
	return true
}

// edgesHead returns where rank r publishes its head of collective k.
func (b *Board) edgesHead(r int, k uint32) *edgesHead {
	return (*edgesHead)(b.place(r, k, sourceBytes))
}

// writeEdges writes what this rank publishes into its slot.
func (d *SingleCopyOp) writeEdges() {
	b, me := d.c.board, d.c.Rank
	h := b.edgesHead(me, d.k)
	*h = edgesHead{}
	if d.Kind == KindNeighborAlltoall {
		h.bytes = inTable
		d.writeEdgeTable(h)
		return
	}
	if len(d.edges.out) == 0 {
		return
	}
	p := d.edges.out[0].Buf
	n := p.Bytes()
	h.bytes = int64(n)
	if n <= shortMessage {
		if n > 0 {
			pack(h.short[:n], p)
		}
		return
	}
	if to, where := d.slotRoom(n); to != nil {
		h.source = where
		atom.Writes(to, n)
		pack(unsafe.Slice((*byte)(to), n), p)
		return
	}
	h.source = d.dense(p, 1)
}

// writeEdgeTable writes a table, and the parts if there is room.
func (d *SingleCopyOp) writeEdgeTable(h *edgesHead) {
	b := d.c.board
	data := b.slotData(d.c.Rank, d.k)
	out := d.edges.out
	size, total := len(out)*edgePlaceBytes, 0
	for i := range out {
		if out[i].Rank != d.c.Rank {
			total += out[i].Bytes()
		}
	}
	h.entries = int64(len(out))
	switch {
	case size+total <= b.bytes:
		atom.Writes(data, size+total)
		d.packEdges(data, edgeTable(data, len(out)), size)
		return
	case size > b.bytes:
		to := d.room(size+total, size+total)
		atom.Writes(to, size+total)
		d.packEdges(to, edgeTable(to, len(out)), size)
		h.source = d.source(to, size+total)
		return
	}
	atom.Writes(data, size)
	table := edgeTable(data, len(out))
	if to, where := d.slotRoom(max(total, b.bytes+1)); to != nil {
		h.source = where
		atom.Writes(to, total)
		d.packEdges(to, table, 0)
		return
	}
	if first, n := d.together(total); n > 0 && (!d.stagesIn(total/len(out), total) || d.c.eng.Share(first, n) != 0) {
		for i := range out {
			table[i] = d.entry(i, int(uintptr(out[i].Addr)-uintptr(first)))
		}
		h.source = d.source(first, n)
		return
	}
	to := d.room(total, total/len(out))
	atom.Writes(to, total)
	d.packEdges(to, table, 0)
	h.source = d.source(to, total)
}

// room returns temporary memory of n bytes that others read, of which unit count for stages.
func (d *SingleCopyOp) room(n, unit int) unsafe.Pointer {
	if d.stagesIn(unit, n) {
		if to := d.stage(n); to != nil {
			return to
		}
	}
	return d.temp(n)
}

// together returns where the parts for other ranks are, of total bytes, and how many bytes they are with what lies between them; none
// if they are not contiguous, or lie so far apart that they hardly belong together: there may be no memory between them.
func (d *SingleCopyOp) together(total int) (first unsafe.Pointer, n int) {
	var lo, hi uintptr
	for i := range d.edges.out {
		e := &d.edges.out[i]
		if e.Rank == d.c.Rank || e.Bytes() == 0 {
			continue
		}
		if !e.Type.Dense() {
			return nil, 0
		}
		if from := uintptr(e.Addr); first == nil || from < lo {
			first, lo = e.Addr, from
		}
		hi = max(hi, uintptr(e.Addr)+uintptr(e.Bytes()))
	}
	if n = int(hi - lo); n > 2*total {
		return nil, 0
	}
	return first, n
}

func edgeTable(at unsafe.Pointer, n int) []edgePlace { return unsafe.Slice((*edgePlace)(at), n) }

// entry returns the entry of the i-th outgoing edge. What a rank sends itself has no bytes there.
func (d *SingleCopyOp) entry(i, off int) edgePlace {
	e := &d.edges.out[i]
	if e.Rank == d.c.Rank || e.Bytes() == 0 {
		return edgePlace{rank: int64(e.Rank)}
	}
	return edgePlace{int64(e.Rank), int64(off), int64(e.Bytes())}
}

// packEdges copies what goes to other ranks, one after the other, from offset at of to on.
func (d *SingleCopyOp) packEdges(to unsafe.Pointer, table []edgePlace, at int) {
	for i := range table {
		table[i] = d.entry(i, at)
		if n := int(table[i].bytes); n > 0 {
			pack(unsafe.Slice((*byte)(unsafe.Add(to, at)), n), d.edges.out[i].Buf)
			at += n
		}
	}
}

// collectEdges takes what comes from the other ranks.
func (d *SingleCopyOp) collectEdges() {
	clear(d.edges.next)
	clear(d.edges.tables)
	for i := range d.edges.in {
		if e := &d.edges.in[i]; e.Rank != d.c.Rank && d.err == nil {
			d.takeEdge(e.Buf, e.Rank)
		}
	}
}

// takeEdge copies what comes along the next edge from rank r to dst.
func (d *SingleCopyOp) takeEdge(dst p2p.Buf, r int) {
	b := d.c.board
	h := b.edgesHead(r, d.k)
	off, n := 0, int(h.bytes)
	from := unsafe.Pointer(&h.short)
	if n > shortMessage {
		from = d.slotAt(r, &h.source)
	}
	if n == inTable {
		place := d.nextEdge(r)
		if place == nil {
			return
		}
		off, n = int(place.off), int(place.bytes)
		from = unsafe.Add(d.slotAt(r, &h.source), off)
	}
	d.takeFrom(dst, r, h.addr == 0, from, off, n)
}

// nextEdge returns the entry of the next edge from rank r to this one; nil with an error if there is none.
func (d *SingleCopyOp) nextEdge(r int) *edgePlace {
	n := int(d.c.board.edgesHead(r, d.k).entries)
	at := d.c.board.slotData(r, d.k)
	if size := n * edgePlaceBytes; size > d.c.board.bytes {
		if d.edges.tables[r] == nil {
			at = d.temp(size)
			if d.get(at, r, 0, size); d.err != nil {
				return nil
			}
			d.edges.tables[r] = at
		}
		at = d.edges.tables[r]
	}
	table, next := edgeTable(at, n), &d.edges.next[r]
	for *next < n {
		if *next++; int(table[*next-1].rank) == d.c.Rank {
			return &table[*next-1]
		}
	}
	if d.own == nil {
		d.own = errs.New(errs.Topology, "%s: this rank has more edges from rank %d of the communicator than that has to this one (the topology has to be the same for both)",
			d.Kind, r)
	}
	return nil
}

// keepEdges copies what this rank sends to itself.
func (d *SingleCopyOp) keepEdges() {
	in := 0
	for i := range d.edges.out {
		e := &d.edges.out[i]
		if e.Rank != d.c.Rank {
			continue
		}
		for in < len(d.edges.in) && d.edges.in[in].Rank != d.c.Rank {
			in++
		}
		if in == len(d.edges.in) {
			return
		}
		to := d.edges.in[in].Buf
		if copyLocal(to, e.Buf); e.Bytes() > to.Bytes() {
			d.tooLong(d.c.Rank, e.Bytes(), to.Bytes())
		}
		in++
	}
}
