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
// Collectives of ranks on one host use shared memory instead: the barrier counts
// there (barrier.go), small collectives publish their data there (board.go, boardop.go;
// nonblockingboard.go, nonblockingop.go), and longer blocking ones publish addresses, from
// which the others copy (singlecopy.go; parts.go with a count for each rank, edges.go among
// neighbors).
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
//   - barrier: one counter, or groups that have a counter each, from 32 ranks on if each has a core (barrier.go).
//   - up to job.BoardSlotBytes, nonblocking: flat, by slots for these.
//   - up to job.BoardSlotBytes (job.LongSlotBytes in small jobs), blocking: flat
//     through the board, but for an allreduce of 64 ranks or more if each has a core (boardgroups.go). A tree has fewer
//     cache lines to read, but as many consecutive waits as it has levels. docs/collectives-model.md has the counts for
//     up to 256 ranks.
//   - longer (of two ranks with a core each, more than pairMost), blocking: each rank copies what it
//     needs straight from the others' buffers, once; reductions fold a slice each, but for a Reduce of two ranks (singlereduce.go). What
//     is not long is read from a copy that the others map; how long that is depends on the speed of copies by the kernel (stage.go).
//   - with a count for each rank, blocking: the same, or from the slots of the board, as each rank decides for what it sends (parts.go).
//     The first rooted ones on a communicator use messages.
//   - else, and an allreduce of two ranks with a core each that is not staged, by messages. Bcast: binomial tree, from 256 KiB on in segments, so that
//     a rank passes on one while it receives the next. Gather, Scatter, Allgather,
//     Alltoall: each part directly from its source to its destination. Reduce,
//     Allreduce from 32 KiB, Reduce_scatter_block: a slice each, then the slices are
//     collected; shorter: every rank (or the root) folds all operands. Scan from 32
//     KiB or 5 ranks on: by recursive doubling.
//
// # Several nodes
//
// A communicator whose ranks are on several nodes, some of them on the same one, is divided
// (Divide): of each node it knows the ranks, in the order of the communicator, and the leader,
// the lowest of them; in a call with a root, that is the leader of its own node. The nodes are
// in the order of their lowest ranks. Every rank knows all this from the job's map of nodes, so
// that nothing is exchanged for it. With a rank a node, or one node, nothing is divided.
//
// A collective of such a communicator has three phases: inside the nodes, across them by the
// leaders, and inside again. They are steps of one schedule, and all its messages have the
// collective's tag in the communicator's second context, as those of flat schedules: two
// messages between the same ranks stay in order, and the receiver posts its receives in that
// order. Inside a node messages go through shared memory, and long ones are copied once, from
// rank to rank. So all that is said above holds for them, too:
//
//   - nonblocking and persistent collectives are the same schedules, and a leader advances them
//     in any wait of its program;
//   - each message, also one that passes on data of others, has its sender's call as label. A
//     leader that finds a mismatch gives up, and the answers to questions (ledger.go) tell the
//     others which rank called what;
//   - of a rank that has ended, those that await it tell the others: the cause in an answer
//     is then this rank, so that all have MPI_ERR_PROC_FAILED and its name;
//   - an interrupt or a reset in the middle ends the schedule on each rank by itself. More ranks
//     than in a flat schedule depend on one that is interrupted, so it tells them only if it
//     has not been reset after interruptTime: a Ctrl-C reaches all ranks, but not at once.
//
// The phases inside a node do not use boards. On one host, with 4 ranks on 2 cores, a board saves
// 12 us of a Barrier; one over tcp takes 170 us. Two protocols in one call would need a third
// one for mismatches and deaths between them.
//
// What crosses the network, for n nodes, is in messages
//
//	Barrier                      n log n, of the leaders
//	Bcast                        n-1, in segments if it is long
//	Gather, Scatter              n-1 parcels (parcel.go)
//	Allgather                    n(n-1); each block crosses once to each node, long ones, too
//	Alltoall                     n(n-1) parcels
//	Reduce                       n-1
//	Allreduce                    n(n-1) up to 8 nodes, 2(n-1) of more
//	Reduce_scatter_block         n(n-1)
//	Scan, Exscan                 n log n, of the last ranks of the nodes
//
// and of long reductions, in bytes, as much as if each node was one rank: a few ranks of each
// node fold a slice each, and exchange it with the ranks of the other nodes that have the same
// one (nodelong.go).
//
// These stay flat: Gather, Scatter and Alltoall of blocks that are too long for a parcel (512
// bytes, less with over 128 ranks), which cross
// the network once in any case, and would be copied twice more; short Scans of up to 4 ranks, in which
// the lower ranks wait for nobody; long reductions if a node has so few ranks that the others
// could not share the work (foldsLong); scans whose nodes are not contiguous in the communicator, as
// if the job was placed round-robin; and reductions of operations that do not commute in such
// communicators. Nodes that are contiguous fold in the order of the ranks. Where each rank has
// a count of its own, the way of a block can't depend on the counts of others, which not all
// ranks know: blocks that are too long for a parcel are announced in it.
//
// An operation that Python defines is folded by Python, in the order of the ranks, from what
// Gather, Allgather or Alltoallv bring.
//
// All ranks have the same bits of an Allreduce, because each element is folded by one rank, or
// by leaders in the same order. They are not those of another placement of the ranks.
//
// It may import arena, dtype, engine, errs, fabric, job, op, p2p, sys, sys/atom and workers.
package coll
