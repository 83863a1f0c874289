// Package coll is the collective operations, on which mpi and rma are built. Each
// is a schedule of point-to-point steps that advances whenever a thread of the
// process polls, so that the blocking form, the nonblocking form, Ctrl-C and the
// reset share one mechanism.
//
// A schedule is a function of the step's number that starts the requests of
// that step and does the local work of the one before. It never waits. Messages
// of the k-th collective on a communicator carry tag k in the communicator's
// second context, so collectives in flight do not mix.
//
// Three kinds of blocking collectives of ranks on one host use shared memory
// instead: the barrier counts there (barrier.go), small collectives publish their
// data there (board.go, boardop.go), and longer ones publish addresses, from which
// the others copy (singlecopy.go).
//
// # Calls that do not match
//
// Ranks with a board compare their calls there. Others send theirs along with the messages
// of the collective, and a rank that waits for long asks those that it awaits (ledger.go).
//
// # Memory that faults
//
// A rank that can't access the memory it was given publishes, in place of its call,
// that it gives the collective up (KindGiveUp), or answers so those that ask. The others
// end with an error that names this rank, or complete if they have what they need. The
// ranks' sequence numbers still agree, so the communicator remains usable.
//
// # Algorithms
//
// On one host every rank can read every other's memory, at any time and several
// at once, so what is a tree or a ring on a network is often one flat step here.
// The algorithm depends on the amount of data per rank. On a machine with 2 cores:
//
//   - up to job.BoardSlotBytes (job.LongSlotBytes in small jobs), blocking: flat
//     through the board, whatever the number of ranks. A tree would have fewer
//     cache lines to read, but as many consecutive waits as it has levels.
//   - longer, blocking, more ranks than two or than cores: each rank copies what it
//     needs straight from the others' buffers, once; reductions fold a slice each.
//   - else by messages. Bcast: binomial tree, from 256 KiB on in segments, so that
//     a rank passes on one while it receives the next. Gather, Scatter, Allgather,
//     Alltoall: each part directly from its source to its destination. Reduce,
//     Allreduce from 32 KiB, Reduce_scatter_block: a slice each, then the slices are
//     collected; shorter: every rank (or the root) folds all operands. Scan from 32
//     KiB or 5 ranks on: by recursive doubling.
//
// It may import dtype, engine, errs, fabric, job, op, p2p, sys and sys/atom.
package coll
