//go:build amd64 || arm64

package trace

// ticks returns the value of the processor's counter.
func ticks() uint64
