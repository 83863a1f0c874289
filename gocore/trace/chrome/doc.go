// Package chrome joins the parts of a recording, one of each rank, and writes
// what people look at: a file in the Chrome trace event format, which Perfetto
// and chrome://tracing open, and a table of the time that calls took.
//
// # The file
//
// A process is a rank (pid is its number in COMM_WORLD), a thread one of its
// threads. Events are
//
//   - X: a call, with what it was about (args) and how long it waited. Accesses
//     to a rank's part of a window are shown in threads of their own at that rank,
//     one for each window and origin.
//   - s and f: an arrow from the call that sent a message to the one that received
//     it, or from a one-sided call to the access at its target.
//   - i: a message that nobody received, or whose sender did not record it.
//   - C: bytes sent by messages and moved by one-sided operations up to here.
//   - M: names.
//
// Times are microseconds since the first event, with three decimals. What joins
// the ranks' clocks is that they are one host's.
//
// otherData has what the events have not: the ranks, what was dropped, windows,
// and the table as text.
//
// It may import trace.
package chrome
