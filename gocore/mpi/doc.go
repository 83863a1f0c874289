// Package mpi is the object model: the world, communicators, groups, windows,
// requests, datatypes, and the errors that users see. It is what pybind exports
// to Python, and what a Go program imports to be a rank.
//
// Objects are named by handles: integers that carry a generation, so that a
// stale one is an MPI error. Functions that Python calls return error codes;
// code & 0xff is the class and ErrorText has the sentence.
//
// Nothing here waits except Wait and the calls that say so; those return
// Interrupted now and then, so that a caller can look at signals.
//
// It may import arena, boot, coll, dtype, engine, errs, fabric, fabric/registry,
// job, log, mpiio, op, p2p, rma, settings, sys, sys/atom, trace and
// trace/chrome.
package mpi
