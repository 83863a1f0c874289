//go:build !interleave || model

package job

// BoardSlots is how many collectives a rank can be ahead of the others. The interleaving
// test has fewer, so that it covers their reuse.
const BoardSlots = 8

// NonblockingSlots is how many nonblocking collectives of a rank can have data that others have not read.
const NonblockingSlots = 8

// LeastBarrierGroup is the least number of ranks in a group of a barrier, but the last one. The simulation has fewer ranks.
const LeastBarrierGroup = 8
