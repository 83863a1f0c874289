package dtype

type opcode uint8

const (
	opBlock opcode = iota // size contiguous bytes
	opLoop                // count times child, stride bytes apart
	opIndex               // child at each of offs
	opList                // parts, one after the other
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
	offs   []int  // opIndex
	parts  []part // opList
	ends   []int  // opList: data bytes up to the end of each part
}

// part is a layout at an offset.
type part struct {
	off int
	l   *layout
}

func (p part) size() int {
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

func (p part) loop(a *arith, count, stride int) part {
	if count == 0 || p.l == nil {
		return part{}
	}
	l, isNew := makeLoop(a, count, stride, p.l)
	if !isNew {
		return p
	}
	return part{p.off, &l}
}

func (p part) shift(a *arith, by int) part {
	if p.l == nil {
		return p
	}
	return part{a.add(p.off, by), p.l}
}

// concat returns parts one after the other. It merges adjacent blocks and recognises
// regular cases. The caller must not use the slice afterwards.
func concat(a *arith, parts []part) part {
	n := 0
	for _, p := range parts {
		if p.l == nil {
			continue
		}
		if n > 0 && p.l.op == opBlock {
			if q := parts[n-1]; q.l.op == opBlock && q.off+q.l.size == p.off {
				parts[n-1].l = newBlock(a.add(q.l.size, p.l.size))
				continue
			}
		}
		parts[n] = p
		n++
	}
	parts = parts[:n]
	if n == 0 {
		return part{}
	}
	if n == 1 {
		return parts[0]
	}

	first := parts[0].off
	size, blocks, lo, hi := 0, 0, 0, 0
	uniform, regular := true, true
	stride := a.sub(parts[1].off, first)
	for i, p := range parts {
		at := a.sub(p.off, first)
		size = a.add(size, p.l.size)
		blocks += p.l.blocks
		lo = min(lo, a.add(at, p.l.lo))
		hi = max(hi, a.add(at, p.l.hi))
		uniform = uniform && same(p.l, parts[0].l)
		regular = regular && (i == 0 || at == a.add(parts[i-1].off-first, stride))
	}
	if a.overflow {
		return part{}
	}
	if uniform && regular {
		return parts[0].loop(a, n, stride)
	}
	if uniform {
		if k := period(parts, stride); k > 1 {
			run := parts[0].loop(a, k, stride).l
			for i := 0; i < n; i += k {
				parts[i/k] = part{parts[i].off, run}
			}
			return concat(a, parts[:n/k])
		}
	}
	l := &layout{op: opList, size: size, blocks: blocks, lo: lo, hi: hi}
	if uniform {
		l.op, l.child = opIndex, parts[0].l
		l.offs = make([]int, n)
		for i, p := range parts {
			l.offs[i] = p.off - first
		}
		return part{first, l}
	}
	l.parts = make([]part, n)
	l.ends = make([]int, n)
	end := 0
	for i, p := range parts {
		end += p.l.size
		l.parts[i] = part{p.off - first, p.l}
		l.ends[i] = end
	}
	return part{first, l}
}

// period returns k if the parts are runs of k parts each, stride apart within a run;
// otherwise 1. So a matrix that is described element by element, column after column,
// becomes a loop of loops. Short runs are better left in the list.
func period(parts []part, stride int) int {
	k := 2
	for k < len(parts) && parts[k].off-parts[k-1].off == stride {
		k++
	}
	if k < 8 || len(parts)%k != 0 {
		return 1
	}
	for i := range parts {
		if i%k != 0 && parts[i].off-parts[i-1].off != stride {
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
		for _, p := range l.parts {
			if !p.l.walk(off+p.off, yield) {
				return false
			}
		}
	}
	return true
}
