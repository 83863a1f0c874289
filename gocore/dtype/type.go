package dtype

import "unsafe"

// Type is an MPI datatype. It is immutable and safe for concurrent use.
type Type struct {
	id   int    // predefined: 1 and up
	name string // predefined: "MPI_INT"
	code string // predefined: NumPy's type character
	kind Kind

	elems  int
	size   int
	lb, ub int
	marked bool // lb and ub are explicit, set by Resized or Subarray, and hold for types built on it
	align  int
	dense  bool

	body piece // where the data bytes are
	// elements has each pair as one block with its padding; for other kinds it is
	// body. Reductions work on it.
	elements piece

	portable *portable // its form in external32

	combiner string
	ints     []int
	addrs    []int
	types    []*Type
}

// ID returns a small number, 1 and up, that identifies a predefined type in
// every process; 0 for a derived type.
func (t *Type) ID() int { return t.id }

// Name returns a predefined type's name, such as "MPI_INT"; "" for a derived one.
func (t *Type) Name() string { return t.name }

// Size returns the number of data bytes of one item.
func (t *Type) Size() int { return t.size }

// Extent returns the distance of consecutive items.
func (t *Type) Extent() int { return t.ub - t.lb }

// LB returns the lower bound.
func (t *Type) LB() int { return t.lb }

// UB returns the upper bound.
func (t *Type) UB() int { return t.ub }

// TrueLB returns the offset of the lowest data byte, 0 if there is none.
func (t *Type) TrueLB() int {
	if t.body.l == nil {
		return 0
	}
	return t.body.off + t.body.l.lo
}

// TrueUB returns the offset past the highest data byte, 0 if there is none.
func (t *Type) TrueUB() int {
	if t.body.l == nil {
		return 0
	}
	return t.body.off + t.body.l.hi
}

// TrueExtent returns TrueUB - TrueLB.
func (t *Type) TrueExtent() int { return t.TrueUB() - t.TrueLB() }

// Align returns the greatest alignment that a basic element requires, at least 1.
func (t *Type) Align() int { return t.align }

// Kind returns the kind of the basic elements if it is the same for all, else KindNone.
// A pair (MPI_DOUBLE_INT) counts as one basic element.
func (t *Type) Kind() Kind { return t.kind }

// ElemSize returns Kind().Size(): for pairs their extent, padding included.
func (t *Type) ElemSize() int { return t.kind.Size() }

// Elems returns the number of basic elements in one item, a pair counting as one.
func (t *Type) Elems() int { return t.elems }

// Dense reports whether items follow each other without gaps and start at the
// buffer's address, so that count of them are copied as count*Size bytes at once.
func (t *Type) Dense() bool { return t.dense }

// IsPredefined reports whether t is one of [Predefined].
func (t *Type) IsPredefined() bool { return t.id != 0 }

// Span returns the range of bytes, relative to the buffer's address, that
// count items touch: (0, 0) if none. A range that does not fit in an int is
// cut off at the end of the int range, where there is no buffer.
func (t *Type) Span(count int) (lo, hi int) {
	if count <= 0 || t.body.l == nil {
		return 0, 0
	}
	return spanOf(t.body, count, t.Extent())
}

// CellSpan is Span for the memory on which reductions work: it includes the
// padding inside of pairs and after them.
func (t *Type) CellSpan(count int) (lo, hi int) {
	if count <= 0 || t.elements.l == nil {
		return 0, 0
	}
	return spanOf(t.elements, count, t.Extent())
}

func spanOf(p piece, count, extent int) (lo, hi int) {
	lo, hi = p.off+p.l.lo, p.off+p.l.hi
	shift := saturatingMul(count-1, extent)
	if shift < 0 {
		return saturatingAdd(lo, shift), hi
	}
	return lo, saturatingAdd(hi, shift)
}

// repeat returns the layout of count items (at least 1) of p without allocating.
func (t *Type) repeat(p piece, count int) layout {
	var a arith
	l, isNew := makeLoop(&a, count, t.Extent(), p.l)
	if !isNew {
		return *p.l
	}
	return l
}

// Pack copies count items at src to dst, one after the other, and returns the
// number of bytes written, count*Size. It panics if dst is shorter.
func (t *Type) Pack(dst []byte, src unsafe.Pointer, count int) int {
	n := t.total(count)
	if n == 0 {
		return 0
	}
	if len(dst) < n {
		panic("dtype: Pack: the destination is shorter than the data")
	}
	return t.PackAt(dst[:n], src, count, 0)
}

