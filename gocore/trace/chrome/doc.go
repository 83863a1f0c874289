// Package chrome joins the parts of a recording, one of each rank, and writes
// them for users: as a file in the Chrome trace event format, which Perfetto
// and chrome://tracing open, and as a table of the time that calls took.
//
// # The file
//
// A process is a rank (pid is its number in COMM_WORLD), a thread one of its
// threads. Events are
//
//   - X: a call, with its arguments (args) and how long it waited. Accesses
//     to a rank's part of a window are shown in threads of their own at that rank,
//     one for each window and origin.
//   - s and f: an arrow from the call that sent a message to the one that received
//     it, or from a one-sided call to the access at its target.
//   - i: a message that was not received, or whose sender did not record it.
//   - C: bytes sent by messages and moved by one-sided operations so far.
//   - M: names.
//
// Times are microseconds since the first event, with three decimals. The ranks' clocks
// are comparable because all ranks run on one host, or because the hosts have compared their
// clocks (Source.Shift). Hosts that compared them badly, as messages show that are received before they were
// sent, are moved (clocks.go).
//
// otherData has what is no event: the ranks, the numbers of dropped records, windows,
// and the table as text.
//
// It may import trace.
package chrome
