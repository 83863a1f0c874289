// Package pmi implements both sides of PMI-1, the protocol by which a process manager
// (Hydra, which is MPICH's mpiexec; Slurm's srun --mpi=pmi2; gormapy's own launcher)
// assigns ranks to processes and passes small values between the ranks of a job.
// [Client] is a rank's side, [Store] the same by the contract of package boot/store;
// [Server] is the manager's and has the protocol.
//
// The protocol is lines of key=value words over a stream socket. Foreign servers do not
// keep all values that the protocol allows: a space ends a value, a backslash may be
// lost or change others, an empty value ends the job, and a line of more than 1023 bytes
// may be lost. So [Client.Put] refuses or splits values that some server does not keep.
//
// It may import boot/store.
package pmi
