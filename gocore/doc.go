// Package gocore has no code: it is the folder of the core, whose layers are,
// from the lowest to the highest,
//
//	sys               what Linux offers
//	errs dtype fabric errors, datatypes, the transports' contract
//	job op            the memory a job shares, reduction kernels
//	fabric/* boot     transports; how a process learns its rank
//	engine            progress and waiting
//	p2p               messages
//	coll              collective operations
//	rma               windows
//	mpi               the object model: what pybind exports and Go programs use
//
// and beside them launch, which is mpiexec. A lower layer never imports a
// higher one. What each package may import is said in its comment and held to
// by the test in this folder.
//
// It may import nothing.
package gocore
