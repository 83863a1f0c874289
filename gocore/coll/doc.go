// Package coll is the collective operations: each a schedule of point-to-point
// steps that advances whenever somebody polls, so that the blocking form, the
// nonblocking form, Ctrl-C and the reset all work in one way.
//
// A schedule is a function of the step's number that starts the requests of
// that step and does the local work of the one before. It never waits. Messages
// of the k-th collective on a communicator carry tag k in the communicator's
// second context, so collectives in flight do not mix.
//
// The barrier of ranks on one host counts in shared memory instead (barrier.go),
// small blocking collectives post their data there (board.go, boardop.go), and
// longer ones where their data is (singlecopy.go).
//
// # Memory that faults
//
// A rank that can't access the memory it was given posts that it gives the collective
// up, in place of its call (KindGiveUp): the others end with an error that names it, or
// complete if they have what they need. The ranks' numbers stay in step, so that the
// communicator works on.
//
// # Algorithms
//
// On one host every rank can read every other's memory, at any time and several
// at once, so what is a tree or a ring on a network is often one flat step here.
// By what goes to or comes from one rank, on a machine with 2 cores:
//
//   - up to job.PostBytes (job.LongPostBytes in small jobs), blocking: flat
//     through the board, whatever the number of ranks. A tree would have fewer
//     cache lines to read, and as many waits one after the other as it has levels.
//   - longer, blocking, more ranks than two or than cores: each rank takes what it
//     needs straight from the others' buffers, once; reductions fold a slice each.
//   - else by messages. Bcast: binomial tree, from 256 KiB on in segments, so that
//     a rank passes on one while it gets the next. Gather, Scatter, Allgather,
//     Alltoall: everything straight to where it belongs. Reduce, Allreduce from 32
//     KiB, Reduce_scatter_block: a slice each, then the slices are collected;
//     shorter: every rank (or the root) folds all operands. Scan from 32 KiB or 5
//     ranks on: by doubling.
//
// It may import dtype, engine, errs, fabric, job, op, p2p and sys.
package coll
