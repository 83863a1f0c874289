package pmi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMapping(t *testing.T) {
	for _, c := range []struct {
		text string
		size int
		want []int
	}{
		{"(vector,(0,1,2))", 2, []int{0, 0}},
		{"(vector,(0,2,1))", 2, []int{0, 1}},
		{"(vector,(0,1,3),(1,1,1))", 4, []int{0, 0, 0, 1}},
		{"(vector,(0,2,2))", 6, []int{0, 0, 1, 1, 0, 0}},
		{"(vector,(3,1,16))", 3, []int{3, 3, 3}},
		// Of Hydra 5.0.2 on two hosts, with the option -hosts.
		{"(vector,0)", 1, []int{0}},
		{"(vector,[(0,2,1)]x2)", 4, []int{0, 1, 0, 1}},                          // host0,host1
		{"(vector,[(0,2,1)]x3,0)", 7, []int{0, 1, 0, 1, 0, 1, 0}},               // host0,host1
		{"(vector,[(0,1,2),1]x2,0)", 7, []int{0, 0, 1, 0, 0, 1, 0}},             // host0:2,host1:1
		{"(vector,[(0,1,2),1]x2,(0,1,2))", 8, []int{0, 0, 1, 0, 0, 1, 0, 0}},    // host0:2,host1:1
		{"(vector,[(0,1,2),(1,2,1)]x2,0)", 9, []int{0, 0, 1, 2, 0, 0, 1, 2, 0}}, // host0:2,host1:1,host2:1
		{"(vector,[[0,1]x2,2]x2)", 10, []int{0, 1, 0, 1, 2, 0, 1, 0, 1, 2}},
	} {
		ranges, err := ParseMapping(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, c.want, Nodes(ranges, c.size), c.text)
	}
	ranges, err := ParseMapping("(vector)")
	require.NoError(t, err)
	assert.Empty(t, ranges)
	deep := "(vector," + strings.Repeat("[", 9) + "0" + strings.Repeat("]x1", 9) + ")"
	for _, bad := range []string{"", "vector", "(vector,)", "(vector0)", "(vector,(0,1))", "(vector,(0,0,1))", "(vector,(0,1,0))",
		"(vector,(a,1,1))", "(vector,(0,1,1)", "(vector,(-1,1,1))", "(vector,(0,1,99999999999999999999))", "(vector,0,)", "(vector,0 )",
		"(vector,[0])", "(vector,[0]x)", "(vector,[0x2)", "(vector,0]x2)", "(vector,[]x2)", "(vector,[0]x1073741823)", "(vector,(0,1,1)x2)", deep} {
		_, err := ParseMapping(bad)
		assert.ErrorContains(t, err, "process mapping", bad)
	}
	assert.Empty(t, Nodes(nil, 3))
}

// FuzzMapping: any text gives an error, or nodes for as many ranks as there are.
func FuzzMapping(f *testing.F) {
	f.Add("(vector,[(0,1,2),1]x2,(0,1,2))", 8)
	f.Add("(vector,[[0]x9]x9)", 3)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(0, min(size, 1000))
		ranges, err := ParseMapping(text)
		if err != nil {
			return
		}
		assert.LessOrEqual(t, len(ranges), maxRanges)
		if nodes := Nodes(ranges, size); len(ranges) > 0 {
			assert.Len(t, nodes, size)
		}
	})
}
