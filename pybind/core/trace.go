package core

import "gormapy/gocore/mpi"

// TraceStart begins to record; for this and the following see package mpi.
func TraceStart(names string) int { return -mpi.TraceStart(names) }

// TraceJob begins to record for the launcher. It returns 1, or 0 if the launcher has not
// asked for it.
func TraceJob(names string) int {
	yes, code := mpi.TraceJob(names)
	if yes {
		return 1
	}
	return -code
}

// TraceStop ends the recording.
func TraceStop() int { return -mpi.TraceStop() }

// TraceWrite joins parts of recordings into a file, with times from the origin on.
func TraceWrite(parts, path string, origin int64) string { return mpi.TraceWrite(parts, path, origin) }
