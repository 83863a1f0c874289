package dtype

import (
	"sync"
	"unsafe"
)

// Copy copies scount items of type from at src to dcount items of type to at
// dst, which must have as many data bytes and must not overlap, and returns the
// number of bytes. It never holds more than a piece of the data packed.
//
// If one side is dense, Copy traverses the other side's type map once. If
// neither is, the longer of both sides' runs decide: long ones are copied
// straight to their destination, short ones through a buffer that stays in the
// cache, since traversing two type maps at once costs more for a few bytes than
// moving them twice.
func Copy(dst unsafe.Pointer, to *Type, dcount int, src unsafe.Pointer, from *Type, scount int) int {
	n := from.total(scount)
	if n != to.total(dcount) {
		panic("dtype: Copy: the sides have different numbers of data bytes")
	}
	switch {
	case n == 0:
	case from.dense:
		to.copyItems(to.body, src, dst, toMemory, dcount, 0, n)
	case to.dense:
		from.copyItems(from.body, dst, src, toStream, scount, 0, n)
	default:
		d, s := to.repeat(to.body, dcount), from.repeat(from.body, scount)
		copyBetween(unsafe.Add(dst, to.body.off), &d, unsafe.Add(src, from.body.off), &s)
	}
	return n
}

// longRun is the average length from which copying runs one by one costs less than a
// second copy of their bytes within the cache.
const longRun = 256

func copyBetween(dst unsafe.Pointer, d *layout, src unsafe.Pointer, s *layout) {
	// Traverse the side with the longer runs, unless the other one gains from
	// receiving more than one run at a time.
	if s.size/s.blocks >= d.size/d.blocks {
		if s.size/s.blocks >= longRun && !d.tiles() {
			done := 0
			s.walk(0, func(off, n int) bool {
				d.copyRange(unsafe.Add(src, off), dst, toMemory, done, n)
				done += n
				return true
			})
			return
		}
	} else if d.size/d.blocks >= longRun && !s.tiles() {
		done := 0
		d.walk(0, func(off, n int) bool {
			s.copyRange(unsafe.Add(dst, off), src, toStream, done, n)
			done += n
			return true
		})
		return
	}
	buf := buffers.Get().(*[bufferBytes]byte)
	p := unsafe.Pointer(buf)
	step := d.step()
	if s.tiles() || !d.tiles() {
		step = s.step()
	}
	for done := 0; done < d.size; {
		n := min(step, d.size-done)
		s.copyRange(p, src, toStream, done, n)
		d.copyRange(p, dst, toMemory, done, n)
		done += n
	}
	buffers.Put(buf)
}

// bufferBytes is the size of the buffer, a part of the second-level cache. It has room
// for 32 columns of 1024 doubles: a transpose in pieces is fast with many whole columns.
const bufferBytes = 256 << 10

var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

// step returns how many bytes of l to copy at a time: as many whole children as fit
// into the buffer.
func (l *layout) step() int {
	for l.op == opLoop || l.op == opIndex {
		if l = l.child; l.size <= bufferBytes {
			return bufferBytes / l.size * l.size
		}
	}
	return bufferBytes
}

// tiles reports whether copyAll copies l, or much of it, in tiles.
func (l *layout) tiles() bool {
	for {
		switch l.op {
		case opLoop:
			if l.child.op == opLoop && l.child.child.op == opBlock {
				return tiled(l.child, l.count, l.stride)
			}
			l = l.child
		case opIndex:
			l = l.child
		case opList:
			l = l.pieces[0].l
		default:
			return false
		}
	}
}

// Blocks returns the number of contiguous blocks of count items, some of which may be
// adjacent.
func (t *Type) Blocks(count int) int {
	if count <= 0 || t.body.l == nil {
		return 0
	}
	if t.dense {
		return 1
	}
	return saturatingMul(count, t.body.l.blocks)
}

// Solid reports whether count items cover each byte of their Span once, in any order,
// as a transposed matrix does. It recognises only regular type maps: it may return
// false for others that do.
func (t *Type) Solid(count int) bool {
	if count <= 0 || t.body.l == nil {
		return false
	}
	l := t.repeat(t.body, count)
	return l.solid()
}

func (l *layout) solid() bool {
	var loops [64]*layout // by stride
	n := 0
	for ; l.op == opLoop; l = l.child {
		i := n
		for ; i > 0 && magnitude(loops[i-1].stride) > magnitude(l.stride); i-- {
			loops[i] = loops[i-1]
		}
		loops[i] = l
		n++
	}
	if l.op != opBlock {
		return false
	}
	covered := l.size
	for _, loop := range loops[:n] {
		if magnitude(loop.stride) != uint64(covered) {
			return false
		}
		covered *= loop.count // at most the data's size
	}
	return true
}
