// Package engine drives the transports of a process. It sends short messages,
// queueing those for which the transport has no room, and passes received ones
// to their handlers; it waits, watches the peers, and serves passive targets
// while the process computes. p2p, coll and rma are built on it.
//
// # Who polls
//
// One thread at a time polls, under a try-lock. A caller that waits polls
// itself. The progress engine is a goroutine that sleeps on a futex and polls
// when its doorbell is rung. A sender of an urgent message (one that must not
// wait until the receiver calls MPI, such as a Put that the target has to serve),
// if the two share memory,
//
//  1. adds one to the receiver's Urgent (and takes it off if there is no room),
//  2. puts the message into the ring,
//  3. reads the receiver's Pollers; if it is 0, rings the progress doorbell.
//
// A caller that enters a wait adds one to Pollers. When it leaves, it takes one
// off and then compares Urgent with the number of urgent messages delivered: if
// they differ, it rings its own progress doorbell. So either a poller or the
// progress engine sees an urgent message, in every interleaving of the two. A
// process that receives only ordinary messages is never woken while it computes.
//
// Step 1 comes first so that Urgent is never less than the number delivered. If
// it were, a later message could make the two equal without having been seen.
//
// # Messages before the connection, and without room
//
// The first message or one-sided operation for a peer has the transport connect to
// it. Until that is done, and whenever it has no room, the transport returns
// fabric.ErrAgain. The engine then keeps the message or the operation in the peer's
// queue, and every poll tries again, in order (send.go, onesided.go).
//
// # Waiting
//
// A wait polls a little (if there is a core for every rank), then yields the
// processor between polls, then announces itself in Sleepers and sleeps on the
// rank's doorbell. It sleeps in slices of 50 ms, so that a thread which Python's
// signal handler does not interrupt still returns to its caller. It publishes a
// wait record before it sleeps. See job.Rank.Ring for why no wake-up is lost.
//
// Before it sleeps, the sleeper polls a last time, and for this it waits for the
// poll lock instead of trying it. Otherwise another poller could have passed over
// the ring in which the message lies, and the sender could have found no
// sleeper: both would sleep.
//
// A call that does not wait and finds nothing, such as a test of a request, lets another
// rank run if ranks share cores (GiveWay): the program may make it again and again.
//
// # Network progress
//
// What a network delivers rings no doorbell: see netprogress.go.
//
// # The end of a peer
//
// A peer that ends goes through these states, not all of them in every case:
//
//	broken     its connection has failed. The transport calls Broken, and Lost
//	           reports it, unless the peer has finalized.
//	ended      its process has ended. The watcher of each rank finds that by a pidfd
//	           and sets Ended in the peer's record of the job segment, for all ranks:
//	           its pid may be another process's from then on.
//	exited     the launcher has reaped the process and sets Exit in the record, after
//	           the exit status. If that ends the job, the launcher stops this process.
//	gone       it will never answer again. The watcher calls NoteGone when the peer
//	           has exited, or has been ended for verdictTime, or broken for lostTime;
//	           this calls the functions added by OnGone. Gone reports it, also before the
//	           watcher runs, if the peer has exited and the job is not being stopped.
//
// News of an end can overtake the last messages of the peer: they come through a ring or a
// connection, the news by a pidfd or the nodes' agents. So no peer is gone before what it
// has sent has been delivered (drained), unless its host has left the job. In that case the
// connection is cut first: the peer may live, and others take over the locks that it holds.
//
// Finalized reports that a rank has left MPI as it should. It is none of these: its
// process may go on.
//
// It may import arena, choice, errs, fabric, fabric/self, fabric/shm, job, log, sys, sys/atom,
// trace and workers.
package engine
