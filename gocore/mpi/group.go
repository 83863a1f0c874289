package mpi

import (
	"fmt"
	"slices"
	"unsafe"

	"gormapy/gocore/errs"
)

// Group is an ordered set of world ranks.
type Group struct{ ranks []int }

// Results of comparisons, numbered as in gormapy.MPI.
const (
	Ident     = 0
	Congruent = 1
	Similar   = 2
	Unequal   = 3
)

func addGroup(ranks []int) int64 {
	if len(ranks) == 0 {
		return GroupEmpty
	}
	return groups.add(&Group{ranks})
}

func getGroup(h int64) (*Group, *errs.Error) {
	if g := groups.get(h); g != nil {
		return g, nil
	}
	if h == GroupNull {
		return nil, errs.New(errs.Group, "the group is GROUP_NULL")
	}
	return nil, errs.New(errs.Group, "the group has been freed")
}

// ints returns the n C ints at an address.
func ints(addr, n int64) []int32 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(pointer(addr)), n)
}

// longs returns the n 64-bit integers at an address.
func longs(addr, n int64) []int64 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*int64)(pointer(addr)), n)
}

func pointer(addr int64) unsafe.Pointer {
	p := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// with calls f with a group and returns the handle of a new group of the ranks that f
// returns, or a negative code.
func with(h int64, f func(g *Group) ([]int, *errs.Error)) int64 {
	g, e := getGroup(h)
	if e == nil {
		var ranks []int
		if ranks, e = f(g); e == nil {
			return addGroup(ranks)
		}
	}
	return -int64(CodeOf(e))
}

// GroupSize returns the number of ranks of a group.
func GroupSize(h int64) int {
	g, e := getGroup(h)
	if e != nil {
		return -CodeOf(e)
	}
	return len(g.ranks)
}

// GroupRank returns this process's rank in a group, Undefined if it is not in it.
func GroupRank(h int64) (rank int, code Code) {
	g, e := getGroup(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	if proc != nil {
		if i := slices.Index(g.ranks, proc.rank); i >= 0 {
			return i, 0
		}
	}
	return Undefined, 0
}

func (g *Group) pick(list []int32) ([]int, *errs.Error) {
	out := make([]int, 0, len(list))
	for _, r := range list {
		if r < 0 || int(r) >= len(g.ranks) {
			return nil, errs.New(errs.Rank, "rank %d is not in the group, %s", r, groupRange(len(g.ranks)))
		}
		if slices.Contains(out, g.ranks[r]) {
			return nil, errs.New(errs.Rank, "rank %d is named twice", r)
		}
		out = append(out, g.ranks[r])
	}
	return out, nil
}

func without(ranks, drop []int) []int {
	var out []int
	for _, r := range ranks {
		if !slices.Contains(drop, r) {
			out = append(out, r)
		}
	}
	return out
}

// expandRanges expands (first, last, stride) triples.
func expandRanges(triples []int32) ([]int32, *errs.Error) {
	var out []int32
	for i := 0; i+2 < len(triples); i += 3 {
		first, last, stride := triples[i], triples[i+1], triples[i+2]
		if stride == 0 || len(out) > 1<<20 {
			return nil, errs.New(errs.Arg, "the range (%d, %d, %d) has stride 0", first, last, stride)
		}
		for r := first; (stride > 0 && r <= last) || (stride < 0 && r >= last); r += stride {
			out = append(out, r)
		}
	}
	return out, nil
}

// GroupIncl makes a group of the listed ranks.
func GroupIncl(h, addr, n int64) int64 {
	return with(h, func(g *Group) ([]int, *errs.Error) { return g.pick(ints(addr, n)) })
}

// GroupExcl makes a group without the listed ranks.
func GroupExcl(h, addr, n int64) int64 {
	return with(h, func(g *Group) ([]int, *errs.Error) {
		drop, e := g.pick(ints(addr, n))
		return without(g.ranks, drop), e
	})
}

// GroupRangeIncl makes a group of ranges of ranks.
func GroupRangeIncl(h, addr, n int64) int64 {
	return with(h, func(g *Group) ([]int, *errs.Error) {
		list, e := expandRanges(ints(addr, 3*n))
		if e != nil {
			return nil, e
		}
		return g.pick(list)
	})
}

// GroupRangeExcl makes a group without ranges of ranks.
func GroupRangeExcl(h, addr, n int64) int64 {
	return with(h, func(g *Group) ([]int, *errs.Error) {
		list, e := expandRanges(ints(addr, 3*n))
		if e != nil {
			return nil, e
		}
		drop, e := g.pick(list)
		return without(g.ranks, drop), e
	})
}

// combine returns the handle of a new group that f makes of the ranks of two groups.
func combine(a, b int64, f func(x, y []int) []int) int64 {
	g, e := getGroup(b)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return with(a, func(x *Group) ([]int, *errs.Error) { return f(x.ranks, g.ranks), nil })
}

// GroupUnion makes a group of all ranks of a, then those of b that are not in a.
func GroupUnion(a, b int64) int64 {
	return combine(a, b, func(x, y []int) []int { return append(slices.Clone(x), without(y, x)...) })
}

// GroupIntersection makes a group of the ranks of a that are in b.
func GroupIntersection(a, b int64) int64 {
	return combine(a, b, func(x, y []int) []int { return without(x, without(x, y)) })
}

// GroupDifference makes a group of the ranks of a that are not in b.
func GroupDifference(a, b int64) int64 { return combine(a, b, without) }

func compareRanks(x, y []int) int {
	if slices.Equal(x, y) {
		return Ident
	}
	if len(x) == len(y) && len(without(x, y)) == 0 {
		return Similar
	}
	return Unequal
}

// GroupCompare compares two groups.
func GroupCompare(a, b int64) int {
	x, e := getGroup(a)
	if e != nil {
		return -CodeOf(e)
	}
	y, e := getGroup(b)
	if e != nil {
		return -CodeOf(e)
	}
	return compareRanks(x.ranks, y.ranks)
}

// GroupTranslate writes, for each of n ranks of a, its rank in b or Undefined.
func GroupTranslate(a, in, n, b, out int64) Code {
	x, e := getGroup(a)
	if e != nil {
		return CodeOf(e)
	}
	y, e := getGroup(b)
	if e != nil {
		return CodeOf(e)
	}
	to := ints(out, n)
	for i, r := range ints(in, n) {
		if r == -2 { // PROC_NULL translates to itself
			to[i] = -2
			continue
		}
		if r < 0 || int(r) >= len(x.ranks) {
			return classError(errs.Rank, "rank %d is not in the group, %s", r, groupRange(len(x.ranks)))
		}
		to[i] = Undefined
		if j := slices.Index(y.ranks, x.ranks[r]); j >= 0 {
			to[i] = int32(j)
		}
	}
	return 0
}

// GroupDup copies a group.
func GroupDup(h int64) int64 {
	return with(h, func(g *Group) ([]int, *errs.Error) { return g.ranks, nil })
}

// GroupFree frees a group.
func GroupFree(h int64) Code {
	if h == GroupEmpty {
		return 0
	}
	if groups.take(h) == nil {
		return classError(errs.Group, "the group has been freed")
	}
	return 0
}

// groupRange returns, for errors about missing ranks, which ranks a group of n has.
func groupRange(n int) string {
	if n == 0 {
		return "which is empty"
	}
	return fmt.Sprintf("whose ranks are 0 to %d", n-1)
}
