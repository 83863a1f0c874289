//go:build race

package ibverbs_test

// The race detector allocates in calls of C.
func init() { raceDetector = true }
