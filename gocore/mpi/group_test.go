package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
)

// groupOf makes a group of world ranks, which need not exist.
func groupOf(t testing.TB, ranks ...int) int64 {
	t.Helper()
	h := addGroup(ranks)
	t.Cleanup(func() { GroupFree(h) })
	return h
}

// worldRanks returns the world ranks of a new group, and frees it.
func worldRanks(t testing.TB, h int64) []int {
	t.Helper()
	g, e := getGroup(made(t, h))
	succeeds(t, CodeOf(e))
	succeeds(t, GroupFree(h))
	return g.ranks
}

// list returns the address and the length of a list of ranks.
func list(t testing.TB, ranks ...int32) (addr, n int64) {
	t.Helper()
	if len(ranks) == 0 {
		return 0, 0
	}
	_, addr = memory(t, ranks...)
	return addr, int64(len(ranks))
}

func TestGroupConstructors(t *testing.T) {
	g := groupOf(t, 10, 11, 12, 13, 14, 15)
	pick := func(f func(h, addr, n int64) int64, per int, ranks ...int32) []int {
		addr, n := list(t, ranks...)
		return worldRanks(t, f(g, addr, n/int64(per)))
	}
	for name, c := range map[string]struct{ got, want []int }{
		"incl keeps the order of the list": {pick(GroupIncl, 1, 3, 0, 5), []int{13, 10, 15}},
		"incl of nothing":                  {pick(GroupIncl, 1), nil},
		"excl keeps the order of the group": {
			pick(GroupExcl, 1, 3, 0), []int{11, 12, 14, 15}},
		"excl of nothing":     {pick(GroupExcl, 1), []int{10, 11, 12, 13, 14, 15}},
		"range with a stride": {pick(GroupRangeIncl, 3, 0, 5, 2), []int{10, 12, 14}},
		"range backwards":     {pick(GroupRangeIncl, 3, 5, 1, -2), []int{15, 13, 11}},
		"two ranges":          {pick(GroupRangeIncl, 3, 4, 5, 1, 0, 0, 1), []int{14, 15, 10}},
		"range without ranks": {pick(GroupRangeIncl, 3, 5, 0, 1), nil},
		"range excl":          {pick(GroupRangeExcl, 3, 1, 5, 2), []int{10, 12, 14}},
		"dup":                 {worldRanks(t, GroupDup(g)), []int{10, 11, 12, 13, 14, 15}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.got) })
	}
}

func TestGroupSetOperations(t *testing.T) {
	a, b := groupOf(t, 3, 1, 2), groupOf(t, 2, 4, 3)
	for name, c := range map[string]struct{ got, want []int }{
		"union has the first group's ranks first":  {worldRanks(t, GroupUnion(a, b)), []int{3, 1, 2, 4}},
		"intersection has the first group's order": {worldRanks(t, GroupIntersection(a, b)), []int{3, 2}},
		"difference":                                  {worldRanks(t, GroupDifference(a, b)), []int{1}},
		"union with the empty group":                  {worldRanks(t, GroupUnion(GroupEmpty, b)), []int{2, 4, 3}},
		"intersection with the empty group":           {worldRanks(t, GroupIntersection(a, GroupEmpty)), nil},
		"difference of a group and itself is nothing": {worldRanks(t, GroupDifference(a, a)), nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.got) })
	}
	assert.EqualValues(t, GroupEmpty, GroupDifference(a, a), "a group without ranks is GROUP_EMPTY")
}

func TestGroupCompare(t *testing.T) {
	a := groupOf(t, 1, 2, 3)
	assert.Equal(t, Ident, GroupCompare(a, a))
	assert.Equal(t, Ident, GroupCompare(a, groupOf(t, 1, 2, 3)))
	assert.Equal(t, Similar, GroupCompare(a, groupOf(t, 3, 1, 2)))
	assert.Equal(t, Unequal, GroupCompare(a, groupOf(t, 1, 2)))
	assert.Equal(t, Unequal, GroupCompare(a, groupOf(t, 1, 2, 4)))
	assert.Equal(t, Ident, GroupCompare(GroupEmpty, GroupEmpty))
}

