package coll

import (
	"slices"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Vec is a buffer with a part for each rank: Counts[i] items from item
// Displs[i] on (in extents of the type).
type Vec struct {
	Addr   unsafe.Pointer
	Counts []int
	Displs []int
	Type   *dtype.Type
}

// Clone returns a copy of v with counts and displacements of its own; nil of an empty one.
func (v *Vec) Clone() *Vec {
	if v.Type == nil {
		return nil
	}
	return &Vec{Addr: v.Addr, Counts: slices.Clone(v.Counts), Displs: slices.Clone(v.Displs), Type: v.Type}
}

func (v *Vec) part(i int) p2p.Buf {
	if v.Counts[i] == 0 {
		return p2p.Buf{Addr: v.Addr, Type: v.Type}
	}
	return p2p.Buf{Addr: unsafe.Add(v.Addr, v.Displs[i]*v.Type.Extent()), Count: v.Counts[i], Type: v.Type}
}

// Uniform returns a buffer that has b.Count items for each of n ranks.
func Uniform(b p2p.Buf, n int) *Vec {
	v := &Vec{Addr: b.Addr, Counts: make([]int, n), Displs: make([]int, n), Type: b.Type}
	for i := range n {
		v.Counts[i], v.Displs[i] = b.Count, i*b.Count
	}
	return v
}

// copyLocal copies between two buffers of this process as a message would: what fits.
func copyLocal(dst, src p2p.Buf) {
	n := min(dst.Bytes(), src.Bytes())
	switch {
	case n == 0 || (dst.Addr == src.Addr && dst.Type == src.Type):
	case dst.Type.Dense() && src.Type.Dense():
		fabric.Copy(dst.Addr, src.Addr, n)
	case dst.Type.Dense() && n == src.Bytes():
		src.Type.Pack(unsafe.Slice((*byte)(dst.Addr), src.Bytes()), src.Addr, src.Count)
	default:
		flat := sys.NewBytes(src.Bytes())
		src.Type.Pack(flat, src.Addr, src.Count)
		dst.Type.Unpack(dst.Addr, flat[:n], dst.Count)
	}
}

var byteType = dtype.ByName("BYTE")

func raw(p unsafe.Pointer, n int) p2p.Buf { return p2p.Buf{Addr: p, Count: n, Type: byteType} }

// elements is the packed operand of a reduction: n elements of one kind.
type elements struct {
	p    unsafe.Pointer
	n    int
	kind dtype.Kind
	size int
	op   op.Op
}

// operand packs b into temporary memory of the collective o, so that b may be
// overwritten.
func (o *Op) operand(b p2p.Buf, f op.Op) elements {
	e := elements{n: b.Count * b.Type.Elems(), kind: b.Type.Kind(), size: b.Type.ElemSize(), op: f}
	e.p = o.temp(e.bytes())
	b.Type.PackElements(unsafe.Slice((*byte)(e.p), e.bytes()), b.Addr, b.Count)
	return e
}

func (e *elements) bytes() int { return e.n * e.size }

// store writes the elements to b.
func (e *elements) store(b p2p.Buf) {
	b.Type.UnpackElements(b.Addr, unsafe.Slice((*byte)(e.p), e.bytes()), b.Count)
}

// slice returns the part of the elements for rank i of n in a reduce-scatter, in bytes.
func (e *elements) slice(i, n int) (off, length int) {
	lo, hi := i*e.n/n, (i+1)*e.n/n
	return lo * e.size, (hi - lo) * e.size
}
