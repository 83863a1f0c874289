// Package boot finds out which rank of which job a process is: from gormapy's own
// launcher, from a foreign one that speaks PMI-1 (package boot/pmi has the protocol),
// or, with no launcher, as the only rank of a job of its own.
//
// A launcher whose job can't be joined is an error, never a job of singletons.
//
// It may import boot/pmi, boot/pmix, boot/rendezvous, boot/store, job and sys.
package boot
