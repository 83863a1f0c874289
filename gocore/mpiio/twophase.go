package mpiio

import (
	"encoding/binary"
	"math"
	"slices"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Defaults and limits of the hints.
const (
	DefaultBuffer = 4 << 20
	domainAlign   = 4096 // aggregators do not share pages of the file
	// sparse: if less than one byte in sparse of the range is accessed, aggregators cost
	// more than they save.
	sparse = 64
	// longRun: runs of this length are as fast by themselves, since copying takes much
	// longer than the system call.
	longRun = 16 << 10
	// rereads: if the ranks' ranges have at most rereads times the requested bytes, each
	// rank reads for itself. The others find what one has read in the page cache.
	rereads = 8
)

// together is the first state of a collective access; e is the error of this rank's
// arguments.
func (a *access) together(o *Op, e *errs.Error) state {
	if a.kind&Shared == 0 {
		mine := a.record()
		return o.begin(mine, e, a.split)
	}
	// Ordered: rank 0 moves the shared pointer for all.
	count := a.n / a.v.Etype
	return o.begin(record{A: count}, e, func(o *Op, all []record) state {
		before, total := int64(0), int64(0)
		for i, r := range all {
			if i < a.f.Comm.Rank {
				before += r.A
			}
			total += r.A
		}
		var mine record
		if a.f.Comm.Rank == 0 {
			mine.A = addShared(a.f, total)
		}
		return o.exchange(mine, func(o *Op, all []record) state {
			e := a.place(all[0].A + before)
			return o.begin(a.record(), e, a.split)
		})
	})
}

// unordered replaces the number of pieces for a view that is not in the file's order.
const unordered = -1

// record returns the range of the access and its number of pieces, for the other ranks.
func (a *access) record() record {
	lo, hi := a.v.span(a.at, a.n)
	r := record{A: lo, B: hi, C: a.n}
	if r.D = a.v.pieces(a.n); a.v.overlaps {
		r.D = unordered
	}
	return r
}

// split decides how the ranks access the file: each for itself or in two phases.
func (a *access) split(o *Op, all []record) state {
	d := a.f.divide(all, a.kind&Write == 0)
	switch {
	case d == nil && !o.background && a.short():
		return a.conclude(o, a.moveShort())
	case d == nil:
		o.owes = true
		return a.locked(o, func(o *Op) state {
			done := int64(0)
			o.work = a.transfer(&done)
			return func(o *Op) state {
				a.unlock()
				return a.conclude(o, done)
			}
		})
	}
	x := &exchange{access: a, buffers: a.f.borrow(), d: d, size: a.f.Comm.Size}
	if a.kind&Write != 0 {
		return x.writeRound
	}
	return x.readRound
}

// conclude ends a collective access.
func (a *access) conclude(o *Op, n int64) state {
	a.moved(o, n)
	return o.conclude(a.err, nil)
}

// domains is the division of a range of the file among aggregators.
type domains struct {
	lo, hi int64
	per    int64 // bytes of a domain
	window int64 // bytes of a window
	n      int
	rounds int64
}

// divide returns the domains, nil if each rank accesses the file for itself. All ranks
// compute the same result.
func (f *File) divide(all []record, reading bool) *domains {
	h := f.Hints()
	d := &domains{lo: math.MaxInt64, n: f.Comm.Size}
	total, pieces, spans := int64(0), int64(0), int64(0)
	single := false
	var few [8]record
	busy := few[:0]
	for _, r := range all {
		if r.C > 0 {
			busy = append(busy, r)
			d.lo, d.hi = min(d.lo, r.A), max(d.hi, r.B)
			total += r.C
			pieces += r.D
			spans += r.B - r.A
			single = single || r.D == unordered
		}
	}
	if total == 0 || single || h.Collective == Disabled {
		return nil
	}
	if h.Collective == Automatic {
		switch {
		case !interleaved(busy), total/longRun > pieces, (d.hi-d.lo)/sparse > total, reading && spans/rereads <= total:
			return nil
		}
	}
	if f.Cores > 0 {
		d.n = min(d.n, f.Cores)
	}
	if h.Aggregators > 0 {
		d.n = int(min(int64(f.Comm.Size), h.Aggregators))
	}
	d.lo -= d.lo % domainAlign
	d.per = (d.hi - d.lo + int64(d.n) - 1) / int64(d.n)
	d.per += (domainAlign - d.per%domainAlign) % domainAlign
	d.window = h.Buffer
	if d.window <= 0 {
		d.window = DefaultBuffer
	}
	d.window = min(d.window, d.per)
	d.rounds = (d.per + d.window - 1) / d.window
	return d
}

// interleaved reports whether the ranges of two ranks overlap.
func interleaved(busy []record) bool {
	slices.SortFunc(busy, func(x, y record) int {
		switch {
		case x.A < y.A:
			return -1
		case x.A > y.A:
			return 1
		}
		return 0
	})
	for i := 1; i < len(busy); i++ {
		if busy[i].A < busy[i-1].B {
			return true
		}
	}
	return false
}

// rank returns the aggregator of domain i.
func (d *domains) rank(i, size int) int { return i * size / d.n }

// of returns the domain of a rank, -1 if it has none.
func (d *domains) of(rank, size int) int {
	for i := range d.n {
		if d.rank(i, size) == rank {
			return i
		}
	}
	return -1
}

// at returns the window of domain i in a round; lo >= hi if there is none.
func (d *domains) at(i int, round int64) (lo, hi int64) {
	lo = d.lo + int64(i)*d.per
	end := min(lo+d.per, d.hi)
	lo += round * d.window
	return lo, min(lo+d.window, end)
}

// exchange is an access in two phases in progress.
type exchange struct {
	*access
	*buffers
	d     *domains
	size  int
	round int64

	outLen, inLen []int64 // bytes to and from each rank
	from, to      []int64 // the part of this rank's stream that each rank gets in this round
}

// buffers is the memory of an exchange. The file keeps it for the next one: new memory
// costs a page fault every 4 KiB.
type buffers struct {
	out, in         []byte // the messages to and from all ranks
	window          []byte
	covered         bitmap
	replies, answer []byte
}

// keepBuffers is how much memory a file keeps.
const keepBuffers = 32 << 20

// borrow returns the file's buffers, or new ones.
func (f *File) borrow() *buffers {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.buffers
	if f.buffers = nil; b == nil {
		b = new(buffers)
	}
	return b
}

// giveBack keeps borrowed buffers, which no rank reads any more.
func (f *File) giveBack(b *buffers) {
	if cap(b.out)+cap(b.in)+cap(b.window)+cap(b.replies)+cap(b.answer) > keepBuffers {
		return
	}
	f.mu.Lock()
	f.buffers = b
	f.mu.Unlock()
}

// segmentBytes is the size of a segment in a message: count runs of n bytes, stride apart.
const segmentBytes = 32

// describe appends the runs of the stream from p to q: the number of segments, then
// offset, length, stride and count of each.
func (x *exchange) describe(b []byte, p, q int64) []byte {
	head := len(b)
	b = append(b, make([]byte, 8)...)
	var off, length, stride, count, segments int64
	flush := func() {
		if count > 0 {
			for _, v := range [...]int64{off, length, stride, count} {
				b = binary.LittleEndian.AppendUint64(b, uint64(v))
			}
			segments++
		}
	}
	x.v.Runs(p, q-p, func(o, n int64) bool {
		switch {
		case count == 1 && n == length:
			stride, count = o-off, 2
		case count > 1 && n == length && o == off+count*stride:
			count++
		default:
			flush()
			off, length, stride, count = o, n, 0, 1
		}
		return true
	})
	flush()
	binary.LittleEndian.PutUint64(b[head:], uint64(segments))
	return b
}

// each calls f for the runs that a message describes, and returns the rest of the message.
func each(b []byte, f func(off, n int64)) []byte {
	segments := int(binary.LittleEndian.Uint64(b))
	b = b[8:]
	for range segments {
		field := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
		off, n, stride, count := field(0), field(1), field(2), field(3)
		for range count {
			f(off, n)
			off += stride
		}
		b = b[segmentBytes:]
	}
	return b
}

// compose makes the messages of a round: for each aggregator the runs of this rank in its
// window, with their data or without.
func (x *exchange) compose(data bool) {
	x.out = x.out[:0]
	x.outLen = make([]int64, x.size)
	x.inLen = make([]int64, x.size)
	x.from, x.to = make([]int64, x.size), make([]int64, x.size)
	if x.err != nil {
		return // the others continue without this rank's data
	}
	end := x.at + x.n
	for i := range x.d.n {
		lo, hi := x.d.at(i, x.round)
		if lo >= hi {
			continue
		}
		p, q := max(x.v.Before(lo), x.at), min(x.v.Before(hi), end)
		if p >= q {
			continue
		}
		r := x.d.rank(i, x.size)
		x.from[r], x.to[r] = p, q
		head := len(x.out)
		x.out = x.describe(x.out, p, q)
		if data {
			begin := len(x.out)
			x.out = slices.Grow(x.out, int(q-p))[:begin+int(q-p)]
			if !x.load(x.out[begin:], p-x.at) {
				x.out = x.out[:head]
				return
			}
		}
		x.outLen[r] = int64(len(x.out) - head)
	}
}

// vec returns contiguous messages for all ranks as a vector. Empty ones get offset 0,
// since a pointer past the end of Go's memory must never exist.
func vec(b []byte, lengths []int64) *coll.Vec {
	v := &coll.Vec{Type: byteType, Addr: raw(b).Addr, Counts: make([]int, len(lengths)), Displs: make([]int, len(lengths))}
	at := 0
	for i, n := range lengths {
		if n > 0 {
			v.Counts[i], v.Displs[i] = int(n), at
			at += int(n)
		}
	}
	return v
}

func integers(v []int64) p2p.Buf {
	return p2p.Buf{Addr: raw(int64Bytes(v)).Addr, Count: 8, Type: byteType}
}

// swap sends the messages of compose, and continues with then when those of the other
// ranks have been received.
func (x *exchange) swap(o *Op, then state) state {
	c := x.f.Comm
	o.keep = append(o.keep[:0], x)
	o.wait = c.Alltoall(coll.Uniform(integers(x.outLen), x.size), coll.Uniform(integers(x.inLen), x.size), false)
	return func(o *Op) state {
		total := int64(0)
		for _, n := range x.inLen {
			total += n
		}
		x.in = room(x.in, total)
		o.wait = c.Alltoall(vec(x.out, x.outLen), vec(x.in, x.inLen), false)
		return then
	}
}

// messages calls f with the message from each rank.
func (x *exchange) messages(f func(rank int, b []byte)) {
	at := int64(0)
	for r, n := range x.inLen {
		if n > 0 {
			f(r, x.in[at:at+n])
		}
		at += n
	}
}

// mine returns the window of this rank in the round, empty if it is no aggregator.
func (x *exchange) mine() (lo, hi int64) {
	if i := x.d.of(x.f.Comm.Rank, x.size); i >= 0 {
		if lo, hi = x.d.at(i, x.round); lo < hi {
			return lo, hi
		}
	}
	return 0, 0
}

// writeRound is a round of a collective write.
func (x *exchange) writeRound(o *Op) state {
	if x.round == x.d.rounds {
		n := x.n
		if x.err != nil {
			n = 0
		}
		x.f.giveBack(x.buffers)
		return x.conclude(o, n)
	}
	o.work = func() bool { x.compose(true); return true }
	return func(o *Op) state {
		return x.swap(o, func(o *Op) state {
			lo, hi := x.mine()
			o.work = func() bool { x.assemble(lo, hi); return true }
			x.round++
			return x.writeRound
		})
	}
}

// assemble assembles the data that the ranks have sent for the window from lo to hi, and
// writes each contiguous stretch by one call.
func (x *exchange) assemble(lo, hi int64) {
	if lo >= hi || x.err != nil {
		return // after an error the file is not written any more
	}
	x.window = room(x.window, hi-lo)
	x.covered.reset(hi - lo)
	x.messages(func(_ int, b []byte) {
		header := int64(binary.LittleEndian.Uint64(b))
		data := b[8+segmentBytes*header:]
		each(b, func(off, n int64) {
			copy(x.window[off-lo:off-lo+n], data[:n])
			data = data[n:]
			x.covered.set(off-lo, off-lo+n)
		})
	})
	x.covered.stretches(func(from, to int64) bool {
		if err := writeAt(x.f.fd, x.window[from:to], lo+from); err != nil {
			x.err = x.failed("at byte", lo+from, err)
		}
		return x.err == nil
	})
}

// readRound is a round of a collective read.
func (x *exchange) readRound(o *Op) state {
	if x.round == x.d.rounds {
		n := x.n
		if x.eof != noEOF {
			n = max(0, min(n, x.v.Before(x.eof)-x.at))
		}
		if x.err != nil {
			n = 0
		}
		x.f.giveBack(x.buffers)
		return x.conclude(o, n)
	}
	o.work = func() bool { x.compose(false); return true }
	return func(o *Op) state {
		return x.swap(o, func(o *Op) state {
			var lengths []int64
			o.work = func() bool { lengths = x.reply(); return true }
			return func(o *Op) state {
				back := make([]int64, x.size)
				total := int64(0)
				for r := range back {
					if x.to[r] > x.from[r] {
						back[r] = 8 + x.to[r] - x.from[r]
						total += back[r]
					}
				}
				x.answer = room(x.answer, total)
				o.wait = x.f.Comm.Alltoall(vec(x.replies, lengths), vec(x.answer, back), false)
				return func(o *Op) state {
					o.work = func() bool { x.unpack(back); return true }
					x.round++
					return x.readRound
				}
			}
		})
	}
}

// reply reads the runs that the ranks have requested and makes an answer for each: where
// the file ends, if that is known, then the data.
func (x *exchange) reply() []int64 {
	lengths := make([]int64, x.size)
	lo, hi := x.mine()
	x.replies = x.replies[:0]
	if lo >= hi {
		return lengths
	}
	x.window = room(x.window, hi-lo)
	x.covered.reset(hi - lo)
	first, last, wanted := hi-lo, int64(0), int64(0)
	x.messages(func(_ int, b []byte) {
		each(b, func(off, n int64) {
			x.covered.set(off-lo, off-lo+n)
			first, last = min(first, off-lo), max(last, off-lo+n)
			wanted += n
		})
	})
	eof := int64(noEOF)
	read := func(from, to int64) bool {
		got, err := readAt(x.f.fd, x.window[from:to], lo+from)
		if err != nil && x.err == nil {
			x.err = x.failed("at byte", lo+from, err)
		}
		if int64(got) < to-from {
			eof = lo + from + int64(got)
		}
		return eof == noEOF
	}
	switch {
	case last <= first || x.err != nil:
		eof = lo
	case wanted*sieve >= last-first:
		read(first, last)
	default:
		x.covered.stretches(read)
	}
	x.messages(func(r int, b []byte) {
		head := len(x.replies)
		x.replies = binary.LittleEndian.AppendUint64(x.replies, uint64(eof))
		each(b, func(off, n int64) { x.replies = append(x.replies, x.window[off-lo:off-lo+n]...) })
		lengths[r] = int64(len(x.replies) - head)
	})
	return lengths
}

// unpack stores the answers in the user's memory.
func (x *exchange) unpack(back []int64) {
	at := int64(0)
	for r, n := range back {
		if n == 0 {
			continue
		}
		b := x.answer[at : at+n]
		at += n
		p, q := x.from[r], x.to[r]
		if eof := int64(binary.LittleEndian.Uint64(b)); eof != noEOF {
			x.eof = min(x.eof, eof)
			q = max(p, min(q, x.v.Before(eof)))
		}
		x.store(b[8:8+q-p], p-x.at)
	}
}
