package events

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEventsOfSeveralThreadsInTheOrderOfTheirTimes(t *testing.T) {
	s, err := New()
	require.NoError(t, err)
	defer s.Close()
	other, err := Open(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.seg.FD))
	require.NoError(t, err)
	defer other.Close()
	const each = 200_000 // more than there is room for at once
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := range int64(each) {
				other.Write(Op, int64(w), i)
			}
		}()
	}
	next := [3]int64{}
	last := int64(0)
	for n := 0; n < 3*each; {
		before := Now()
		e, after := s.Next()
		if e == nil {
			assert.LessOrEqual(t, after, Now())
			assert.True(t, after == 0 || after >= before)
			continue
		}
		n++
		require.Equal(t, next[e.Words[0]], e.Words[1])
		next[e.Words[0]]++
		require.GreaterOrEqual(t, e.Time, last)
		last = e.Time
	}
	writers.Wait()
	e, _ := s.Next()
	assert.Nil(t, e)
}

func TestAStreamOfAnotherVersionIsRefused(t *testing.T) {
	s, err := New()
	require.NoError(t, err)
	defer s.Close()
	s.head.Version++
	_, err = Open(s.Path())
	assert.ErrorContains(t, err, "no stream of events by this version")
}
