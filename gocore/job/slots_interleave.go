//go:build interleave && !model

package job

// BoardSlots is the number for the interleaving test; see slots.go.
const BoardSlots = 2

// NonblockingSlots is how many nonblocking collectives of a rank can have data that others have not read.
const NonblockingSlots = 2

// LeastBarrierGroup is the number for the simulation; see slots.go.
const LeastBarrierGroup = 2
