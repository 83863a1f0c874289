//go:build interleave && !model

package job

// BoardSlots is the number for the interleaving test; see slots.go.
const BoardSlots = 2
