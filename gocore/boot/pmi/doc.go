// Package pmi is both sides of PMI-1, the protocol in which a process manager
// (Hydra, which is MPICH's mpiexec; Slurm's srun --mpi=pmi2; gormapy's own
// launcher) tells a process its rank and carries small values between the ranks
// of a job. [Client] is a rank's side, [Server] the manager's.
//
// The protocol is lines of key=value words over a stream socket. What foreign
// servers really keep of a value is less than it says (a space ends it, a
// backslash may vanish or worse, an empty value ends the job, a line of more
// than 1023 bytes may be lost), so [Client.Put] refuses or splits what does
// not come through everywhere.
//
// It may import only the standard library.
package pmi
