// Package pmi is the client side of PMI-1, the protocol in which Hydra
// (MPICH's mpiexec) and Slurm's srun --mpi=pmi2 tell a process its rank and
// carry small values between the ranks of a job.
//
// The protocol is lines of key=value words over a stream socket. What the
// servers really keep of a value is less than it says (a space ends it, a
// backslash may vanish or worse, an empty value ends the job, a line of more
// than 1023 bytes may be lost), so [Client.Put] refuses or splits what does
// not come through everywhere.
//
// It may import the standard library and golang.org/x/sys only.
package pmi
