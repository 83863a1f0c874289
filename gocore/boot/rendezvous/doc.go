// Package rendezvous is a store of gormapy's own, in rank 0, for ranks that have no process
// manager to ask: those of srun --mpi=none, of torchrun, Ray and Kubernetes (RANK and
// WORLD_SIZE), and those of a program that knows its place itself (Join).
//
// # Joining
//
// Rank 0 listens at the first of some candidate addresses that is free, until all have
// joined or the time-out ends. The others try all of them, again and again. Both sides
// prove by package handshake that they know the job's secret before anything else is
// said, rank 0 first, so that another job's rank 0, or another program, at a candidate address is passed
// over:
//
//	rank → rank 0: rank, size, node, instance   16 bytes + 16, see card
//	rank 0 → rank: verdict                      a sentence if it is refused; empty if not
//
// An instance is a random number of the process: a process that was cut off may come
// again, and a second process with the same rank is refused.
//
// The secret is GORMAPY_SECRET or, without it, made of the identity of the job. The
// latter can be found out by whoever may look at the job: it guards against mistakes, not
// against a hostile neighbour. Everything after the verdict is encrypted (seal.Conn), with keys that
// who only listens can't find out even if he knows the job's identity; one who is between the ranks,
// and knows it, can. If the user has given a secret no other one is sent: the ranks derive what
// they need from it.
//
// # Frames
//
// After the verdict both sides send frames: length of what follows (4 bytes,
// little-endian), kind (1 byte), body.
//
//	put       key length (1 byte), key, value    no answer
//	fence                                        fenced or failed, when all ranks are in it
//	get       rank (4 bytes), key                value or missing
//	nodes                                        table (4 bytes a rank) or failed, when all have joined
//	abort     code (4 bytes)                     event to all
//	finalize                                     rank 0 closes the connection
//	event     kind (1 byte), rank, code (4 each), sentence; from rank 0 at any time
//	over                                         rank 0 has finalized: the end of the connection is no failure
//
// # Endings
//
// A rank whose connection ends without finalize is lost: an event to all, and fences fail,
// now and later, with a sentence that names it. A fence that has waited for the time-out
// fails, too, and names those that are not in it. So does a rank that does not reach rank
// 0. If rank 0 is lost the others get the event Lost; keep-alive probes find that its host
// has vanished. A rank that is only stopped answers them.
//
// It may import boot/store, handshake, seal and settings.
package rendezvous
