// Package explore runs the protocols in shared memory under every interleaving
// of their accesses. It exists only in builds with the tag "interleave", for
// tests.
//
// # How
//
// A test's setup makes a World: the shared memory, and logical threads that run
// the real protocol code. Each thread is a coroutine that stops before each
// access through package atom; the explorer decides who goes on. It searches
// depth first, runs anew from a fresh World for each schedule, and goes back
// where it has been before: a state is the content of the shared memory and,
// for each thread, what all its accesses so far returned, which (threads being
// deterministic) is all that its future depends on. Two orders of independent
// accesses meet in one state, so that only orders that make a difference to
// somebody are followed. Nothing else is left out, unless Options.Preemptions
// says so. States are told apart by 64-bit hashes.
//
// What a thread learns other than through package atom (bytes of shared memory,
// who is dead) has to be told by Thread.Note. At a point where its future
// depends on less than on its whole past it may say so by Thread.Forget; then
// waiting in a loop ends in a state that has been before.
//
// # What is found
//
//   - a failed Thread.Check or World.Finally, with the schedule that leads there;
//   - a deadlock: threads are left and none of them can go on;
//   - a livelock: a state from which no schedule leads to the end, or a schedule
//     of more than Options.MaxSteps accesses.
//
// Time does not pass: a sleeper is woken by atom.Wake, or by a time-out where
// Options allow it, and Yield waits until another thread has written. A thread
// may die, after any of its writes (dying after a read can't be told from being
// slow after the write before it).
//
// The interleavings are the sequentially consistent ones, which is what package
// atom promises of its own accesses. Accesses past it happen together with the
// atomic access before them, or, with Options.Plain, at any time between the
// two atomic accesses around them; with Options.Weak they may also be seen before the
// atomic stores that precede them (buffer.go).
//
// It may import sys/atom.
package explore
