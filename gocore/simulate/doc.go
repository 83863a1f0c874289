// Package simulate runs whole jobs (engine, messages, collectives and windows, over
// shared memory or a test network) with one goroutine running at a time, in an order
// that a seed decides: the same seed makes the same run. It exists only in builds with
// the tag "interleave", for tests.
//
// # How
//
// Each rank has a thread that runs a program and one that polls for it, as the progress
// engine does. They are coroutines that return control where the real ones yield or
// sleep (package atom). The seed decides which thread continues, for how long a rank is
// stopped, and when one dies. Time passes with the steps. The network delivers late and
// in any order, and sometimes has no room, as the seed decides.
//
// The program is drawn from the seed as well, the same by all ranks, so that each knows
// what the others send and what memory must contain: messages of all sizes in all modes,
// collectives by all algorithms, one-sided operations in all epochs on windows that are
// made and freed, and collective resets with megabytes in flight. Every result is
// compared with a serial model. Memory that the program has reclaimed is poisoned and
// protected, and checked again at the end: nothing may touch it. After a death, ranks
// that depend on the dead one end with an error. A run in which a rank keeps waiting is a
// failure, and so is one that can't be reproduced.
//
// Unlike package explore it is not exhaustive and does not separate the accesses of one
// thread to shared memory, but it runs all layers at once.
//
// Only tests import it; it may import any layer.
package simulate
