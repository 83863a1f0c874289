package dtype

import (
	"fmt"
	"sync"
	"unsafe"
)

// portable is the form of a type in external32, the standard's portable representation
// (MPI-4.1, section 14.5.2): its scalars one after the other, big-endian, with the sizes of
// the standard's table. It is made when it is first used.
type portable struct {
	once     sync.Once
	seq      sequence // the scalars of an item
	external int      // bytes of an item

	mayExceed   bool // a value in memory may be too large for external32
	mayOverflow bool // a value of external32 may be too large for memory

	fileOnce sync.Once
	file     *Type
	fileErr  error
}

// convertPiece is the size of the pieces in which data that is not dense is packed and then
// converted, so that it stays in the processor's cache.
const convertPiece = 64 << 10

func (t *Type) form() *portable {
	p := t.portable
	p.once.Do(func() {
		p.seq = t.sequence()
		_, p.external = p.seq.size()
		p.mayExceed = p.seq.has(func(info *representationInfo) bool { return info.tooLarge != nil })
		p.mayOverflow = p.seq.has(func(info *representationInfo) bool { return info.tooPrecise != nil })
	})
	return p
}

func (t *Type) sequence() sequence {
	switch {
	case t.id != 0:
		rep, n := t.scalars()
		list := []sequence{{n: n, rep: rep}}
		if t.kind.IsPair() {
			list = append(list, sequence{n: 1, rep: swap4})
		}
		return chain(list)
	case t.combiner == "STRUCT":
		list := make([]sequence, len(t.types))
		for i, old := range t.types {
			list[i] = old.form().seq.times(t.ints[1+i])
		}
		return chain(list)
	case t.size == 0:
		return sequence{}
	}
	return t.types[0].form().seq.times(t.size / t.types[0].size)
}

// ExternalSize returns the number of bytes of one item in external32.
func (t *Type) ExternalSize() int { return t.form().external }

// Portable reports whether the packed data of t is its external32 form, as bytes are.
func (t *Type) Portable() bool {
	return !t.form().seq.has(func(info *representationInfo) bool { return info.memory > 1 })
}

// ExternalTotal returns the number of bytes of count items in external32.
func (t *Type) ExternalTotal(count int) int {
	if count <= 0 {
		return 0
	}
	return saturatingMul(count, t.ExternalSize())
}

// Whole returns how many of the first n bytes of count items in external32 belong to
// scalars that lie within them, and the size of these scalars as Pack packs them.
func (t *Type) Whole(count, n int) (external, packed int) {
	packed, external, _ = t.form().seq.times(max(count, 0)).before(n, true)
	return external, packed
}

// Exceeds returns an error if a value in the count items at src does not fit in external32:
// of an MPI_LONG, which has 4 bytes there, or an MPI_WCHAR, which has 2.
func (t *Type) Exceeds(src unsafe.Pointer, count int) error {
	if count <= 0 || !t.form().mayExceed {
		return nil
	}
	s := t.form().seq.times(count)
	return t.pieces(src, count, s, 0, t.total(count), func(b []byte, at, _ int) error {
		return t.refuse(s, b, at)
	})
}

// refuse returns an error for the first value in packed data that does not fit in
// external32; the data starts at offset at of that of s.
func (t *Type) refuse(s sequence, b []byte, at int) (err error) {
	if !t.form().mayExceed {
		return nil
	}
	done := 0
	s.each(at, at+len(b), func(rep representation, n int) bool {
		info := &representationTable[rep]
		mine := b[done : done+n*info.memory]
		if info.tooLarge != nil {
			if i := info.tooLarge(mine); i >= 0 {
				err = exceeds(rep, mine[i*info.memory:], (at+done+i*info.memory)/t.size)
				return false
			}
		}
		done += len(mine)
		return true
	})
	return err
}

func exceeds(rep representation, b []byte, item int) error {
	switch rep {
	case wide4to2:
		return fmt.Errorf("%w: external32 has 2 bytes for an MPI_WCHAR, and the character U+%X of item %d needs more; encode the text, for instance in UTF-8, and use MPI_CHAR",
			ErrConversion, words[uint32](b)[0], item)
	case unsigned8to4:
		return fmt.Errorf("%w: external32 has 4 bytes for an MPI_UNSIGNED_LONG, and the value %d of item %d needs more; use MPI_UINT64_T, which has 8",
			ErrConversion, words[uint64](b)[0], item)
	}
	return fmt.Errorf("%w: external32 has 4 bytes for an MPI_LONG, and the value %d of item %d needs more; use MPI_INT64_T, which has 8",
		ErrConversion, words[int64](b)[0], item)
}

