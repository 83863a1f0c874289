package errs_test

import (
	"errors"
	"fmt"

	"gormapy/gocore/errs"
)

func ExampleNew() {
	var err error = errs.New(errs.Rank, "the target rank %d is not in the window", 4)
	fmt.Println(err)
	var e *errs.Error
	fmt.Println(errors.As(err, &e) && e.Class == errs.Rank)
	// Output:
	// MPI_ERR_RANK: the target rank 4 is not in the window
	// true
}

func ExampleClass_Text() {
	fmt.Println(errs.RMASync.Text())
	// Output: MPI_ERR_RMA_SYNC: wrong synchronization of RMA calls
}
