// Package store is the contract between package boot and the key-value stores of
// process managers, by which the ranks of a job find each other.
//
// Package boot/pmi, boot/pmix and boot/rendezvous implement it.
//
// It may import only the standard library.
package store

// Store is one rank's connection to the store of its job. It is not safe for concurrent
// use, except that Abort may be called at any time.
type Store interface {
	// Name is the name of the process manager, for people: "Hydra", "Slurm (pmi2)".
	Name() string
	// Rank and Size are the place of this process in the job.
	Rank() int
	Size() int
	// Program is the number of its program on the launcher's command line (MPI_APPNUM).
	Program() int
	// Nodes returns the number of the node of each rank as far as the process manager
	// tells it; nil if it does not. It is a hint: who shares memory is found by trying.
	Nodes() ([]int, error)
	// Put stores value, of any bytes, under a key of this rank. A key has up to 32
	// letters, digits and hyphens, and may be put once.
	Put(key string, value []byte) error
	// Fence waits until all ranks have called it. What was put before can be read after
	// it.
	Fence() error
	// Get returns the value that rank has put under key before the last Fence.
	Get(rank int, key string) ([]byte, error)
	// Abort asks the process manager to end all ranks with the exit status code. It
	// returns at once, and this process may be ended, too.
	Abort(code int)
	// Finalize reports that this rank ends successfully, and closes the connection.
	Finalize()
}
