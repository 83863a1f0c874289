// Package gocore has no code: it is the folder of the core. These are its
// packages, by layer; a package imports only packages of its own layer and of
// those below it.
//
//	programs   cmd/mpiexec launch examples/ring
//	objects    mpi rdmaapi mt19937
//	operations rma mpiio coll p2p
//	progress   engine
//	start      boot boot/* agent home monitor
//	transports fabric/registry fabric/* rdmaapi/*
//	devices    device ibverbs libfabric
//	contracts  fabric job
//	data       op dtype agreement
//	system     arena workers choice check check/events trace/chrome trace log settings errs seal handshake sys/atom sys
//
// The comment of each package says what it is for, where its protocol is written
// down, and what it may import; the test in this folder compares that with the
// imports there are. Packages whose comment says that only tests import them are
// in no layer: boot/storetest, cachemodel, fabric/fabrictest, ibverbs/double, ranktest, simulate and
// sys/atom/explore.
//
// It may import only the standard library.
package gocore
