package main

// A fork of the process (forking.c). None of it may be called in a forked child.

/*
#include "gormapy.h"
*/
import "C"

import (
	"unsafe"

	"gormapy/gocore/rdmaapi"
)

// gm_fork_begins has no socket of gormapy.rdma made until gm_fork_ends, and returns how many there are.
//
//export gm_fork_begins
func gm_fork_begins() C.int64_t { return C.int64_t(rdmaapi.BeforeFork()) }

// gm_fork_sockets stores the descriptors of at most room of them, and returns how many.
//
//export gm_fork_sockets
func gm_fork_sockets(to *C.int32_t, room C.int64_t) C.int64_t {
	return C.int64_t(copy(unsafe.Slice((*int32)(to), room), rdmaapi.Sockets()))
}

//export gm_fork_ends
func gm_fork_ends() { rdmaapi.AfterFork() }
