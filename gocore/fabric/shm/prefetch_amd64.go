package shm

import "unsafe"

// prefetchWrite has the processor fetch the line of p to write to it, while the program goes on.
//
//go:noescape
func prefetchWrite(p unsafe.Pointer)

// prefetchRead has the processor fetch the line of p to read it, while the program goes on.
//
//go:noescape
func prefetchRead(p unsafe.Pointer)
