package agent

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// between returns the cuts between the nodes of two sets, of which side has the bits.
func between(nodes, side int) map[[2]int]bool {
	cuts := map[[2]int]bool{}
	for x := range nodes {
		for y := x + 1; y < nodes; y++ {
			if side>>x&1 != side>>y&1 {
				cuts[[2]int{x, y}] = true
			}
		}
	}
	return cuts
}

// TestTwoParts divides jobs of up to 6 nodes with 1 to 3 ranks into all pairs of parts: that with
// more ranks goes on, or that with rank 0.
func TestTwoParts(t *testing.T) {
	for nodes := 2; nodes <= 6; nodes++ {
		total := 1
		for range nodes {
			total *= 3
		}
		for number := range total {
			ranks := make([]int, nodes)
			for i, n := 0, number; i < nodes; i, n = i+1, n/3 {
				ranks[i] = 1 + n%3
			}
			for side := 1; side < 1<<nodes-1; side += 2 { // node 0 has the bit
				with, without := 0, 0
				for i, n := range ranks {
					if side>>i&1 != 0 {
						with += n
					} else {
						without += n
					}
				}
				var want []int
				for i := range nodes {
					if (side>>i&1 != 0) == (with < without) {
						want = append(want, i)
					}
				}
				got := evict(between(nodes, side), ranks)
				slices.Sort(got)
				if !assert.Equal(t, want, got, "ranks %v, side %b", ranks, side) {
					return
				}
			}
		}
	}
}

// TestAnyCuts: of any cuts nobody is left who is cut from another who is left, nobody leaves who is
// cut from nobody, and the result does not depend on the order in which the cuts became known.
func TestAnyCuts(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		nodes := 2 + draw.IntN(9)
		ranks := make([]int, nodes)
		for i := range ranks {
			ranks[i] = 1 + draw.IntN(4)
		}
		cuts := map[[2]int]bool{}
		for range draw.IntN(nodes * 2) {
			x, y := draw.IntN(nodes), draw.IntN(nodes)
			if x != y {
				cuts[[2]int{min(x, y), max(x, y)}] = true
			}
		}
		leave := evict(cuts, ranks)
		assert.Equal(t, leave, evict(cuts, ranks))
		for c := range cuts {
			assert.True(t, slices.Contains(leave, c[0]) || slices.Contains(leave, c[1]), "%v stay, cuts %v", c, cuts)
		}
		for _, node := range leave {
			assert.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(cuts)), func(c [2]int) bool { return c[0] == node || c[1] == node }), "node %d leaves, cuts %v", node, cuts)
		}
	}
}
