package dtype

type opcode uint8

const (
	opBlock opcode = iota // size contiguous bytes
	opLoop                // count times child, stride bytes apart
	opIndex               // child at each of offs
	opList                // pieces, one after the other
)

// layout is a piece of a type map in type-map order. The first byte of its
// data is at offset 0 and it is never empty: an empty piece is a nil *layout.
// A layout is immutable and shared between the types that are built on it.
//
// Every loop runs at least twice and every list has at least two entries, so
// a layout with 64-bit size nests at most 62 deep.
type layout struct {
	op     opcode
	size   int // data bytes
	blocks int // number of contiguous blocks
	lo, hi int // the lowest byte offset of the data, and one past the highest
	count  int // opLoop
	stride int // opLoop
	child  *layout
	offs   []int   // opIndex
	pieces []piece // opList
	ends   []int   // opList: data bytes up to the end of each piece
}

// piece is a layout at an offset.
type piece struct {
	off int
	l   *layout
}

func (p piece) size() int {
	if p.l == nil {
		return 0
	}
	return p.l.size
}

func newBlock(n int) *layout {
	if n == 0 {
		return nil
	}
	return &layout{op: opBlock, size: n, blocks: 1, hi: n}
}

// makeLoop returns count (at least 1) copies of l, stride bytes apart, in the
// simplest form. If isNew is false the result is l itself. It returns a value
// so that the loop over the items of a message need not be allocated.
func makeLoop(a *arith, count, stride int, l *layout) (loop layout, isNew bool) {
	if l == nil || count == 1 {
		return layout{}, false
	}
	size := a.mul(count, l.size)
	if stride == l.size && l.op == opBlock {
		return layout{op: opBlock, size: size, blocks: 1, hi: size}, true
	}
	shift := a.mul(count-1, stride)
	lo, hi := l.lo, l.hi
	if shift < 0 {
		lo = a.add(lo, shift)
	} else {
		hi = a.add(hi, shift)
	}
	loop = layout{op: opLoop, size: size, blocks: a.mul(count, l.blocks), lo: lo, hi: hi, count: count, stride: stride, child: l}
	if l.op == opLoop && stride == saturatingMul(l.count, l.stride) {
		loop.count, loop.stride, loop.child = a.mul(count, l.count), l.stride, l.child
	}
	return loop, true
}

func (p piece) loop(a *arith, count, stride int) piece {
	if count == 0 || p.l == nil {
		return piece{}
	}
	l, isNew := makeLoop(a, count, stride, p.l)
	if !isNew {
		return p
	}
	return piece{p.off, &l}
}

func (p piece) shift(a *arith, by int) piece {
	if p.l == nil {
		return p
	}
	return piece{a.add(p.off, by), p.l}
}

// concat returns pieces one after the other. It merges adjacent blocks and recognises
// regular cases. The caller must not use the slice afterwards.
func concat(a *arith, pieces []piece) piece {
	n := 0
	for _, p := range pieces {
		if p.l == nil {
			continue
		}
		if n > 0 && p.l.op == opBlock {
			if q := pieces[n-1]; q.l.op == opBlock && q.off+q.l.size == p.off {
				pieces[n-1].l = newBlock(a.add(q.l.size, p.l.size))
				continue
			}
		}
		pieces[n] = p
		n++
	}
	pieces = pieces[:n]
	if n == 0 {
		return piece{}
	}
	if n == 1 {
		return pieces[0]
	}

	first := pieces[0].off
	size, blocks, lo, hi := 0, 0, 0, 0
	uniform, regular := true, true
	stride := a.sub(pieces[1].off, first)
	for i, p := range pieces {
		at := a.sub(p.off, first)
		size = a.add(size, p.l.size)
		blocks += p.l.blocks
		lo = min(lo, a.add(at, p.l.lo))
		hi = max(hi, a.add(at, p.l.hi))
		uniform = uniform && same(p.l, pieces[0].l)
		regular = regular && (i == 0 || at == a.add(pieces[i-1].off-first, stride))
	}
	if a.overflow {
		return piece{}
	}
	if uniform && regular {
		return pieces[0].loop(a, n, stride)
	}
	if uniform {
		if k := period(pieces, stride); k > 1 {
			run := pieces[0].loop(a, k, stride).l
			for i := 0; i < n; i += k {
				pieces[i/k] = piece{pieces[i].off, run}
			}
			return concat(a, pieces[:n/k])
		}
	}
	l := &layout{op: opList, size: size, blocks: blocks, lo: lo, hi: hi}
	if uniform {
		l.op, l.child = opIndex, pieces[0].l
		l.offs = make([]int, n)
		for i, p := range pieces {
			l.offs[i] = p.off - first
		}
		return piece{first, l}
	}
	l.pieces = make([]piece, n)
	l.ends = make([]int, n)
	end := 0
	for i, p := range pieces {
		end += p.l.size
		l.pieces[i] = piece{p.off - first, p.l}
		l.ends[i] = end
	}
	return piece{first, l}
}

// period returns k if the pieces are runs of k pieces each, stride apart within a run;
// otherwise 1. So a matrix that is described element by element, column after column,
// becomes a loop of loops. Short runs are better left in the list.
func period(pieces []piece, stride int) int {
	k := 2
	for k < len(pieces) && pieces[k].off-pieces[k-1].off == stride {
		k++
	}
	if k < 8 || len(pieces)%k != 0 {
		return 1
	}
	for i := range pieces {
		if i%k != 0 && pieces[i].off-pieces[i-1].off != stride {
			return 1
		}
	}
	return k
}

// same reports whether two layouts are known to be equal. It compares only what is
// cheap to compare, and may return false for equal ones.
func same(x, y *layout) bool {
	if x == y {
		return true
	}
	if x.op != y.op || x.size != y.size {
		return false
	}
	switch x.op {
	case opBlock:
		return true
	case opLoop:
		// Equal sizes and equal children make equal counts.
		return x.stride == y.stride && same(x.child, y.child)
	}
	return false
}

// walk yields the blocks of l, whose first byte is at off, in type-map order.
func (l *layout) walk(off int, yield func(off, n int) bool) bool {
	switch l.op {
	case opBlock:
		return yield(off, l.size)
	case opLoop:
		for i := range l.count {
			if !l.child.walk(off+i*l.stride, yield) {
				return false
			}
		}
	case opIndex:
		for _, o := range l.offs {
			if !l.child.walk(off+o, yield) {
				return false
			}
		}
	case opList:
		for _, p := range l.pieces {
			if !p.l.walk(off+p.off, yield) {
				return false
			}
		}
	}
	return true
}
