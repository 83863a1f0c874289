package mpi

// ballast makes Go's garbage collector run after 16 MiB or more of garbage. Requests and the like are small and soon garbage, and the
// collector would run hundreds of times a second for a heap of 4 MiB, on cores that the ranks need. The memory is never written, so it is no
// memory of the machine.
var ballast []byte

func addBallast() {
	if ballast == nil {
		ballast = make([]byte, 16<<20)
	}
}
