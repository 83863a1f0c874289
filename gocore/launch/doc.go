// Package launch is the single-host mpiexec: it makes the job segment, starts
// the ranks, carries their output and input, passes signals on, and sees to it
// that nothing of the job is left when it ends, however it ends.
//
// # Who ends whom
//
//   - A rank that fails: the launcher records that in the job segment (Abort
//     before Exited, so that a peer that sees Exited alone knows of a clean
//     end), then stops the other ranks.
//   - The launcher itself: each rank has the parent-death signal SIGKILL, which
//     is why all ranks are started by the main thread. What the ranks started
//     in turn is ended by the guardian, a second process that notices that its
//     pipe from the launcher closed.
//   - The guardian: the launcher starts another.
//
// Processes of the job are told by their process group or, beyond that, by the
// job's id in their environment. A rank that has ended stays a zombie until the
// job's end, so that its number and its group's are given to nobody: peers copy to
// and from memory by that number. Other processes get signals by their pidfd.
//
// # What a rank gets
//
// A gormapy program finds the job segment by its environment. An MPICH program
// finds a PMI-1 server, on descriptor 10, which is package boot/pmi's and part
// of the launcher. Both are there for every rank, and the first process that
// claims either is the rank; nobody claims the other one, or a program that
// uses both libraries does. What the server notices (an abort, ranks that wait
// for one that won't come) ends the job as if the rank had failed.
//
// It may import boot/pmi, job, sys, trace and trace/chrome.
package launch
