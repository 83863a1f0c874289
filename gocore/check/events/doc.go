// Package events is the stream of what one rank does, which mpiexec --check reads while the job runs.
//
// # Where the events are
//
// A stream is a ring of bytes in a memfd. The launcher makes one for each rank and keeps it open, so that no event is
// lost however the rank ends. The rank writes: its Python layer every call (gormapy.check, through the shim's
// check.c, which has the same protocol), package p2p each message that is sent, package mpi each that is received.
//
// # The protocol
//
// Written and Read count bytes since the start; they only grow. An event is at Written modulo the capacity and may go round the end of
// the ring. A writer holds Lock (the number of its thread; 0 is free) while it
//
//  1. reads the clock (CLOCK_MONOTONIC, one for all ranks of a host),
//  2. waits until Written - Read leaves room,
//  3. copies the event, and stores Written.
//
// So the times in a stream do not decrease, and a reader that finds Lock free, and Written equal to Read after that,
// knows that every later event has a later time than the one at which it looked. The reader merges the streams of all
// ranks by time with that. A message is received after it was sent, a lock is acquired after it was released: on one
// host, order in time contains every order that the program establishes.
//
// A rank that dies with the lock held leaves an event without effect, since Written is stored last. The reader
// takes no more from the stream than Written says, and does not wait for a rank that has ended.
//
// It may import sys.
package events
