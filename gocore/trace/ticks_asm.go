//go:build amd64 || arm64

package trace

// ticks returns the value of the processor's counter. It is in ticks_amd64.s and
// ticks_arm64.s.
func ticks() uint64
