package core

import "gormapy/gocore/mpi"

// CheckJob begins to write what the program does for the launcher. It returns 1, or 0 if the launcher has not
// asked for it.
func CheckJob() int {
	yes, code := mpi.CheckJob()
	if yes {
		return 1
	}
	return -code
}

// Identity and the following: see the functions of package mpi. window is 1 for a window, 0 for a communicator.
func Identity(handle int64, window int) string { return mpi.Identity(handle, window != 0) }

// TypeLayout returns how an element of a datatype lies.
func TypeLayout(typ int64, limit int) string { return mpi.TypeLayout(typ, limit) }
