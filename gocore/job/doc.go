// Package job is the shared memory that all processes of a job on one host
// map: who they are, how they are, what they wait for, the doorbells that wake
// them, and the areas that the transports carve up (rings, barrier blocks).
//
// The launcher makes it (or rank 0, under a foreign launcher) and hands out its
// path. It is one sealed memfd: no name, no file, nothing left behind. Its
// areas are sized for every pair of ranks, but the kernel allocates a page only
// when it is touched. Because no rank owns it, a message survives its sender.
//
// # Who may write what
//
//   - Head.AbortClaim: anybody, by compare-and-swap from 0, once.
//     The other Abort fields: whoever won it; readers look at AbortState last set.
//   - Rank.Claim: a process that wants to be the rank, by compare-and-swap from
//     0 to its pid, once. It is never reset: a rank is granted once.
//   - Rank.State, Wait records, Gen: the process that claimed the rank.
//   - Rank.Exit, ExitStatus: the launcher (status first, then Exit).
//   - Doorbells: anybody may add and wake; Sleepers: the owner's threads.
//
// It may import sys.
package job
