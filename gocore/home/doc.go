// Package home connects the ranks of a job with the mpiexec that has handed the job over
// to another launcher: their home. By it mpiexec learns what it knows of ranks that it has
// started itself: which of them failed and how, what they wait for, what they recorded.
//
// # Protocol
//
// mpiexec listens on a port of its host (Listen), and passes its addresses and a secret of
// this job to the ranks in their environment (Variables). Each rank connects (Where.Call),
// and has a keyed handshake of package handshake, in which mpiexec proves itself first, and whose first message is the rank's Hello. All
// that follows is encrypted (seal.Conn). Both sides send messages: a head in JSON, and data, each
// behind its length.
//
//	rank to mpiexec
//	clock    asks for mpiexec's time: see Link.Clock
//	state    what the ranks of the node do, as lines of text by rank: the answer to describe
//	record   the part of a recording as data, and clocks; the answer to collect
//	failed   the rank is about to end the job, how and with which exit status
//	peer     a rank of the same node has ended, with which wait status
//	finalized  the rank has finalized; it need not say bye
//	bye      the rank ends well
//
//	mpiexec to rank
//	clock    the time
//	describe say what the ranks of your node do
//	stacks   print your stacks
//	collect  send what you have recorded
//	heard    the answer to failed and bye: the rank may go on
//	end      end the job with this exit status
//
// A connection that ends before finalized, bye or failed is the end of the process: the kernel
// closes it however the process ends, before the launcher in between learns of it; unless a
// forked child of the rank lives on.
//
// # What it does not do
//
// The Hello can be read on its way: rank, process id and name of the host. The secret is as
// safe as the launcher in between, which passes it on. Who ends a connection from outside
// has mpiexec take the rank for ended.
//
// It may import handshake and seal.
package home
