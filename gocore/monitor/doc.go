// Package monitor gives the ranks of jobs that another launcher has started what
// gormapy's mpiexec gives its own: a time-out at which all ranks say what they do, one line
// about the rank that failed, and the end of the job when one fails.
//
// # With a home
//
// If the mpiexec that has handed the job over listens (package home), each rank connects
// to it. mpiexec decides and prints, as it does on one host: the ranks answer its questions,
// and tell it before they end the job.
//
// # Without one
//
// The ranks print, on standard error, which the launcher passes on. At the time-out the first
// rank of each node speaks for its node (job.Segment.ClaimTimeout); if it is stopped, the next
// one does a little later. Wait records are read from the node's segment, so ranks that are
// stopped or sit in C code need not take part. A rank that fails speaks for itself. For one
// that was killed the first rank of its node does, or the first of the job if that node has no
// other; then it ends the job, since some launchers don't.
//
// It may import home, job, log, sys and trace.
package monitor
