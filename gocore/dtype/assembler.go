package dtype

import "unsafe"

// Assembler unpacks external32 data that arrives in pieces, in any order. A piece may begin
// and end within a scalar, whose parts are kept until it is complete.
type Assembler struct {
	t     *Type
	dst   unsafe.Pointer
	count int
	split map[int]*splitScalar // by offset
}

type splitScalar struct {
	b    [16]byte
	have int
}

// Assemble returns an Assembler for count items at dst.
func (t *Type) Assemble(dst unsafe.Pointer, count int) *Assembler {
	return &Assembler{t: t, dst: dst, count: count}
}

// Store unpacks a piece that starts at offset skip of the external32 data. No byte may come
// twice. It returns an error if a value does not fit in memory.
func (a *Assembler) Store(src []byte, skip int) error {
	s := a.t.form().seq.times(max(a.count, 0))
	if _, start, rep := s.before(skip, true); start < skip {
		size := representationTable[rep].external
		n := min(len(src), start+size-skip)
		if err := a.part(src[:n], start, skip-start, size); err != nil {
			return err
		}
		src, skip = src[n:], skip+n
	}
	if len(src) == 0 {
		return nil
	}
	_, last, rep := s.before(skip+len(src), true)
	if err := a.t.UnpackExternal(a.dst, src[:last-skip], a.count, skip); err != nil {
		return err
	}
	if rest := src[last-skip:]; len(rest) > 0 && last < a.t.ExternalTotal(a.count) {
		return a.part(rest, last, 0, representationTable[rep].external)
	}
	return nil
}

// part adds bytes from offset at on of the scalar of size bytes whose offset is start.
func (a *Assembler) part(b []byte, start, at, size int) error {
	x := a.split[start]
	if x == nil {
		if a.split == nil {
			a.split = make(map[int]*splitScalar)
		}
		x = new(splitScalar)
		a.split[start] = x
	}
	x.have += copy(x.b[at:size], b)
	if x.have < size {
		return nil
	}
	delete(a.split, start)
	return a.t.UnpackExternal(a.dst, x.b[:size], a.count, start)
}
