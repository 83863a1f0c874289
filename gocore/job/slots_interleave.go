//go:build interleave

package job

// BoardSlots is for the test; see posts.go.
const BoardSlots = 2
