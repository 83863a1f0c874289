// Package explore runs the protocols in shared memory under every interleaving
// of their accesses. It exists only in builds with the tag "interleave", for
// tests.
//
// # How
//
// A test's setup makes a World: the shared memory, and logical threads that run
// the real protocol code. Each thread is a coroutine that stops before each
// access through package atom, and the explorer decides which thread continues. It
// searches depth first, runs each schedule from a fresh World, and backtracks when it
// reaches a state that it has seen. A state is the content of the shared memory and,
// for each thread, the results of all its accesses so far; threads are deterministic,
// so their future depends on nothing else. Two orders of independent accesses lead to
// the same state, so only orders that make a difference to some thread are followed.
// Nothing else is left out, unless Options.Preemptions is set. States are compared by
// 64-bit hashes.
//
// What a thread learns other than through package atom (bytes of shared memory,
// which threads are dead) has to be recorded by Thread.Note. At a point where a
// thread's future depends on less than its whole past, it may call Thread.Forget;
// then waiting in a loop ends in a state that has been seen.
//
// # What is found
//
//   - a failed Thread.Check or World.Finally, with the schedule that leads there;
//   - a deadlock: threads have not ended and none of them can continue;
//   - a livelock: a state from which no schedule leads to the end, or a schedule
//     of more than Options.MaxSteps accesses.
//
// Time does not pass: a sleeper is woken by atom.Wake, or by a time-out where
// Options allow it, and Yield waits until another thread has written. A thread
// may die after any of its writes (dying after a read can't be distinguished from
// being slow after the write before it).
//
// The interleavings are the sequentially consistent ones, which is what package
// atom promises of its own accesses. Accesses past it happen together with the
// atomic access before them, or, with Options.Plain, at any time between the
// two atomic accesses around them. With Options.Weak they may also be seen before the
// atomic stores that precede them (buffer.go).
//
// Only tests import it; it may import any layer.
package explore
