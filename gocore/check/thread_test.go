package check

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/check/events"
)

// threadsOf runs threads of a rank, one after the other or, if they are not joined, side by side, and returns how many the checker has.
func threadsOf(n int, joined bool) int {
	c := New(make([]*events.Stream, 1), nil, nil)
	r := c.ranks[0]
	does := func(thread uint32, kind events.Kind, key int64) {
		c.process(r, &events.Event{Kind: kind, Thread: thread, Words: []int64{key}})
	}
	for i := range int64(n) {
		begin, end, thread := 2*i+1, 2*i+2, uint32(i+2)
		does(1, events.Release, begin)
		does(thread, events.Acquire, begin)
		does(thread, events.Release, end)
		does(thread, events.ThreadEnd, 0)
		if joined {
			does(1, events.Acquire, end)
		}
	}
	return len(c.threads)
}

// TestThreadsFollow checks that a thread that begins after another was joined takes its place in the clocks.
func TestThreadsFollow(t *testing.T) {
	assert.Equal(t, 2, threadsOf(100, true))
	assert.Equal(t, 101, threadsOf(100, false))
}
