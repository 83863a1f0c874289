// Package check finds races and misuse of one-sided communication in what the ranks of a job have done, from
// their streams of events (package events). The launcher runs it while the job runs (mpiexec --check).
//
// # Order and completion
//
// Each thread of each rank has a vector clock. Events are processed in the order of their times, which contains
// every order that the program establishes, and clocks are joined where the program orders threads:
//
//	message            what the sender knew, to the thread that completes the receive
//	collective call    by the flow of its data: of the root (Bcast, Scatter), to the root (Gather, Reduce),
//	                   of the ranks before (Scan), of all (others, and what makes or frees an object)
//	Fence              of all ranks of the window
//	Post, Start        of the target, to operations of the epoch
//	Complete, Wait     of the origins, to the target
//	Unlock, Lock       of those who held the lock, to those who acquire it, unless both share it
//	atomics            of the writer, to who reads the value that it wrote (atomics.go)
//	Python's threads   of who releases a lock, puts into a queue or starts a thread (gormapy.check)
//
// That is the one relation, of calls. Completion is the other one: an operation is an access to its buffers until it is
// complete locally, and to its target until it is complete there:
//
//	                          locally   at the target
//	Flush_local, Wait of a request   x      of a Get
//	Flush, Unlock, Fence             x      x
//	Complete                         x      by the target's Wait
//
// Two accesses to the same bytes, one of which changes them, race unless the later one begins when its thread knows of the
// completion of the earlier one. A load or store is complete at once. Accumulates are exempt if they are atomic to each other.
// In shared windows a direct access needs Sync on both sides besides.
//
// # Memory
//
// The accesses to a rank's memory are in a tree by address (space.go). An access is removed when a later one of the same
// thread and kind covers it, or when all threads know that it is complete.
//
// It may import check/events.
package check
