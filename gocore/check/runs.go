package check

import (
	"cmp"
	"slices"
)

// runs are the bytes of an access: count blocks of the same length, a stride apart. The blocks do not overlap and go upwards.
type runs struct {
	start, count, bytes, stride int64
}

// one returns n bytes from start on.
func one(start, n int64) runs { return runs{start, 1, n, n} }

func (r runs) end() int64 { return r.start + (r.count-1)*r.stride + r.bytes }

// block returns the start of block i.
func (r runs) block(i int64) int64 { return r.start + i*r.stride }

// reach returns the first block that ends after byte at.
func (r runs) reach(at int64) int64 {
	switch {
	case at < r.start+r.bytes:
		return 0
	case r.count == 1:
		return 1
	}
	return min(r.count, (at-r.start-r.bytes)/r.stride+1)
}

// overlap returns bytes that are in both, empty if there are none.
func (r runs) overlap(o runs) (from, to int64) {
	if r.count > o.count {
		r, o = o, r
	}
	for i := o.start; i < r.end(); {
		// the first block of r that ends after i, and the first of o that ends after its start
		k := r.reach(i)
		if k == r.count {
			return 0, 0
		}
		j := o.reach(r.block(k))
		if j == o.count {
			return 0, 0
		}
		from, to = max(r.block(k), o.block(j)), min(r.block(k)+r.bytes, o.block(j)+o.bytes)
		if from < to {
			return from, to
		}
		i = max(i+1, o.block(j))
	}
	return 0, 0
}

// shape is how one element of a datatype lies: an extent, and runs of bytes in it.
type shape struct {
	extent  int64
	basic   int64 // the only basic datatype in it, 0 if there are several
	parts   [][2]int64
	element int64 // its size
	size    int64 // bytes of data
}

// spread returns the bytes of count elements from an address on.
func (s *shape) spread(start, count int64) []runs {
	if count == 0 || s.size == 0 {
		return nil
	}
	if len(s.parts) == 1 {
		return []runs{spread(start+s.parts[0][0], count, s.parts[0][1], s.extent)}
	}
	if r, ok := s.even(); ok && count == 1 {
		r.start += start
		return []runs{r}
	}
	var all []runs
	for _, p := range s.parts {
		all = append(all, spread(start+p[0], count, p[1], s.extent))
	}
	return all
}

// even returns the parts as runs if all have the same length and distance.
func (s *shape) even() (runs, bool) {
	stride := s.parts[1][0] - s.parts[0][0]
	for i, p := range s.parts {
		if p[1] != s.parts[0][1] || stride < p[1] || i > 0 && p[0]-s.parts[i-1][0] != stride {
			return runs{}, false
		}
	}
	return runs{s.parts[0][0], int64(len(s.parts)), s.parts[0][1], stride}, true
}

func spread(start, count, bytes, extent int64) runs {
	switch {
	case count == 1 || extent == bytes:
		return one(start, count*bytes)
	case extent < 0: // elements go downwards
		return runs{start + (count-1)*extent, count, bytes, -extent}
	case extent < bytes: // elements overlap
		return one(start, (count-1)*extent+bytes)
	}
	return runs{start, count, bytes, extent}
}

// bytes reports whether the elements are bytes without a meaning, which stand for any.
func (s *shape) bytes() bool { return s.element == 1 }

// mostSteps is how long it is looked for bytes that elements have in common. Of types that take longer nothing is said.
const mostSteps = 10_000_000

// overlaps reports whether some of count elements have bytes in common. Elements may lie in the gaps of others, as the columns of a
// matrix do.
func (s *shape) overlaps(count int64) bool {
	if count == 0 || s.size == 0 {
		return false
	}
	sorted := slices.Clone(s.parts)
	slices.SortFunc(sorted, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	end := sorted[0][0]
	for _, p := range sorted {
		if p[0] < end {
			return true
		}
		end = p[0] + p[1]
	}
	if count == 1 || s.extent == 0 {
		return count > 1
	}
	// an element and the k-th one after it; those that begin behind its end have nothing in common with it
	step := max(s.extent, -s.extent)
	last := min(count-1, (end-sorted[0][0]-1)/step)
	if last*int64(len(sorted)) > mostSteps {
		return false
	}
	for k := int64(1); k <= last; k++ {
		if meet(sorted, k*step) {
			return true
		}
	}
	return false
}

// meet reports whether parts, which are sorted, have bytes in common with the same parts further up.
func meet(parts [][2]int64, further int64) bool {
	for i, j := 0, 0; i < len(parts) && j < len(parts); {
		here, there := parts[i], parts[j][0]+further
		switch {
		case here[0]+here[1] <= there:
			i++
		case there+parts[j][1] <= here[0]:
			j++
		default:
			return true
		}
	}
	return false
}
