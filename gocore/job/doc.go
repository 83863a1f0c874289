// Package job is the shared memory that all processes of a job on one host
// map. It has the ranks' processes and states, what they wait for, the doorbells
// that wake them, the directory by which transports find each other, and the areas
// that transports and collectives use (rings, barrier blocks).
//
// The launcher makes it (or rank 0, under a foreign launcher) and hands out its
// path. It is one sealed memfd: it has no name in a file system, and nothing is left
// behind. Its areas are sized for every pair of ranks, but the kernel allocates a page
// only when it is touched. Because no rank owns it, a message survives its sender.
//
// # Who may write what
//
//   - Head.AbortClaim: any process, by compare-and-swap from 0, once.
//     The other Abort fields: the process that has set AbortClaim. Readers look at
//     AbortState, which is set last.
//   - Rank.Claim: a process that wants to be the rank, by compare-and-swap from
//     0 to its pid, once. It is never reset: a rank is granted once.
//   - Rank.State, wait records, Gen: the process that has claimed the rank.
//   - Rank.Exit, ExitStatus: the launcher (status first, then Exit).
//   - Doorbells: any process may add and wake; Sleepers: the owner's threads.
//
// The protocol of the doorbells is in Rank.Ring, that of the directory in directory.go.
//
// It may import sys and sys/atom.
package job
