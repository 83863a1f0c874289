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

// TestElementsThatOverlap compares with a count of how often each byte is in elements.
func TestElementsThatOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	seen := map[bool]int{}
	for range 20_000 {
		s := &shape{extent: rng.Int64N(60) - 20}
		for at, n := int64(0), 1+rng.IntN(4); n > 0; n-- {
			part := [2]int64{at + rng.Int64N(12), 1 + rng.Int64N(4)}
			s.parts, s.size = append(s.parts, part), s.size+part[1]
			if at = part[0] + part[1]; rng.IntN(20) == 0 {
				at -= 4
			}
		}
		count := rng.Int64N(6)
		bytes, twice := map[int64]bool{}, false
		for i := range count {
			for _, p := range s.parts {
				for b := range p[1] {
					at := i*s.extent + p[0] + b
					twice = twice || bytes[at]
					bytes[at] = true
				}
			}
		}
		seen[twice]++
		assert.Equal(t, twice, s.overlaps(count), "%d of %+v", count, s)
	}
	assert.Greater(t, min(seen[false], seen[true]), 3000)
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
