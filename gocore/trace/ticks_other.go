//go:build !amd64 && !arm64

package trace

func ticks() uint64 { return nanos() }
