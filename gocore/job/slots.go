//go:build !interleave

package job

// BoardSlots is how many collectives a rank can be ahead of the others. The test of
// the interleavings has fewer, so that it sees them used again.
const BoardSlots = 8
