//go:build !interleave

package job

// simulated is for tests that make time pass themselves; see clock_interleave.go.
func simulated() (int64, bool) { return 0, false }
