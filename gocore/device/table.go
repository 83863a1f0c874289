package device

import "slices"

// Table finds registered memory that contains a range. It is not safe for concurrent use.
// The entries are sorted by start. maxEnd[i] is the highest end of those up to i, so a
// search knows when no earlier entry reaches far enough.
type Table[R comparable] struct {
	list   []entry[R]
	maxEnd []uint64
	last   entry[R] // the result of the last search that found one
}

type entry[R comparable] struct {
	start, end uint64
	r          R
}

// Add adds r, which has the bytes from start to before end.
func (t *Table[R]) Add(r R, start, end uint64) {
	i, _ := slices.BinarySearchFunc(t.list, start, func(x entry[R], start uint64) int {
		if x.start <= start {
			return -1
		}
		return 1
	})
	t.list = slices.Insert(t.list, i, entry[R]{start, end, r})
	t.maxEnd = append(t.maxEnd, 0)
	t.update(i)
}

// Remove removes r, and reports whether it was there.
func (t *Table[R]) Remove(r R) bool {
	i := slices.IndexFunc(t.list, func(e entry[R]) bool { return e.r == r })
	if i < 0 {
		return false
	}
	t.list = slices.Delete(t.list, i, i+1)
	t.maxEnd = t.maxEnd[:len(t.list)]
	t.last = entry[R]{}
	t.update(i)
	return true
}

func (t *Table[R]) update(from int) {
	for i := from; i < len(t.list); i++ {
		t.maxEnd[i] = t.list[i].end
		if i > 0 {
			t.maxEnd[i] = max(t.maxEnd[i], t.maxEnd[i-1])
		}
	}
}

// Find returns an R that has all n bytes at start, the zero R if there is none.
func (t *Table[R]) Find(start uint64, n int) (found R) {
	end := start + uint64(n)
	if l := &t.last; l.start <= start && end <= l.end {
		return l.r
	}
	lo, hi := 0, len(t.list)
	for lo < hi {
		if mid := (lo + hi) / 2; t.list[mid].start <= start {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for i := lo - 1; i >= 0 && t.maxEnd[i] >= end; i-- {
		if t.list[i].end >= end {
			t.last = t.list[i]
			return t.last.r
		}
	}
	return found
}

// All returns what is in the table.
func (t *Table[R]) All() []R {
	all := make([]R, len(t.list))
	for i := range t.list {
		all[i] = t.list[i].r
	}
	return all
}
