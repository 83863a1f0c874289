package job_test

import (
	"fmt"

	"gormapy/gocore/job"
)

// The segment of a job says what its ranks do, for reports of deadlocks.
func ExampleSegment_Describe() {
	seg, err := job.Create(2)
	if err != nil {
		panic(err)
	}
	defer seg.Close()
	fmt.Println(len(seg.Ranks), "ranks")
	fmt.Println(seg.Describe(1)[0])
	// Output:
	// 2 ranks
	// rank 1 (pid 0): has not initialised MPI
}