// PackAt fills dst with the packed data of count items at src, from offset
// skip of the packed data on, and returns the number of bytes written. It is
// for senders that pack in pieces.
func (t *Type) PackAt(dst []byte, src unsafe.Pointer, count, skip int) int {
	n := min(len(dst), t.total(count)-skip)
	if n <= 0 || skip < 0 {
		return 0
	}
	t.copyItems(t.body, unsafe.Pointer(unsafe.SliceData(dst)), src, toStream, count, skip, n)
	return n
}

// Unpack copies src to count items at dst and returns the number of bytes
// read: all of src, at most count*Size. It may end inside of an item or of an
// element.
func (t *Type) Unpack(dst unsafe.Pointer, src []byte, count int) int {
	return t.UnpackAt(dst, src, count, 0)
}

// UnpackAt is Unpack for a src that starts at offset skip of the packed data.
func (t *Type) UnpackAt(dst unsafe.Pointer, src []byte, count, skip int) int {
	n := min(len(src), t.total(count)-skip)
	if n <= 0 || skip < 0 {
		return 0
	}
	t.copyItems(t.body, unsafe.Pointer(unsafe.SliceData(src)), dst, toMemory, count, skip, n)
	return n
}

// PackElements copies the basic elements of count items at src to dst as an array
// on which a reduction can work: Elems*count elements, ElemSize apart. It is
// Pack except that pairs keep their padding. The type must have a Kind. It
// returns the number of bytes written and panics if dst is shorter.
func (t *Type) PackElements(dst []byte, src unsafe.Pointer, count int) int {
	n := t.elementBytes(count)
	if n == 0 {
		return 0
	}
	if len(dst) < n {
		panic("dtype: PackElements: the destination is shorter than the data")
	}
	t.copyItems(t.elements, unsafe.Pointer(unsafe.SliceData(dst)), src, toStream, count, 0, n)
	return n
}

// UnpackElements copies an array of basic elements, as PackElements makes it, to
// count items at dst and returns the number of bytes read.
func (t *Type) UnpackElements(dst unsafe.Pointer, src []byte, count int) int {
	n := min(len(src), t.elementBytes(count))
	if n <= 0 {
		return 0
	}
	// The target's padding must not be written: the items are copied without it.
	if t.kind.IsPair() {
		elem := pairType(t.kind)
		tmp := make([]byte, n/elem.Extent()*elem.size)
		elem.Pack(tmp, unsafe.Pointer(unsafe.SliceData(src)), n/elem.Extent())
		t.Unpack(dst, tmp, count)
		return n
	}
	t.copyItems(t.elements, unsafe.Pointer(unsafe.SliceData(src)), dst, toMemory, count, 0, n)
	return n
}

// total returns count*Size, 0 for a count below 1.
func (t *Type) total(count int) int {
	if count <= 0 {
		return 0
	}
	return saturatingMul(count, t.size)
}

func (t *Type) elementBytes(count int) int {
	if count <= 0 {
		return 0
	}
	return saturatingMul(count, t.elements.size())
}

func (t *Type) copyItems(p piece, stream, mem unsafe.Pointer, d direction, count, skip, n int) {
	mem = unsafe.Add(mem, p.off)
	if t.dense {
		move(stream, unsafe.Add(mem, skip), n, d)
		return
	}
	l := t.repeat(p, count)
	if n == l.size {
		l.copyAll(stream, mem, d)
		return
	}
	l.copyRange(stream, mem, d, skip, n)
}

// Runs yields the contiguous runs of bytes of count items, as offsets from the
// buffer's address, in type-map order. Adjacent blocks are one run.
func (t *Type) Runs(count int, yield func(off, n int) bool) {
	t.runs(t.body, count, yield)
}

// Elements yields the contiguous runs of basic elements of count items in
// type-map order: the offset of the first from the buffer's address, and the number
// of elements, ElemSize apart. The type must have a Kind.
func (t *Type) Elements(count int, yield func(off, elems int) bool) {
	size := t.ElemSize()
	if size == 0 {
		return
	}
	t.runs(t.elements, count, func(off, n int) bool { return yield(off, n/size) })
}

func (t *Type) runs(p piece, count int, yield func(off, n int) bool) {
	if count <= 0 || p.l == nil {
		return
	}
	l := t.repeat(p, count)
	// A run ends when the next block is not adjacent, so it is yielded after that.
	off, n := p.off, 0
	if l.walk(p.off, func(o, m int) bool {
		if o == off+n {
			n += m
			return true
		}
		if !yield(off, n) {
			return false
		}
		off, n = o, m
		return true
	}) {
		yield(off, n)
	}
}
