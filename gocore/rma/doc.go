// Package rma implements one-sided communication: windows, epochs, locks and
// accumulates. It emulates in software what a transport can't do by itself.
//
// # The path to a target
//
// When a window is made, each target gets one of four paths, which puts and gets use
// from then on:
//
//   - direct: the target's part lies in a segment that this process maps
//     (Win.Allocate), or in this process itself: load and store.
//   - copy: the transport's one-sided Put and Get (Win.Create on one host).
//   - rdma: a network's Put and Get, with the key that the target registered its
//     part under. They complete later (outstanding.go).
//   - message: short messages that the target's engine serves (Put, Get, Acc,
//     CAS, answered by Ack or GetData). They are urgent, so a computing target
//     serves them too: its progress engine does, which the sender wakes, or over a
//     network its network progress.
//
// In a dynamic window, attached memory that this process maps is accessed directly,
// whatever the path is.
//
// # Memory that faults
//
// A fault at the origin is the error of the call, or of the next call that completes
// operations (report). The target answers a fault with an error class, which the
// origin reports in the same way.
//
// # One arbiter
//
// What makes an element of an accumulate atomic follows from the window, the
// element's size and its alignment alone, never from the path:
//
//   - Where a target's part lies in memory that all ranks map (TargetAtomic), all
//     ranks update aligned elements of 4 and 8 bytes by CPU atomics.
//   - All ranks update everything else under the target's accumulate lock, a word in
//     the window's control segment. The holder is the origin (direct, copy) or the
//     target on its behalf (message). Elements that one store does not write whole
//     go through a journal there first, so that the death of the lock's holder leaves
//     no element half written (acclock.go).
//   - In small windows over a network with atomics of its own, the network updates
//     the aligned elements of 8 bytes, for all ranks (nicatomics.go).
//
// No byte beside the elements is written, except for the padding of pairs.
//
// # Protocols
//
// Each is in the comment of its file: locks lock.go, remotelock.go and acclock.go;
// Post, Start, Complete, Wait pscw.go; unacknowledged puts unacked.go; bundles of puts
// bundle.go; attached memory dynamic.go; outstanding operations of a network outstanding.go.
//
// It may import arena, coll, dtype, engine, errs, fabric, job, log, op, p2p, sys
// and sys/atom.
package rma
