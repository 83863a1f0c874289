// Package rma is one-sided communication: windows, epochs, locks, accumulates,
// and the software side of what a transport can't do by itself.
//
// # The ways to a target
//
// When a window is made, each target gets one of four ways, and puts and gets
// take it from then on without asking again:
//
//   - direct: the target's part lies in a segment that this process maps
//     (Win.Allocate), or in this process itself: load and store.
//   - copy: the transport's one-sided Put and Get (Win.Create on one host).
//   - rdma: a network's Put and Get, with the key that the target registered its
//     part under. They complete later (outstanding.go).
//   - message: short messages that the target's engine serves (Put, Get, Acc,
//     CAS, answered by Ack or GetData). Urgent, so a computing target serves
//     them too.
//
// # Memory that faults
//
// At the origin it is the call's error, or the next one's that completes operations
// (report). At the target it is answered as a class, which becomes that at the origin.
//
// # One arbiter
//
// What makes an element of an accumulate atomic follows from the window, the
// element's size and its alignment alone, never from the way: where a target's
// part lies in memory that all ranks map (TargetAtomic), aligned elements of 4
// and 8 bytes are updated by CPU atomics by everybody; everything else is
// updated under the target's accumulate lock, a word in the window's control
// segment, by everybody, be it the origin (direct, copy) or the target on its
// behalf (message). What one store does not write whole goes through a journal
// there first, so that the death of the lock's holder leaves no element half
// written (acclock.go). In small windows over a network with atomics of its own,
// that updates the aligned elements of 8 bytes, for everybody (nicatomics.go). No byte beside the elements is touched, but for the
// padding of pairs.
//
// It may import arena, coll, dtype, engine, errs, fabric, job, log, op, p2p, sys
// and sys/atom.
package rma
