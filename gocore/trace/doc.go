// Package trace records what a rank does: its calls, messages, one-sided
// operations and waits, in memory that outlives the rank.
//
// # Where the records are
//
// A part is the memory of one rank's recording: a header, the names of the
// calls, and records of 64 bytes (one cache line) each. It is a memfd, outside
// Go's heap. The launcher makes one for each rank (mpiexec --trace) and keeps it
// open, so that what a rank has recorded is there however the rank ends: by an
// exception, by Abort, by SIGKILL. Without a launcher the process makes a part
// of its own (gormapy.trace.start).
//
// # Who writes what
//
// The C shim writes a record for each call of the program: the hot methods by
// themselves, the Python methods by wrappers that exist only while a recording
// is on. A call inside of a call (a hot method that hands its arguments to its
// Python method, an object's send made of two messages) belongs to the outer
// one: a depth in thread-local memory tells. The call's details (peer, bytes,
// communicator) are noted by whoever has parsed them: the hot method, or the
// function of the shim that takes integers.
//
// Go writes the rest: package p2p a record for each message that is sent,
// package mpi one for each that was received, package engine one for each wait
// that had to wait, package mpi what a handle stands for, on its first use.
//
// # The protocol
//
// A writer takes the next index by an atomic add, so there is no lock and any
// number of threads may write. Beyond the capacity it writes nothing: Next minus
// Capacity is how many records were dropped. State is stored last: 0 never
// written, 1 a call that has begun, 2 done. A reader, who comes when the writers
// have ended or stopped, takes no notice of 0; a record in state 1 is a call that
// its rank did not come back from.
//
// Next is all that two processes could write, and they don't: a rank is one
// process, and the launcher reads when it has ended.
//
// Pages are made ahead of the writers by a goroutine, since a first touch takes as
// long as all the records that a page has room for.
//
// # Messages
//
// A send has a number, counted per process, which travels in the header of its
// message (fabric.Header.Aux, which p2p needs for nothing else), so that a
// receive knows exactly which send it belongs to, whatever wildcards it had and
// whenever the two recordings began. 0 is a send that nobody recorded. Messages
// of collectives have none: their calls are recorded.
//
// # Time
//
// Records have ticks of the processor's time-stamp counter where the kernel says
// that it runs at a constant rate in all states (8 ns to read, and a call needs
// two), else nanoseconds of CLOCK_MONOTONIC. Two pairs of both in the header, from the
// recording's begin and end, turn ticks into nanoseconds.
//
// It may import settings and sys.
package trace
