// Package engine drives the transports of a process: it sends short messages
// (queueing those for which a ring has no room), hands arrived ones to their
// handlers, waits, watches the peers, and serves passive targets while the
// process computes.
//
// # Who polls
//
// One thread at a time polls, under a try-lock. A caller that waits polls
// itself. The progress engine, a goroutine, sleeps in a futex and polls only
// when it is called for: a sender of an urgent message (one that must not wait
// until the receiver calls MPI, such as a Put that the target has to serve)
//
//  1. adds one to the receiver's Urgent (and takes it off if there is no room),
//  2. puts the message into the ring,
//  3. reads the receiver's Pollers; if 0, rings the progress doorbell.
//
// A caller that enters a wait adds one to Pollers; when it leaves it takes one
// off and then compares Urgent with the number of urgent messages delivered: if
// they differ, it rings its own progress doorbell. So an urgent message is seen
// by a poller or by the engine, whichever way the two race (Urgent comes first
// so that it is never less than what was delivered: were it, another message
// could make the two equal without having been seen); and a process that
// receives only ordinary messages is never woken while it computes.
//
// # Waiting
//
// A wait polls a little (if there is a core for every rank), then yields the
// processor between polls, then announces itself in Sleepers and sleeps on the
// rank's doorbell, in slices of 50 ms so that a thread which Python's signal
// handler does not interrupt still comes back. It publishes a wait record
// before it sleeps. See job.Rank.Ring for why no wake-up is lost.
//
// Before its last look the sleeper takes the poll lock for certain (not by
// trying): otherwise another poller could have passed over the ring in which
// the message lies, the sender found no sleeper, and both would sleep.
//
// It may import errs, fabric and its transports, job, log, sys and trace.
package engine
