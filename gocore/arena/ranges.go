package arena

import "slices"

// ranges are the free ranges of the file, in the order of their offsets; no two of them
// are adjacent.
type ranges []extent

type extent struct{ at, bytes uint64 }

func (e extent) end() uint64 { return e.at + e.bytes }

// take removes bytes at that alignment from the first range that has room for them, and
// returns their offset.
func (r *ranges) take(bytes, align uint64) (uint64, bool) {
	for i, e := range *r {
		at := (e.at + align - 1) &^ (align - 1)
		if at+bytes > e.end() {
			continue
		}
		*r = slices.Delete(*r, i, i+1)
		r.put(e.at, at-e.at)
		r.put(at+bytes, e.end()-at-bytes)
		return at, true
	}
	return 0, false
}

// takeLast removes the range that ends at end and returns its begin; end if there is
// none.
func (r *ranges) takeLast(end uint64) uint64 {
	if k := len(*r) - 1; k >= 0 && (*r)[k].end() == end {
		end = (*r)[k].at
		*r = (*r)[:k]
	}
	return end
}

// put adds a free range.
func (r *ranges) put(at, bytes uint64) {
	if bytes == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(*r, at, func(e extent, at uint64) int {
		if e.at < at {
			return -1
		}
		return 1
	})
	before := i > 0 && (*r)[i-1].end() == at
	after := i < len(*r) && (*r)[i].at == at+bytes
	switch {
	case before && after:
		(*r)[i-1].bytes += bytes + (*r)[i].bytes
		*r = slices.Delete(*r, i, i+1)
	case before:
		(*r)[i-1].bytes += bytes
	case after:
		(*r)[i].at, (*r)[i].bytes = at, (*r)[i].bytes+bytes
	default:
		*r = slices.Insert(*r, i, extent{at, bytes})
	}
}
