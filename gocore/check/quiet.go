package check

import (
	"sync/atomic"
	"time"
)

// quiet is a time in which no rank tells of anything. It lies between looks at the streams, and not behind the time of the last
// event: that one is old if the checker is behind the ranks. Only the checker's goroutine calls look and end.
type quiet struct {
	since, until atomic.Int64 // when its first look and its latest one began; since is 0 while there are events
	begun        bool         // there has been an event
}

// look says that a look that began at a time has found no event; 0 if one may be about to be written.
func (q *quiet) look(began int64) {
	q.until.Store(began)
	if q.begun && q.since.Load() == 0 {
		q.since.Store(began)
	}
}

// end says that there is one.
func (q *quiet) end() {
	q.begun = true
	q.since.Store(0)
}

// length returns how long it has lasted at the latest look; 0 if that look did not begin after a time.
func (q *quiet) length(after int64) time.Duration {
	until := q.until.Load() // first: the later look of another quiet must not count for this one
	since := q.since.Load()
	if since == 0 || until <= after {
		return 0
	}
	return max(0, time.Duration(until-since))
}
