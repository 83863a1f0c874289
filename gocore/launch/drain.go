package launch

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pauseLimit is how long output may pause after the end of the ranks. After a
	// longer pause, processes that hold the pipes are taken for daemons.
	pauseLimit = 200 * time.Millisecond
	// daemonLimit is how long the output of daemons that keep writing is read.
	daemonLimit = 2 * time.Second
)

// silent reports whether all output of r was passed on.
func (r *rank) silent() bool {
	for _, s := range r.streams {
		select {
		case <-s.done:
		default:
			return false
		}
	}
	return true
}

// drain passes on the rest of the output. It waits for a slow reader of the output,
// but not for daemons that hold the pipes open.
func (l *launcher) drain() {
	quiet, end := time.Now(), time.Now().Add(daemonLimit)
	var before int64
	for {
		done, busy, seen := true, false, int64(0)
		for _, r := range l.ranks {
			done = done && r.silent()
			for _, s := range r.streams {
				busy = busy || s.writing.Load()
				seen += s.seen.Load()
			}
		}
		now := time.Now()
		switch {
		case done:
			return
		case busy && l.interrupted.IsZero():
			quiet, end = now, now.Add(daemonLimit)
		case seen != before:
			quiet = now
		}
		before = seen
		if now.Sub(quiet) >= pauseLimit || now.After(end) {
			break
		}
		select {
		case sig := <-l.signals:
			if ends(sig.(unix.Signal)) { // the user does not want the rest
				return
			}
		case <-time.After(2 * time.Millisecond):
		}
	}
	for _, r := range l.ranks {
		for _, s := range r.streams {
			s.close()
		}
	}
	patience := time.After(pauseLimit)
	for _, r := range l.ranks {
		for _, s := range r.streams {
			select {
			case <-s.done:
			case <-patience:
				return
			}
		}
	}
}
