package dtype

import "sort"

// sequence is the scalars of a type in type-map order, without their displacements: n
// scalars of one representation, or, if parts is not nil, n times the parts.
type sequence struct {
	n     int
	rep   representation
	parts *parts
}

// parts are sequences one after the other.
type parts struct {
	list             []sequence
	memory, external []int // bytes up to the end of each
}

// unit returns the bytes of one of the n units, in packed data and in external32.
func (s sequence) unit() (memory, external int) {
	if s.parts != nil {
		last := len(s.parts.list) - 1
		return s.parts.memory[last], s.parts.external[last]
	}
	info := &representationTable[s.rep]
	return info.memory, info.external
}

func (s sequence) size() (memory, external int) {
	memory, external = s.unit()
	return s.n * memory, s.n * external
}

func (s sequence) times(n int) sequence {
	if s.n *= n; s.n == 0 {
		return sequence{}
	}
	return s
}

// chain returns sequences one after the other. The caller must not use the slice
// afterwards.
func chain(list []sequence) sequence {
	n := 0
	for _, s := range list {
		switch last := n - 1; {
		case s.n == 0:
		case last >= 0 && list[last].rep == s.rep && list[last].parts == s.parts:
			list[last].n += s.n
		default:
			list[n] = s
			n++
		}
	}
	if n == 0 {
		return sequence{}
	}
	if n == 1 {
		return list[0]
	}
	p := &parts{list: append([]sequence(nil), list[:n]...), memory: make([]int, n), external: make([]int, n)}
	memory, external := 0, 0
	for i, s := range p.list {
		m, e := s.size()
		memory, external = memory+m, external+e
		p.memory[i], p.external[i] = memory, external
	}
	return sequence{n: 1, parts: p}
}

// before returns the bytes that the whole scalars within the first bytes of the sequence
// have, in packed data and in external32, and the representation of the scalar after them.
// The first bytes are those of external32 if byExternal, else of packed data.
func (s sequence) before(bytes int, byExternal bool) (memory, external int, next representation) {
	for s.n > 0 {
		m, e := s.unit()
		unit := m
		if byExternal {
			unit = e
		}
		i := min(bytes/unit, s.n)
		memory, external = memory+i*m, external+i*e
		bytes -= i * unit
		if s.parts == nil || i == s.n {
			break
		}
		ends := s.parts.memory
		if byExternal {
			ends = s.parts.external
		}
		if i = sort.SearchInts(ends, bytes+1); i > 0 {
			bytes -= ends[i-1]
			memory, external = memory+s.parts.memory[i-1], external+s.parts.external[i-1]
		}
		s = s.parts.list[i]
	}
	return memory, external, s.rep
}

// has reports whether wanted is true for a representation of the sequence.
func (s sequence) has(wanted func(info *representationInfo) bool) bool {
	if s.n == 0 {
		return false
	}
	if s.parts == nil {
		return wanted(&representationTable[s.rep])
	}
	for _, part := range s.parts.list {
		if part.has(wanted) {
			return true
		}
	}
	return false
}

// each calls f for the scalars from offset skip of the packed data to end, in runs of one
// representation. Both are at the beginning of scalars. It stops when f returns false.
func (s sequence) each(skip, end int, f func(rep representation, n int) bool) bool {
	if end <= skip {
		return true
	}
	unit, _ := s.unit()
	if s.parts == nil {
		return f(s.rep, (end-skip)/unit)
	}
	for base := skip / unit * unit; base < end; base += unit {
		if base >= skip && base+unit <= end {
			if !s.parts.all(f) {
				return false
			}
			continue
		}
		p := s.parts
		for i := sort.SearchInts(p.memory, max(skip-base, 0)+1); i < len(p.list); i++ {
			size, _ := p.list[i].size()
			start := base + p.memory[i] - size
			if start >= end {
				break
			}
			if !p.list[i].each(max(skip-start, 0), min(end-start, size), f) {
				return false
			}
		}
	}
	return true
}

// all is each for all scalars of the parts.
func (p *parts) all(f func(rep representation, n int) bool) bool {
	for i := range p.list {
		s := &p.list[i]
		if s.parts == nil {
			if !f(s.rep, s.n) {
				return false
			}
			continue
		}
		for range s.n {
			if !s.parts.all(f) {
				return false
			}
		}
	}
	return true
}
