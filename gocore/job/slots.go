//go:build !interleave || model

package job

// BoardSlots is how many collectives a rank can be ahead of the others. The interleaving
// test has fewer, so that it covers their reuse.
const BoardSlots = 8