func TestGroupTranslate(t *testing.T) {
	a, b := groupOf(t, 5, 6, 7), groupOf(t, 7, 5)
	_, in := memory[int32](t, 0, 1, 2, ProcNull)
	out, to := memory(t, make([]int32, 4)...)
	succeeds(t, GroupTranslate(a, in, 4, b, to))
	assert.Equal(t, []int32{1, Undefined, 0, ProcNull}, out)

	_, wrong := memory[int32](t, 3)
	fails(t, errs.Rank, "rank 3 is not in the group, whose ranks are 0 to 2", GroupTranslate(a, wrong, 1, b, to))
}

func TestGroupHasThisProcessOrNot(t *testing.T) {
	for name, c := range map[string]struct {
		ranks []int
		want  int
	}{
		"first": {[]int{0, 1}, 0}, "last": {[]int{4, 2, 0}, 2}, "not in it": {[]int{1, 2}, Undefined},
	} {
		t.Run(name, func(t *testing.T) {
			h := groupOf(t, c.ranks...)
			rank, code := GroupRank(h)
			succeeds(t, code)
			assert.Equal(t, c.want, rank)
			assert.Equal(t, len(c.ranks), GroupSize(h))
		})
	}
}

func TestGroupErrors(t *testing.T) {
	g := groupOf(t, 10, 11, 12)
	negative := func(h int64) Code { require.Negative(t, h); return int(-h) }
	call := func(f func(h, addr, n int64) int64, per int, ranks ...int32) Code {
		addr, n := list(t, ranks...)
		return negative(f(g, addr, n/int64(per)))
	}
	freed := addGroup([]int{1})
	succeeds(t, GroupFree(freed))
	_, rankOfNull := GroupRank(GroupNull)
	for name, c := range map[string]struct {
		class errs.Class
		text  string
		code  Code
	}{
		"rank beyond the group":  {errs.Rank, "rank 3 is not in the group, whose ranks are 0 to 2", call(GroupIncl, 1, 0, 3)},
		"negative rank":          {errs.Rank, "rank -1 is not in the group", call(GroupExcl, 1, -1)},
		"rank twice":             {errs.Rank, "rank 1 is named twice", call(GroupIncl, 1, 1, 1)},
		"stride 0":               {errs.Arg, "(0, 2, 0) has stride 0", call(GroupRangeIncl, 3, 0, 2, 0)},
		"stride 0 to exclude":    {errs.Arg, "(0, 2, 0) has stride 0", call(GroupRangeExcl, 3, 0, 2, 0)},
		"range beyond the group": {errs.Rank, "rank 3 is not in the group", call(GroupRangeIncl, 3, 2, 4, 1)},
		"ranges that overlap":    {errs.Rank, "rank 1 is named twice", call(GroupRangeExcl, 3, 0, 1, 1, 1, 2, 1)},
		"null":                   {errs.Group, "GROUP_NULL", -GroupSize(GroupNull)},
		"rank of null":           {errs.Group, "GROUP_NULL", rankOfNull},
		"freed":                  {errs.Group, "has been freed", -GroupSize(freed)},
		"freed twice":            {errs.Group, "has been freed", GroupFree(freed)},
		"union with null":        {errs.Group, "GROUP_NULL", negative(GroupUnion(g, GroupNull))},
		"union of null":          {errs.Group, "GROUP_NULL", negative(GroupUnion(GroupNull, g))},
		"comparison with freed":  {errs.Group, "has been freed", -GroupCompare(g, freed)},
		"translation to freed":   {errs.Group, "has been freed", GroupTranslate(g, 0, 0, freed, 0)},
	} {
		t.Run(name, func(t *testing.T) { fails(t, c.class, c.text, c.code) })
	}
	succeeds(t, GroupFree(GroupEmpty))
	assert.Zero(t, GroupSize(GroupEmpty), "the empty group is never freed")
}
