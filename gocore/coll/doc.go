// Package coll is the collective operations: each a schedule of point-to-point
// steps that advances whenever somebody polls, so that the blocking form, the
// nonblocking form, Ctrl-C and the reset all work in one way.
//
// A schedule is a function of the step's number that starts the requests of
// that step and does the local work of the one before. It never waits. Messages
// of the k-th collective on a communicator carry tag k in the communicator's
// second context, so collectives in flight do not mix.
//
// The barrier of ranks on one host counts in shared memory instead (barrier.go).
//
// It may import dtype, engine, errs, fabric, job, op, p2p and sys.
package coll
