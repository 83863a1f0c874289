//go:build interleave && !model

package job

// BoardSlots is the number for the interleaving test; see slots.go.
const BoardSlots = 2

// LeastBarrierGroup is the number for the simulation; see slots.go.
const LeastBarrierGroup = 2
