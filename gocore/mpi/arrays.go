package mpi

import (
	"os"
	"sync"

	"gormapy/gocore/arena"
	"gormapy/gocore/check/events"
	"gormapy/gocore/settings"
)

// Arrays returns the pool that has NumPy's arrays while gormapy.shared_arrays asks for that.
var Arrays = sync.OnceValue(func() *arena.Pool { return arena.NewPool(settings.SharedArraysKept.Bytes()) })

// leastArray is the size of the smallest pages: an array in the pool takes whole pages.
const leastArray = 4096

// ArraysFrom returns the size in bytes from which on arrays are in the pool.
func ArraysFrom() uint64 {
	if os.Getenv(events.EnvStream) != "" {
		return 1 // each array has pages of its own, which can be watched
	}
	return max(settings.SharedArraysFrom.Bytes(), leastArray)
}

// SharedArrays reports whether the user has the arrays of all threads made in the pool.
func SharedArrays() bool { return settings.SharedArrays.On() }
