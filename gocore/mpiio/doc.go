// Package mpiio is the files of MPI: views, reads and writes of one rank, and
// collective ones that gather what the ranks have into large accesses.
//
// # Operations
//
// Every call that may take time is an [Op]: a chain of states, each of which
// leaves something to wait for, a collective or a piece of work on the file.
// Advance goes on as far as it can without waiting for another rank.
//
//   - A blocking call is advanced by the thread that waits, which does the work on
//     the file itself, a piece at a time (pieceBytes, pieceRuns), so that it sees
//     signals and aborts in between.
//   - Of a nonblocking one, work on the file is done by a goroutine, and whoever
//     waits for anything carries on the collectives. The goroutine wakes the rank's
//     sleepers when it is done.
//
// An Op that is abandoned (Ctrl-C, the end of a peer) starts nothing more; a piece
// of work that is under way ends first, and then the Op lets go of the file. Who
// abandons it keeps the user's memory for good, as with any collective.
//
// # Collective calls
//
// Collectives on one file happen one after the other, in the order of the calls:
// an Op waits for the one before it (prev). Each begins with an exchange of what
// every rank called, so that a call that is wrong on one rank fails on all with the
// same class, and so that different calls are noticed. What touches the file ends
// with an exchange of what came of it: all ranks fail or none.
//
// Open: rank 0 opens first, and is the only one that creates; if it could not, no
// other tries. If any other can't, all close, and what was created is removed.
// Close lets go of the descriptor when the last operation on it has ended; a rank
// whose program drops the file without Close closes its own descriptor only.
//
// # Two phases
//
// When the accesses of the ranks interleave (collective.go), the range from the
// first byte to the last is divided among aggregators, each of which takes its part
// in windows of cb_buffer_size. In each round every rank sends each aggregator the
// runs and the bytes that fall into its window; the aggregator puts them together
// and writes each contiguous stretch by one call. It never writes a byte that
// nobody gave it, so it needs no lock to read what is between. Where ranks overlap,
// the one with the highest number wins, in all windows. A read is the same the
// other way round: runs there, bytes back, and where the file ends.
//
// # Shared file pointer
//
// It lies in a memfd that rank 0 makes and the others map when the file is opened,
// and is moved by an atomic addition: nobody has to serve it, and none can hold it
// while it dies. Where the ranks can't map it, calls that need it say so.
//
// # Atomic mode
//
// An access of one rank holds a lock of the system's on its range of the file
// (F_OFD_SETLK, tried again and again, so that Ctrl-C ends it). Descriptors of
// different ranks exclude each other; operations of one rank take turns.
//
// It may import coll, dtype, errs, p2p and sys.
package mpiio
