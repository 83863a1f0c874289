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

func TestAWayThatIsNearlyAsFastIsTriedMoreOften(t *testing.T) {
	for few := 2; few <= Most; few++ {
		var c Choice
		run(&c, 200, []int64{100, 110, 110}[:few]...)
		used := run(&c, 1600, []int64{100, 110, 110}[:few]...)
		tried := 0
		for _, n := range used[1:few] {
			assert.GreaterOrEqual(t, n, 1600/tryNear/few, "%v", used)
			tried += n
		}
		assert.Equal(t, 1600/tryNear, tried)
	}
	var c Choice
	run(&c, 200, 100, 110)
	used := run(&c, 2*tryNear, 100, 50) // what the program does now suits the other one
	assert.Greater(t, used[1], tryNear/2)
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
