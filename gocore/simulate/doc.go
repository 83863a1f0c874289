// Package simulate runs whole jobs, engine, messages, collectives and windows over
// shared memory or a network of the test's, in one goroutine at a time whose order a
// seed decides: the same seed makes the same run. It exists only in builds with the tag
// "interleave", for tests.
//
// # How
//
// Each rank has a thread that runs a program and one that polls for it, as the progress
// engine does. They are coroutines that give control back where the real ones yield or
// sleep (package atom); the seed says who goes on, for how long a rank is stopped, and
// when one dies. Time passes with the steps. What a network brings comes late, in any
// order and sometimes not for want of room, as the seed has it.
//
// The program is drawn from the seed as well, the same by all ranks, so that each knows
// what the others send and what memory must hold: messages of all sizes in all modes,
// collectives by all algorithms, one-sided operations in all epochs on windows that are
// made and freed, and collective resets with megabytes under way. Every result is
// compared with a serial model. Memory that the program has taken back is protected, and
// looked at again at the end: nobody may touch it. After a death, whoever
// depends on the dead gets an error; a run in which somebody waits on is a failure, and
// so is one that does not do the same again.
//
// Unlike package explore it is not exhaustive and does not part the accesses of one
// thread to shared memory, but it runs everything at once.
//
// It may import coll, dtype, engine, errs, fabric, job, op, p2p, ranktest, rma, sys and
// sys/atom.
package simulate
