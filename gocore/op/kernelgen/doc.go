// Package kernelgen writes the assembly of op: for each operation and each kind of element
// that the processors combine as vectors, kernels of two, three and four operands.
//
// The kernels differ in little but the instructions that combine two vectors, and these are
// tables here. Most instructions are written as Go's assembler knows them. Those of arm64
// that it does not know are written as their encoding, with the instruction as a comment.
//
// A kernel uses neither the stack nor callee-saved registers, nor calls anything, so that Go can
// unwind from any of its instructions: a fault in an operand is a panic, as in Go code.
//
// To write the files anew after a change: go test ./gocore/op/kernelgen -update.
//
// Only tests import it; it may import any layer.
package kernelgen
