//go:build interleave

package job

// Clock, if not nil, returns the time of a simulation in nanoseconds.
var Clock func() int64

func simulated() (int64, bool) {
	if Clock == nil {
		return 0, false
	}
	return Clock(), true
}
