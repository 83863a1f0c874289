package main

// Memory for arrays (arrays.c). None of it may be called in a forked child.

/*
#include "gormapy.h"
*/
import "C"

import (
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/mpi"
)

// gm_array_from returns the size in bytes from which on arrays are in the pool.
//
//export gm_array_from
func gm_array_from() C.uint64_t { return C.uint64_t(mpi.ArraysFrom()) }

// gm_array_alloc returns n bytes, zero if zero is not 0; NULL if the pool has no room.
//
//export gm_array_alloc
func gm_array_alloc(n C.uint64_t, zero i32) unsafe.Pointer {
	return mpi.Arrays().Alloc(uint64(n), zero != 0)
}

// gm_array_free returns 0 if p is none of the pool's.
//
//export gm_array_free
func gm_array_free(p unsafe.Pointer) i32 { return yes(mpi.Arrays().Free(p)) }

// gm_array_bytes returns the size of the array at p, 0 if it is none of the pool's.
//
//export gm_array_bytes
func gm_array_bytes(p unsafe.Pointer) C.uint64_t { return C.uint64_t(mpi.Arrays().Size(p)) }

// gm_array_place returns the offset of the n bytes at p in the pool's file, which file is set to; -1 if they are not the pool's.
//
//export gm_array_place
func gm_array_place(p unsafe.Pointer, n C.uint64_t, file *C.int) i64 {
	*file = C.int(arena.FD())
	at, ok := mpi.Arrays().Place(p, uint64(n))
	if !ok {
		return -1
	}
	return i64(at)
}

// gm_array_resize sets ours to 0 if p is none of the pool's; otherwise it is a realloc.
//
//export gm_array_resize
func gm_array_resize(p unsafe.Pointer, n C.uint64_t, ours *C.int) unsafe.Pointer {
	to, is := mpi.Arrays().Resize(p, uint64(n))
	*ours = yes(is)
	return to
}

// gm_array_move ends a resize that the pool had no room for: it copies up to n bytes of p to other memory, and frees p.
//
//export gm_array_move
func gm_array_move(to, p unsafe.Pointer, n C.uint64_t) { mpi.Arrays().Move(to, p, uint64(n)) }

func chunkCopies(chunks *C.gm_chunk) []arena.ChunkCopy {
	return unsafe.Slice((*arena.ChunkCopy)(unsafe.Pointer(chunks)), arena.MaxChunks)
}

// gm_array_before_fork fills chunks, which has room for GM_MAX_CHUNKS, and returns how many there are.
//
//export gm_array_before_fork
func gm_array_before_fork(chunks *C.gm_chunk) i32 {
	return i32(mpi.Arrays().BeforeFork(chunkCopies(chunks)))
}

//export gm_array_after_fork
func gm_array_after_fork(chunks *C.gm_chunk, n i32) { mpi.Arrays().AfterFork(chunkCopies(chunks)[:n]) }
