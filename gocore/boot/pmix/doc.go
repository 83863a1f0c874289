// Package pmix is the client side of PMIx, by which Open MPI's mpirun, PRRTE's prterun and
// srun --mpi=pmix assign ranks to processes and pass values between the ranks of a job.
//
// PMIx is a library, not a wire protocol: libpmix.so.2 is opened when it is needed, so
// that neither building nor importing needs it. candidates says where it is looked for.
// glue.h declares the few structures that are used, from the documented ABI, which is the
// same in versions 3 to 6; where the server's version is another, the library copes.
//
// The library has threads of its own. They are made with all signals blocked, which so
// reach Go's and Python's threads only, and signal handlers that the library installs are
// removed.
//
// It may import boot/store and settings.
package pmix
