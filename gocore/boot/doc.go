// Package boot finds out which rank of which job a process is, and has it join: a job of
// gormapy's own launcher, of a foreign one (Hydra, Slurm, Open MPI, Flux, torchrun, …), or,
// with no launcher, a job of its own.
//
//	detect.go  which launcher it is, by the environment
//	join.go    the store of its job: packages boot/pmi, boot/pmix and boot/rendezvous
//	share.go   who shares memory; the segments of the nodes
//	nodes.go   the agents of the nodes meet
//	network.go which network is used between the nodes
//
// A launcher whose job can't be joined is an error, never a job of singletons.
//
// It may import agent, boot/pmi, boot/pmix, boot/rendezvous, boot/store, fabric/registry,
// fabric/tcp, job, settings and sys.
package boot
