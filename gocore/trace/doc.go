// Package trace records what a rank does: its calls, messages, one-sided
// operations and waits, in memory that outlives the rank. All layers from the engine
// up write records, and package chrome reads them.
//
// # Where the records are
//
// A part is the memory of one rank's recording: a header, the names of the
// calls, and records of 64 bytes (one cache line) each. It is a memfd, outside
// Go's heap. The launcher makes one for each rank (mpiexec --trace) and keeps it
// open, so that the records remain however the rank ends: by an exception, by Abort,
// by SIGKILL. Without a launcher the process makes a part of its own
// (gormapy.trace.start).
//
// # Who writes what
//
// The C shim writes a record for each call of the program: the hot methods by
// themselves, the Python methods by wrappers that exist only while a recording
// is on. A call inside a call (a hot method that passes its arguments on to its
// Python method, an object's send that consists of two messages) belongs to the outer
// one: a depth in thread-local memory detects it. The call's details (peer, bytes,
// communicator) are noted by the code that has parsed them: the hot method, or the
// function of the shim that takes integers.
//
// Go writes the rest: package p2p a record for each message sent, package mpi one for
// each message received, package engine one for each wait that was not over at once,
// package mpi one for what a handle stands for, on its first use.
//
// # The protocol
//
// A writer takes the next index by an atomic add, so there is no lock and any
// number of threads may write. Beyond the capacity it writes nothing: Next minus
// Capacity is how many records were dropped. State is stored last: 0 never
// written, 1 a call that has begun, 2 done. A reader reads after the writers have
// ended or stopped, and ignores records in state 0. A record in state 1 is a call from
// which its rank did not return.
//
// No two processes write to a part at the same time: a rank is one process, and the
// launcher reads when it has ended.
//
// A goroutine populates pages ahead of the writers, since the first touch of a page
// takes as long as all the records on it.
//
// # Messages
//
// A send has a number, counted per process, which travels in the header of its
// message (fabric.Header.Aux, which p2p needs for nothing else), so that a
// receive identifies its send exactly, whatever wildcards it had and
// whenever the two recordings began. 0 is a send that was not recorded. Messages
// of collectives have none: their calls are recorded.
//
// # Time
//
// Records have ticks of the processor's time-stamp counter if the kernel reports
// that it runs at a constant rate in all states (8 ns to read, and a call needs
// two), else nanoseconds of CLOCK_MONOTONIC. The header has two pairs of both clocks,
// from the recording's begin and end, which convert ticks to nanoseconds.
//
// It may import settings and sys.
package trace
