// Command ring sends numbers around a ring of ranks. It is the Go form of
// python -m gormapy.examples.ring; programs of both forms can be ranks of one job.
//
//	go build -o ring ./gocore/examples/ring && mpiexec -n 4 ./ring
//
// It may import mpi.
package main

import (
	"fmt"
	"log"

	"gormapy/gocore/mpi"
)

const turns = 5

func main() {
	log.SetFlags(0)
	log.SetPrefix("ring: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	comm, err := mpi.World()
	if err != nil {
		return err
	}
	rank, size := comm.Rank(), comm.Size()
	right, left := (rank+1)%size, (rank+size-1)%size

	out, in := make([]int32, 1), make([]int32, 1)
	for turn := range turns {
		out[0] = int32(rank + 100*turn)
		if _, err := mpi.Exchange(comm, out, right, in, left, 0); err != nil {
			return err
		}
		fmt.Printf("[iter %d] rank %d got %d from %d\n", turn, rank, in[0], left)
		if want := int32(left + 100*turn); in[0] != want {
			return fmt.Errorf("turn %d: %d came from rank %d, not %d", turn, in[0], left, want)
		}
	}
	return mpi.Leave()
}
