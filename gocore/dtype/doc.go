// Package dtype is the datatype engine: what an item of an MPI datatype looks
// like in memory, and how it is copied to and from a contiguous stream. Messages,
// collectives, windows and files use it for all user data.
//
// A [Type] is made once, from a predefined type and the constructors
// ([Contiguous], [Vector], [Struct], ...), and never changes; it is safe for
// concurrent use. Its type map is kept as nested loops and lists over
// contiguous blocks (layout.go), never expanded: a vector of a million blocks
// takes as much memory as one of two. All sizes and displacements are checked
// for overflow when the type is made, so that its use needs no checks.
//
// Memory is passed as unsafe.Pointer and may be outside Go's heap. The
// package only makes pointers to bytes that the type map has, so a buffer
// address that itself lies outside of the data (MPI_BOTTOM, a negative lower
// bound) is fine. Nothing needs to be aligned.
//
// The standard's portable representation, external32, is a second form of the stream
// (external.go): [Type.PackExternal] and [Type.UnpackExternal] convert between it and
// memory, and [Type.InFile] has the displacements of a type in a file that is written in it.
//
// It may import only the standard library.
package dtype
