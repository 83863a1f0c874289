// Package mpiio implements the files of MPI: views, accesses of one rank, and collective
// accesses that gather the data of all ranks into large reads and writes.
//
// # Operations
//
// Every call that may take time is an [Op]: a chain of states. Each state leaves a
// collective or a piece of work on the file, which the next state waits for. Advance
// makes as much progress as it can without waiting for another rank.
//
//   - A blocking call is advanced by the thread that waits. That thread does the work on
//     the file itself, a piece at a time (pieceBytes, pieceRuns), so that it handles
//     signals and aborts in between.
//   - A nonblocking call has a goroutine for the work on the file. Any thread that waits
//     also advances its collectives. The goroutine wakes the rank's sleepers when it is
//     done.
//
// An Op that is abandoned (Ctrl-C, the end of a peer) starts nothing more. A piece of
// work in progress ends first, and then the Op releases the file. The caller that
// abandons it keeps the user's memory for good, as with any collective.
//
// # Collective calls
//
// Collectives on one file are executed one after the other, in the order of the calls:
// an Op waits for the one before it (prev). Each begins with an exchange of what every
// rank called. So a call that is wrong on one rank fails on all with the same class, and
// different calls are noticed. A collective that accesses the file ends with an exchange
// of the outcomes: all ranks fail or none.
//
// Ranks that share memory exchange by the board of the file's communicator (coll.Comm.Exchange), others by messages. Only
// collectives on the file use that communicator, one after the other, so that one of a nonblocking call on its board delays
// nothing else. A rank that gives up an exchange on the board, or the access before the last one, tells the others, who end
// the call with an error, and the next call on the file is whole again.
//
// Open: rank 0 opens first, and only it may create the file. If it fails, no other rank
// tries. If any other fails, all close, and a file that was created is removed. Close
// closes the descriptor when the last operation on it has ended. If the program drops
// the file without Close, the rank closes its own descriptor only.
//
// # Two phases
//
// When the accesses of the ranks interleave (twophase.go), the range from the first byte
// to the last is divided among aggregators, each of which processes its part in windows
// of cb_buffer_size. In each round every rank sends each aggregator the runs and the
// bytes that fall into its window. The aggregator assembles them and writes each
// contiguous stretch by one call. It never writes a byte that no rank sent, so it needs
// no lock to read the gaps. Where ranks overlap, the one with the highest number wins, in
// all windows. A read works in the other direction: ranks send runs and get bytes, and
// where the file ends.
//
// # Shared file pointer
//
// It lies in a memfd that rank 0 makes and the others map when the file is opened. An
// atomic addition moves it, so no rank has to serve it, and none can die holding it. If
// the ranks can't map it, calls that need it return an error.
//
// # Data representations
//
// In a file in external32 the stream of a view is the external32 form of the data, and its
// types are those of the file ([dtype.Type.InFile]). All that is said above counts bytes of
// this stream; only what moves the user's data converts it (conversion.go). Values that
// external32 can't hold are found before a write begins, so that nothing of it is written.
//
// # Atomic mode
//
// An access of one rank holds a lock of the operating system on its range of the file
// (F_OFD_SETLK, tried again and again, so that Ctrl-C ends it). Descriptors of different
// ranks exclude each other; operations of one rank take turns.
//
// It may import coll, dtype, engine, errs, fabric, job, p2p and sys.
package mpiio
