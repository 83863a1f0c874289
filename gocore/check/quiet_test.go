package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/check/events"
)

// TestAnOldEventIsNoQuiet checks that a checker that is behind the ranks does not take them for idle.
func TestAnOldEventIsNoQuiet(t *testing.T) {
	stream, err := events.New()
	require.NoError(t, err)
	defer stream.Close()
	const late = 100 * time.Millisecond
	var idle []time.Duration
	var c *Checker
	c = New([]*events.Stream{stream}, nil, func(int64) {
		time.Sleep(late)
		idle = append(idle, c.Idle(0))
	})
	for i := range int64(3) {
		stream.Write(events.Mark, i)
	}
	c.advance()
	assert.Equal(t, make([]time.Duration, 3), idle)

	time.Sleep(late)
	assert.Less(t, c.Idle(0), late, "it has not looked since")
	c.advance()
	assert.GreaterOrEqual(t, c.Idle(0), late)

	// a rank that waits has told of that before, which the next look finds
	stream.Write(events.Mark, 3)
	waits := events.Now()
	assert.Zero(t, c.Idle(waits))
	c.advance()
	assert.Zero(t, idle[3])
	assert.Less(t, c.Idle(0), late)
}

// TestNoEventIsNoQuiet checks that ranks that have not begun are not idle.
func TestNoEventIsNoQuiet(t *testing.T) {
	stream, err := events.New()
	require.NoError(t, err)
	defer stream.Close()
	c := New([]*events.Stream{stream}, nil, nil)
	c.advance()
	time.Sleep(time.Millisecond)
	c.advance()
	assert.Zero(t, c.Idle(0))
}
