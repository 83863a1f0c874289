//go:build amd64 || arm64

package trace

// ticks reads the counter.
func ticks() uint64
