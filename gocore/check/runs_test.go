package check

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func bytesOf(r runs) map[int64]bool {
	all := map[int64]bool{}
	for i := range r.count {
		for b := range r.bytes {
			all[r.block(i)+b] = true
		}
	}
	return all
}

func TestOverlapOfRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	some := func() runs {
		bytes := 1 + rng.Int64N(5)
		return runs{rng.Int64N(40), 1 + rng.Int64N(6), bytes, bytes + rng.Int64N(8)}
	}
	for range 20_000 {
		a, b := some(), some()
		common := false
		mine := bytesOf(a)
		for i := range bytesOf(b) {
			common = common || mine[i]
		}
		from, to := a.overlap(b)
		if assert.Equal(t, common, from < to, "%+v %+v", a, b); !common {
			continue
		}
		theirs := bytesOf(b)
		for i := from; i < to; i++ {
			assert.True(t, mine[i] && theirs[i], "%+v %+v: byte %d", a, b, i)
		}
	}
}

func TestRunsOfShapes(t *testing.T) {
	one := &shape{extent: 8, parts: [][2]int64{{0, 8}}, size: 8}
	assert.Equal(t, []runs{{100, 1, 24, 24}}, one.spread(100, 3))
	column := &shape{extent: 96, parts: [][2]int64{{0, 8}, {32, 8}, {64, 8}}, size: 24}
	assert.Equal(t, []runs{{100, 3, 8, 32}}, column.spread(100, 1))
	assert.Len(t, column.spread(100, 2), 3)
	assert.False(t, column.overlaps(2))
	twice := &shape{extent: 24, parts: [][2]int64{{0, 16}, {8, 16}}, size: 32}
	assert.True(t, twice.overlaps(1))
	down := &shape{extent: -8, parts: [][2]int64{{0, 8}}, size: 8}
	assert.Equal(t, []runs{{84, 3, 8, 8}}, down.spread(100, 3))
}

func TestSpaceFindsWhatOverlaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s space
	all := map[*access]bool{}
	for range 3000 {
		if rng.IntN(3) > 0 {
			a := &access{runs: one(rng.Int64N(1000), 1+rng.Int64N(20))}
			all[a] = true
			s.add(a)
		}
		low := rng.Int64N(1000)
		high := low + rng.Int64N(30)
		got := map[*access]bool{}
		s.over(low, high, func(a *access) bool {
			got[a] = true
			return rng.IntN(4) > 0 || !drop(all, a)
		})
		for a := range all {
			if a.runs.start < high && a.runs.end() > low {
				assert.True(t, got[a])
			}
		}
		assert.Equal(t, len(all), s.n)
	}
}

func drop(all map[*access]bool, a *access) bool {
	delete(all, a)
	return true
}
