package op

import (
	"unsafe"

	"gormapy/gocore/dtype"
)

// A vectorKernel sets to = a op (b op (c op d)), element by element, for as many operands as it
// takes; it doesn't look at the other ones. n is in bytes, a multiple of vectorBlock. Nothing needs
// to be aligned, and to may be one of the operands.
type vectorKernel func(to, a, b, c, d unsafe.Pointer, n int)

// mostOperands is the largest number of operands of a vectorKernel.
const mostOperands = 4

// byOperands are the kernels of an operation, by the number of operands.
type byOperands [mostOperands + 1]vectorKernel

// assembly is an entry of assembled, the generated table of what the architecture has.
type assembly struct {
	op    Op
	kinds []dtype.Kind
	folds byOperands
	// streams are kernels whose result goes past the caches, if there are any: see FoldStream.
	// The address of the result is aligned to vectorBlock.
	streams byOperands
	// wide and wideStreams are the same with longer vectors, which not all processors have; nil if there is nothing to gain.
	wide, wideStreams byOperands
}

// vectorKernels are the kernels that the processor can run, nil where there is none.
var vectorKernels = makeVectorKernels(hasVectors, hasWideVectors)

func makeVectorKernels(can, wide bool) (t [ops][dtype.Kinds]*assembly) {
	if !can {
		return t
	}
	for _, a := range assembled {
		if wide && a.wide[2] != nil {
			a.folds, a.streams = a.wide, a.wideStreams
		}
		for _, k := range a.kinds {
			t[a.op][k] = &a
		}
	}
	return t
}

// pieceSize is the size of the pieces in which memory is copied and combined. Go can interrupt
// neither a memmove nor assembly, and a long one would hold up every other thread.
const pieceSize = 256 << 10

// vector runs a kernel in pieces and returns how many of n bytes it did: the kernel leaves what
// is no whole block.
func vector(run vectorKernel, to unsafe.Pointer, in *[mostOperands]unsafe.Pointer, n int) int {
	n &^= vectorBlock - 1
	for at := 0; at < n; at += pieceSize {
		run(unsafe.Add(to, at), unsafe.Add(in[0], at), unsafe.Add(in[1], at), unsafe.Add(in[2], at),
			unsafe.Add(in[3], at), min(n-at, pieceSize))
	}
	return n
}
