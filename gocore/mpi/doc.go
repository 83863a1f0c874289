// Package mpi implements the objects of MPI: the world, communicators, groups,
// windows, requests, files, datatypes, and the errors that users see. pybind exports
// it to Python, and a Go program that is a rank imports it (goapi.go).
//
// Objects are named by handles: integers with a generation, so that a stale one is an
// MPI error. Functions that Python calls return error codes; code & 0xff is the class,
// and ErrorText returns the text.
//
// Only Wait and the calls whose comments say so ("like Blocking") wait. They return
// Interrupted from time to time, so that the caller can handle signals.
//
// The protocol of the collective reset is in the comment of Reset, that of words in
// word.go.
//
// It may import agent, agreement, arena, boot, boot/store, check/events, coll, dtype, engine, errs, fabric, fabric/registry, home,
// job, log, monitor, mpiio, op, p2p, rma, settings, sys, sys/atom, trace and trace/chrome.
package mpi
