// Package boot is how a process learns which rank of which job it is: from
// gormapy's own launcher, from a foreign one that speaks PMI-1, or, with no
// launcher, as the only rank of a job of its own.
//
// A launcher that is there but can't be served is an error, never a job of
// singletons.
//
// It may import boot/pmi, job and sys.
package boot
