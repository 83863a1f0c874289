package op

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/dtype"
)

// Fold sets to[i] = in[0][i] op (in[1][i] op (... op in[last][i])) for n elements of kind k that
// form arrays, with the same bits as Apply of in[last-1], in[last-2], ... on a copy of in[last].
// It reads each operand once and writes the result once. Nothing needs to be aligned, and to may
// be the memory of one of the operands. One operand is copied. It panics if there is none, or if
// the operation is not Valid for k.
//
// Sums and products of BFloat16 are computed in float32 and rounded once, where Apply rounds the
// result of each two operands.
func (o Op) Fold(k dtype.Kind, to unsafe.Pointer, in []unsafe.Pointer, n int) {
	o.checkFold(k, in)
	if n <= 0 {
		return
	}
	if len(in) == 1 {
		replace(to, in[0], n*k.Size())
		return
	}
	size, done := n*k.Size(), 0
	if last := len(in) - 1; size < short && !o.roundsOnce(k) && !slices.Contains(in[:last], to) {
		replace(to, in[last], size)
		for i := last - 1; i >= 0; i-- {
			o.Apply(k, to, in[i], n)
		}
		return
	}
	if v := vectorKernels[o][k]; v != nil && len(in) <= mostOperands {
		done = vector(v.folds[len(in)], to, firstOf(in, 0), size)
	}
	if done < size {
		o.foldPieces(k, to, in, done, size)
	}
}

// short is the size below which Fold does not divide its work.
const short = 256

// FoldStream is Fold with a result that goes past the caches, if the processor has such stores.
// That is faster for results that are larger than this core's share of the caches: their memory
// isn't read before it is written, and what the caches hold stays there. It is slower for what is
// read again soon. Other threads see the result no later than what the caller writes next.
func (o Op) FoldStream(k dtype.Kind, to unsafe.Pointer, in []unsafe.Pointer, n int) {
	if !hasStream {
		o.Fold(k, to, in, n)
		return
	}
	o.checkFold(k, in)
	if n <= 0 {
		return
	}
	defer streamFence()
	size := n * k.Size()
	if len(in) == 1 {
		stream(to, in[0], size)
		return
	}
	head := min(int(-uintptr(to)%streamLine), size)
	whole := (size - head) &^ (vectorBlock - 1)
	v := vectorKernels[o][k]
	if v == nil || head%k.Size() != 0 || o.roundsOnce(k) && len(in) > mostOperands {
		o.streamPieces(k, to, in, head/k.Size()*k.Size(), size)
		return
	}
	o.foldPieces(k, to, in, 0, head)
	switch {
	case whole == 0: // to may end here
	case len(in) <= mostOperands:
		vector(v.streams[len(in)], unsafe.Add(to, head), firstOf(in, head), whole)
	default:
		scratch := scratches.Get().(*[foldPiece]byte)
		for at := head; at < head+whole; at += foldPiece {
			v.foldAll(&v.streams, unsafe.Add(to, at), unsafe.Pointer(scratch), in, at, min(head+whole-at, foldPiece))
		}
		scratches.Put(scratch)
	}
	o.foldPieces(k, to, in, head+whole, size)
}

// foldPieces folds the bytes from an offset to another one, piece by piece.
func (o Op) foldPieces(k dtype.Kind, to unsafe.Pointer, in []unsafe.Pointer, from, end int) {
	if from == end {
		return
	}
	scratch := scratches.Get().(*[foldPiece]byte)
	for at := from; at < end; at += foldPiece {
		o.foldPiece(k, unsafe.Add(to, at), unsafe.Pointer(scratch), in, at, min(end-at, foldPiece))
	}
	scratches.Put(scratch)
}

// streamPieces has pieces of the result in memory before they go past the caches. The first one
// is as small as it is given, so that those that follow may begin with a line of the cache.
func (o Op) streamPieces(k dtype.Kind, to unsafe.Pointer, in []unsafe.Pointer, first, size int) {
	scratch := scratches.Get().(*[foldPiece]byte)
	for at, n := 0, first; at < size; at, n = at+n, min(size-at-n, foldPiece) {
		o.foldPiece(k, unsafe.Pointer(scratch), unsafe.Pointer(scratch), in, at, n)
		stream(unsafe.Add(to, at), unsafe.Pointer(scratch), n)
	}
	scratches.Put(scratch)
}

// firstOf returns the addresses of as many operands as a kernel takes, at an offset. Those that
// it does not look at are addresses of memory, too, so that one can add to them.
func firstOf(in []unsafe.Pointer, at int) *[mostOperands]unsafe.Pointer {
	var p [mostOperands]unsafe.Pointer
	for i := range p {
		p[i] = unsafe.Add(in[min(i, len(in)-1)], at)
	}
	return &p
}

func (o Op) checkFold(k dtype.Kind, in []unsafe.Pointer) {
	if len(in) == 0 || !o.Valid(k) {
		panic(fmt.Sprintf("op: Fold: %v of %d operands of kind %v", o, len(in), k))
	}
}

// foldPiece is the size of the pieces that are computed in steps. What one step leaves for the
// next is in the first level of the cache. It is a multiple of the size of every element.
const foldPiece = 4 << 10

// Memory for a piece; on a stack it would be cleared each time.
var (
	scratches     = sync.Pool{New: func() any { return new([foldPiece]byte) }}
	wideScratches = sync.Pool{New: func() any { return new(wideScratch) }}
)

// foldPiece computes n bytes of the result, at an offset in the operands; to may be scratch.
func (o Op) foldPiece(k dtype.Kind, to, scratch unsafe.Pointer, in []unsafe.Pointer, at, n int) {
	done := 0
	if v := vectorKernels[o][k]; v != nil {
		done = n &^ (vectorBlock - 1)
		if o.roundsOnce(k) && len(in) > mostOperands {
			v.foldWide(to, in, at, done)
		} else {
			v.foldAll(&v.folds, to, scratch, in, at, done)
		}
	}
	rest := n - done
	if rest == 0 {
		return
	}
	if o.roundsOnce(k) {
		o.foldRounding(unsafe.Add(to, done), in, at+done, rest)
		return
	}
	// The result can't be made in to, which may be one of the operands that are to come.
	acc, last := unsafe.Add(scratch, done), len(in)-1
	replace(acc, unsafe.Add(in[last], at+done), rest)
	for i := last - 1; i >= 0; i-- {
		o.Apply(k, acc, unsafe.Add(in[i], at+done), rest/k.Size())
	}
	if to != scratch {
		replace(unsafe.Add(to, done), acc, rest)
	}
}

// foldAll combines any number of operands from the last to the first, as many at a time as
// there are kernels for. All steps but the last one leave their result in scratch, which is an
// operand of the next. The kernels of the last step are final.
func (v *assembly) foldAll(final *byOperands, to, scratch unsafe.Pointer, in []unsafe.Pointer, at, n int) {
	if n == 0 {
		return
	}
	for left, later := len(in), 0; left > 0; later = 1 {
		take := min(left, mostOperands-later)
		p := *firstOf(in[left-take:left], at)
		if later == 1 {
			p[take] = scratch
		}
		if left -= take; left > 0 {
			v.folds[take+later](scratch, p[0], p[1], p[2], p[3], n)
		} else {
			final[take+later](to, p[0], p[1], p[2], p[3], n)
		}
	}
}
