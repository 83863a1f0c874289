package mpi

import (
	"gormapy/gocore/engine"
)

// kept is user memory that stays registered, by handle.
var kept = newTable[engine.Region](1)

// NetworkKeys reports whether there is a network that requires memory to be
// registered.
func NetworkKeys() bool {
	return proc != nil && proc.eng.Net() != nil && proc.eng.Net().Caps().Keys
}

// KeepMemory registers n bytes at addr until ReleaseKept is called with the returned
// handle, which must be before they are freed. It returns 0 if they can't be
// registered.
func KeepMemory(addr, n int64) (h int64) {
	var code Code
	defer Contain(&code)
	if state.Load() != stateReady {
		return 0
	}
	r := proc.eng.Keep(pointer(addr), int(n))
	if r == nil {
		return 0
	}
	return kept.add(r)
}

// ReleaseKept ends the registration of KeepMemory.
func ReleaseKept(h int64) {
	var code Code
	defer Contain(&code)
	if r := kept.take(h); r != nil && state.Load() == stateReady {
		r.Release()
	}
}
