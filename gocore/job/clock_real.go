//go:build !interleave

package job

// simulated returns the time of a simulation, of which there is none in this build; see
// clock_interleave.go.
func simulated() (int64, bool) { return 0, false }