// pieces calls f for the packed data of count items from offset at to end, in pieces: the
// data, its offset and that of its external32. Both ends are at the beginning of scalars.
func (t *Type) pieces(src unsafe.Pointer, count int, s sequence, at, end int, f func(b []byte, at, external int) error) error {
	var buf []byte
	for at < end {
		next := end
		if end-at > convertPiece {
			next, _, _ = s.before(at+convertPiece, false)
		}
		_, external, _ := s.before(at, false)
		var b []byte
		if t.dense {
			b = unsafe.Slice((*byte)(unsafe.Add(src, at)), next-at)
		} else {
			if buf == nil {
				buf = make([]byte, min(convertPiece, end-at))
			}
			b = buf[:next-at]
			t.PackAt(b, src, count, at)
		}
		if err := f(b, at, external); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// PackExternal fills dst with the external32 form of count items at src, from offset skip
// of that form on; it may begin and end within a scalar. A value that does not fit is an
// error, and leaves dst undefined: see Exceeds.
func (t *Type) PackExternal(dst []byte, src unsafe.Pointer, count, skip int) error {
	n := min(len(dst), t.ExternalTotal(count)-skip)
	if n <= 0 || skip < 0 {
		return nil
	}
	dst = dst[:n]
	s := t.form().seq.times(count)
	var whole [16]byte
	scalar := func(at int, rep representation) ([]byte, error) {
		b := whole[:representationTable[rep].external]
		return b, t.packScalars(b, src, count, s, at, at+representationTable[rep].memory)
	}
	at, external, rep := s.before(skip, true)
	if external < skip {
		b, err := scalar(at, rep)
		if err != nil {
			return err
		}
		dst = dst[copy(dst, b[skip-external:]):]
		at, external = at+representationTable[rep].memory, external+len(b)
	}
	if len(dst) == 0 {
		return nil
	}
	end, last, rep := s.before(external+len(dst), true)
	if err := t.packScalars(dst[:last-external], src, count, s, at, end); err != nil {
		return err
	}
	if rest := dst[last-external:]; len(rest) > 0 {
		b, err := scalar(end, rep)
		if err != nil {
			return err
		}
		copy(rest, b)
	}
	return nil
}

// packScalars converts the scalars whose packed data is from offset at to end.
func (t *Type) packScalars(dst []byte, src unsafe.Pointer, count int, s sequence, at, end int) error {
	if at == end {
		return nil
	}
	_, origin, _ := s.before(at, false)
	return t.pieces(src, count, s, at, end, func(b []byte, at, external int) error {
		if err := t.refuse(s, b, at); err != nil {
			return err
		}
		to := dst[external-origin:]
		s.each(at, at+len(b), func(rep representation, n int) bool {
			info := &representationTable[rep]
			m, e := n*info.memory, n*info.external
			if n != 1 || !swapOne(rep, to, b) {
				info.pack(to[:e], b[:m])
			}
			to, b = to[e:], b[m:]
			return true
		})
		return nil
	})
}

// UnpackExternal converts src, which is the external32 form of count items from offset skip
// on, to the items at dst. It begins and ends between scalars: see Whole. If a value of it
// does not fit in memory, it returns an error and writes nothing.
func (t *Type) UnpackExternal(dst unsafe.Pointer, src []byte, count, skip int) error {
	n := min(len(src), t.ExternalTotal(count)-skip)
	if n <= 0 || skip < 0 {
		return nil
	}
	src = src[:n]
	s := t.form().seq.times(count)
	at, _, _ := s.before(skip, true)
	end, _, _ := s.before(skip+n, true)
	if t.form().mayOverflow {
		if err := t.overflows(s, src, at, end); err != nil {
			return err
		}
	}
	var buf []byte
	for at < end {
		next := end
		if end-at > convertPiece {
			next, _, _ = s.before(at+convertPiece, false)
		}
		var b []byte
		if t.dense {
			b = unsafe.Slice((*byte)(unsafe.Add(dst, at)), next-at)
		} else {
			if buf == nil {
				buf = make([]byte, min(convertPiece, end-at))
			}
			b = buf[:next-at]
		}
		to := b
		s.each(at, next, func(rep representation, n int) bool {
			info := &representationTable[rep]
			m, e := n*info.memory, n*info.external
			if n != 1 || !swapOne(rep, to, src) {
				info.unpack(to[:m], src[:e])
			}
			to, src = to[m:], src[e:]
			return true
		})
		if !t.dense {
			t.UnpackAt(dst, b, count, at)
		}
		at = next
	}
	return nil
}

// overflows returns an error for the first value that memory can't hold; src is the
// external32 form of the scalars whose packed data is from offset at to end.
func (t *Type) overflows(s sequence, src []byte, at, end int) (err error) {
	s.each(at, end, func(rep representation, n int) bool {
		info := &representationTable[rep]
		mine := src[:n*info.external]
		if info.tooPrecise != nil && info.tooPrecise(mine) >= 0 {
			err = fmt.Errorf("%w: a long double of the external32 data is finite, but larger than the largest that memory holds", ErrConversion)
			return false
		}
		src = src[len(mine):]
		return true
	})
	return err
}
