package mpi_test

import (
	"fmt"

	"gormapy/gocore/mpi"
)

// Each rank sends to its right-hand neighbour. Without a launcher that is the rank
// itself.
func ExampleExchange() {
	comm, err := mpi.World() // and mpi.Leave before the program ends
	if err != nil {
		panic(err)
	}
	rank, size := comm.Rank(), comm.Size()
	in := make([]float64, 2)
	status, err := mpi.Exchange(comm, []float64{0.5, 1.5}, (rank+1)%size, in, (rank+size-1)%size, 0)
	fmt.Println(in, status.Bytes, "bytes from rank", status.Source, err)
	// Output: [0.5 1.5] 16 bytes from rank 0 <nil>
}
