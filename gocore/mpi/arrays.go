package mpi

import (
	"strconv"
	"sync"

	"gormapy/gocore/arena"
	"gormapy/gocore/settings"
)

// Arrays returns the pool that has NumPy's arrays while gormapy.shared_arrays asks for that.
var Arrays = sync.OnceValue(func() *arena.Pool { return arena.NewPool(byteCount(settings.SharedArraysKept)) })

// ArraysFrom returns the size in bytes from which on arrays are in the pool.
func ArraysFrom() uint64 { return byteCount(settings.SharedArraysFrom) }

// SharedArrays reports whether the user has all arrays made in the pool.
func SharedArrays() bool { return settings.SharedArrays.On() }

// byteCount returns a setting's value as a number of bytes, the default if it is none.
func byteCount(s *settings.Setting) uint64 {
	for _, text := range []string{s.Value(), s.Default} {
		if n, err := strconv.ParseUint(text, 10, 46); err == nil {
			return n
		}
	}
	return 0
}
