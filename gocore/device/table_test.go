package device

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Lookups are compared with a linear search, over ranges that overlap and are removed.
func TestTable(t *testing.T) {
	type span struct{ start, end uint64 }
	random := rand.New(rand.NewPCG(1, 2))
	var s Table[*span]
	var all []*span
	for range 3000 {
		if len(all) > 0 && random.IntN(3) == 0 {
			i := random.IntN(len(all))
			assert.True(t, s.Remove(all[i]))
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		} else if len(all) < 40 {
			start := random.Uint64N(1000)
			r := &span{start, start + 1 + random.Uint64N(200)}
			s.Add(r, r.start, r.end)
			all = append(all, r)
		}
		for range 20 {
			start, n := random.Uint64N(1200), 1+random.IntN(150)
			covered := false
			for _, r := range all {
				covered = covered || r.start <= start && start+uint64(n) <= r.end
			}
			got := s.Find(start, n)
			if assert.Equal(t, covered, got != nil) && got != nil {
				assert.True(t, got.start <= start && start+uint64(n) <= got.end)
				assert.Contains(t, all, got)
			}
		}
		assert.ElementsMatch(t, all, s.All())
		if t.Failed() {
			return
		}
	}
	assert.False(t, s.Remove(&span{}))
}
