package choice

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// run makes so many choices, where each way takes its time, and returns how often each is used.
func run(c *Choice, times int, takes ...int64) (used [Most]int) {
	for range times {
		way := c.Choose(len(takes))
		used[way]++
		c.Learn(way, takes[way])
	}
	return used
}

func TestTheFastestWayIsUsed(t *testing.T) {
	for fast := range Most {
		takes := []int64{100, 100, 100}
		takes[fast] = 50
		var c Choice
		used := run(&c, 1000, takes...)
		assert.Greater(t, used[fast], 950)
		for way, n := range used {
			assert.GreaterOrEqual(t, n, tryFirst, "way %d", way)
		}
	}
}

func TestItIsNoticedWhenAnotherWayBecomesFaster(t *testing.T) {
	var c Choice
	run(&c, 500, 50, 100)
	used := run(&c, 3000, 200, 100)
	assert.Greater(t, used[1], 2500)
}

func TestOneSlowTimeChangesNothing(t *testing.T) {
	var c Choice
	run(&c, 100, 50, 100)
	c.Learn(0, 1_000_000)
	assert.Equal(t, 0, c.Choose(2))
}

func TestOneWay(t *testing.T) {
	var c Choice
	assert.Equal(t, [Most]int{200}, run(&c, 200, 10))
}
