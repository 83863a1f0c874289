package launch

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// silence is how long output may pause after the end of the ranks before
	// those who hold the pipes are taken for daemons.
	silence = 200 * time.Millisecond
	// chatter bounds how long daemons that keep writing are listened to.
	chatter = 2 * time.Second
)

// silent reports whether everything that r wrote was passed on.
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

// drain passes on the rest of the output. It takes as long as the reader of it
// does, but does not wait for daemons that hold on to the pipes.
func (l *launcher) drain() {
	quiet, end := time.Now(), time.Now().Add(chatter)
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
			quiet, end = now, now.Add(chatter)
		case seen != before:
			quiet = now
		}
		before = seen
		if now.Sub(quiet) >= silence || now.After(end) {
			break
		}
		select {
		case sig := <-l.signals:
			if ends(sig.(unix.Signal)) { // nobody wants to see the rest
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
	patience := time.After(silence)
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
