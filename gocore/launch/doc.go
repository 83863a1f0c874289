// Package launch implements mpiexec on one host. It makes the job segment, starts
// the ranks, passes on their output, input and signals, and leaves no process of the
// job behind when the job ends, however it ends.
//
// # How processes end
//
//   - A rank fails: the launcher records that in the job segment (Abort before
//     Exited, so that a peer that sees Exited alone knows of a clean end), then
//     stops the other ranks.
//   - The launcher dies: each rank has the parent-death signal SIGKILL, which is why
//     the main thread starts all ranks. The guardian, a second process, sees that its
//     pipe from the launcher is closed and kills the ranks' descendants.
//   - The guardian dies: the launcher starts another.
//
// Processes of the job are identified by their process group or, outside of it, by
// the job's id in their environment. A rank that has ended stays a zombie until the
// job's end, so that the kernel does not reuse its pid and process group: peers copy
// to and from memory by that pid. Other processes get signals by their pidfd.
//
// # What a rank inherits
//
// A gormapy program finds the job segment by its environment. An MPICH program finds
// the PMI-1 server of package boot/pmi, which is part of the launcher, on descriptor
// 10. Every rank has both, and the first process that claims either is the rank. The
// other one remains unclaimed, unless a program uses both libraries. What the server
// reports (an abort, ranks that wait for one that has ended) ends the job as a failure
// of a rank does.
//
// It may import boot/pmi, check, check/events, home, job, settings, sys, trace and trace/chrome.
package launch
