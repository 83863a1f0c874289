package mpi

import (
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

var byteType = dtype.ByName("BYTE")

func setTypes() {
	for _, t := range dtype.Predefined() {
		types.set(t.ID(), t)
	}
}

// DatatypeTable returns the predefined types: NAME=handle:size:extent:typechar.
func DatatypeTable() string {
	var b strings.Builder
	for _, t := range dtype.Predefined() {
		fmt.Fprintf(&b, "%s=%d:%d:%d:%s ", t.Name(), t.ID(), t.Size(), t.Extent(), dtype.TypeChar(t))
	}
	return strings.TrimSpace(b.String())
}

// nameOf names a datatype in errors.
func nameOf(t *dtype.Type) string {
	if name := t.Name(); name != "" {
		return name
	}
	return "a derived datatype"
}

func getType(h int64) (*dtype.Type, *errs.Error) {
	if t, _ := types.get(h); t != nil {
		return t, nil
	}
	return nil, noType(h)
}

// noType returns why a handle names no datatype.
func noType(h int64) *errs.Error {
	if h == 0 {
		return errs.New(errs.Type, "the datatype is DATATYPE_NULL")
	}
	return errs.New(errs.Type, "the datatype has been freed")
}

// committedType is getType for calls that communicate, which take committed types only.
func committedType(h int64) (*dtype.Type, *errs.Error) {
	t, committed := types.get(h)
	switch {
	case t == nil:
		return nil, noType(h)
	case !committed:
		return nil, errs.New(errs.Type, "%s is not committed: call its Commit() once, before it is used in communication", nameOf(t))
	}
	return t, nil
}

// buf checks what Python passes and returns it as a buffer. An address without memory
// is found when it is touched, except for the lowest addresses: Go treats an access
// there as an error of its own, and so does the garbage collector a pointer to there.
func buf(addr, count, typ int64) (p2p.Buf, *errs.Error) {
	b, e := shape(count, typ)
	if e != nil || b.Bytes() == 0 {
		return b, e
	}
	lo, _ := b.Type.Span(b.Count)
	if first := uint64(addr + int64(lo)); first < smallestAddress || addr != 0 && uint64(addr) < smallestAddress {
		return b, errs.New(errs.Buffer, "%d items of %s at address %#x: no memory of a program lies at %#x (is the buffer None, or a null pointer?)",
			count, nameOf(b.Type), uint64(addr), first)
	}
	b.Addr = pointer(addr)
	return b, nil
}

// checkedPointer returns the address of n bytes, checked as buf does.
func checkedPointer(addr, n int64) (unsafe.Pointer, *errs.Error) {
	switch low := uint64(addr) < smallestAddress; {
	case low && n > 0:
		return nil, errs.New(errs.Buffer, "%d bytes at address %#x: no memory of a program lies there (is the buffer None, or a null pointer?)", n, uint64(addr))
	case low:
		return nil, nil
	}
	return pointer(addr), nil
}

// shape returns a buffer without its address.
func shape(count, typ int64) (p2p.Buf, *errs.Error) {
	t, e := committedType(typ)
	if e != nil {
		return p2p.Buf{}, e
	}
	if count < 0 {
		return p2p.Buf{}, errs.New(errs.Count, "the count %d is negative", count)
	}
	if count > 0 && t.Size() > 0 && count > (1<<62)/int64(t.Size()) {
		return p2p.Buf{}, errs.New(errs.Count, "%d items of %s are more than memory can hold", count, nameOf(t))
	}
	return p2p.Buf{Count: int(count), Type: t}, nil
}

func typeError(err error) *errs.Error {
	class := errs.Arg
	switch s := err.Error(); {
	case strings.Contains(s, "count") || strings.Contains(s, "block length"):
		class = errs.Count
	case strings.Contains(s, "datatype") || strings.Contains(s, "type is"):
		class = errs.Type
	}
	return errs.New(class, "%v", err)
}

// derive returns a handle for the type that a constructor returns, or a negative code.
func derive(h int64, f func(old *dtype.Type) (*dtype.Type, error)) (out int64) {
	var code Code
	defer func() {
		if code != 0 {
			out = -int64(code)
		}
	}()
	defer Contain(&code)
	old, e := getType(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	t, err := f(old)
	if err != nil {
		return -int64(CodeOf(typeError(err)))
	}
	return types.add(t, false)
}

func toInts(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

// The constructors of MPI return handles, or negative codes. Lists are passed as
// addresses of 64-bit integers.

// TypeDup makes a type that is committed if the other one is.
func TypeDup(h int64) int64 {
	made := derive(h, dtype.Dup)
	if _, committed := types.get(h); committed && made > 0 {
		types.commit(made)
	}
	return made
}

func TypeContiguous(h, count int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) { return dtype.Contiguous(t, int(count)) })
}

func TypeVector(h, count, block, stride int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.Vector(t, int(count), int(block), int(stride))
	})
}

func TypeHvector(h, count, block, stride int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.Hvector(t, int(count), int(block), int(stride))
	})
}

func TypeIndexed(h, n, blocks, displs int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.Indexed(t, toInts(longs(blocks, n)), toInts(longs(displs, n)))
	})
}

func TypeHindexed(h, n, blocks, displs int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.Hindexed(t, toInts(longs(blocks, n)), toInts(longs(displs, n)))
	})
}

func TypeIndexedBlock(h, n, block, displs int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.IndexedBlock(t, int(block), toInts(longs(displs, n)))
	})
}

func TypeHindexedBlock(h, n, block, displs int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.HindexedBlock(t, int(block), toInts(longs(displs, n)))
	})
}

func TypeStruct(n, blocks, displs, handles int64) int64 {
	var list []*dtype.Type
	for _, h := range longs(handles, n) {
		t, e := getType(h)
		if e != nil {
			return -int64(CodeOf(e))
		}
		list = append(list, t)
	}
	return derive(1, func(*dtype.Type) (*dtype.Type, error) {
		return dtype.Struct(toInts(longs(blocks, n)), toInts(longs(displs, n)), list)
	})
}

// checkOrder returns an error if order is neither ORDER_C nor ORDER_FORTRAN.
func checkOrder(name string, order int64) *errs.Error {
	if order == 0 || order == 1 {
		return nil
	}
	return errs.New(errs.Arg, "%s: there is no order %d; MPI.ORDER_C and MPI.ORDER_FORTRAN are", name, order)
}

func TypeSubarray(h, dims, sizes, subsizes, starts, order int64) int64 {
	if e := checkOrder("Create_subarray", order); e != nil {
		return -int64(CodeOf(e))
	}
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		return dtype.Subarray(t, toInts(longs(sizes, dims)), toInts(longs(subsizes, dims)), toInts(longs(starts, dims)), order == 0)
	})
}

// The distributions of Create_darray, numbered as in gormapy.MPI.
var distributions = map[int]int{801: dtype.DistributeNone, 802: dtype.DistributeBlock, 803: dtype.DistributeCyclic}

const distributeDefault = -804

// TypeDarray takes its four lists, of dims integers each, one after the other.
func TypeDarray(h, size, rank, dims, lists, order int64) int64 {
	if e := checkOrder("Create_darray", order); e != nil {
		return -int64(CodeOf(e))
	}
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) {
		v := toInts(longs(lists, 4*dims))
		gsizes, distribs, dargs, psizes := v[:dims], v[dims:2*dims], v[2*dims:3*dims], v[3*dims:]
		for i, d := range distribs {
			known, ok := distributions[d]
			if !ok {
				return nil, fmt.Errorf("%w: Create_darray: distribs[%d] is %d; it must be DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC or DISTRIBUTE_NONE", dtype.ErrArg, i, d)
			}
			distribs[i] = known
			if dargs[i] == distributeDefault {
				dargs[i] = dtype.DistributeDefault
			} else if dargs[i] == dtype.DistributeDefault {
				dargs[i] = -1 // dtype's value is not MPI's: let Darray refuse it
			}
		}
		return dtype.Darray(t, int(size), int(rank), gsizes, distribs, dargs, psizes, order == 0)
	})
}

func TypeResized(h, lb, extent int64) int64 {
	return derive(h, func(t *dtype.Type) (*dtype.Type, error) { return dtype.Resized(t, int(lb), int(extent)) })
}

// TypeFree frees a derived type.
func TypeFree(h int64) Code {
	t, e := getType(h)
	if e != nil {
		return CodeOf(e)
	}
	if t.IsPredefined() {
		return classError(errs.Type, "%s is predefined and can't be freed", t.Name())
	}
	types.take(h)
	return 0
}

// TypeShape is what Python knows of a datatype. OneRun is 1 if it is contiguous: the hot calls take it once it is committed.
// Word is the address of its word (typetable.go). The extension has the same layout.
type TypeShape struct{ Size, Extent, LB, TrueLB, TrueExtent, OneRun, Word int64 }

// ShapeOfType fills in the shape of a datatype.
func ShapeOfType(h int64, s *TypeShape) (code Code) {
	defer Contain(&code)
	t, e := getType(h)
	if e != nil {
		return CodeOf(e)
	}
	*s = TypeShape{Size: int64(t.Size()), Extent: int64(t.Extent()), LB: int64(t.LB()), TrueLB: int64(t.TrueLB()), TrueExtent: int64(t.TrueExtent()),
		Word: int64(uintptr(unsafe.Pointer(types.word(h))))}
	if t.Dense() {
		s.OneRun = 1
	}
	return 0
}

// TypePart returns a new handle of the i-th datatype that a derived one has been made of, which is as good as committed.
func TypePart(h, i int64) int64 {
	t, e := getType(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	_, _, _, parts := t.Envelope()
	if i < 0 || i >= int64(len(parts)) {
		return -int64(classError(errs.Intern, "%s has no part %d", nameOf(t), i))
	}
	if parts[i].IsPredefined() {
		return int64(parts[i].ID())
	}
	return types.add(parts[i], true)
}

// TypeDrop takes back the handle of a datatype that the extension has freed (typetable.go).
func TypeDrop(h int64) { types.drop(h) }

// TypePack packs count items from in into out, from position on, and returns
// the new position.
func TypePack(h, in, count, out, outSize, position int64) (pos int64) {
	defer containNegated(&pos)
	debug.SetPanicOnFault(true)
	b, e := buf(in, count, h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	n := int64(b.Bytes())
	if position < 0 || position > outSize || n > outSize-position {
		return -int64(classError(errs.Arg, "Pack: %d bytes from position %d do not fit an output of %d bytes", n, position, outSize))
	}
	to, e := checkedPointer(out, outSize)
	if e != nil {
		return -int64(CodeOf(e))
	}
	if n > 0 {
		b.Type.Pack(unsafe.Slice((*byte)(unsafe.Add(to, position)), n), b.Addr, b.Count)
	}
	return position + n
}

// TypeUnpack is the inverse of TypePack.
func TypeUnpack(h, in, inSize, position, out, count int64) (pos int64) {
	defer containNegated(&pos)
	debug.SetPanicOnFault(true)
	b, e := buf(out, count, h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	n := int64(b.Bytes())
	if position < 0 || position > inSize || n > inSize-position {
		return -int64(classError(errs.Arg, "Unpack: %d bytes from position %d are more than the input of %d bytes has", n, position, inSize))
	}
	from, e := checkedPointer(in, inSize)
	if e != nil {
		return -int64(CodeOf(e))
	}
	if n > 0 {
		b.Type.Unpack(b.Addr, unsafe.Slice((*byte)(unsafe.Add(from, position)), n), b.Count)
	}
	return position + n
}

// getOp checks a reduction operation for a datatype.
func getOp(h int64, t *dtype.Type) (op.Op, *errs.Error) {
	f := op.Op(h)
	if h <= 0 || f > op.NoOp {
		return 0, errs.New(errs.Op, "the operation is OP_NULL or has been freed")
	}
	if t.Kind() == dtype.KindNone {
		return 0, errs.New(errs.Type, "%v needs elements of one predefined type, %s has none", f, nameOf(t))
	}
	if !f.Valid(t.Kind()) {
		return 0, errs.New(errs.Op, "the operation %v does not exist for elements of %s", f, nameOf(t))
	}
	return f, nil
}

// OpApply computes inout[i] = in[i] op inout[i] for count items.
func OpApply(h, typ, in, inout, count int64) (code Code) {
	defer Contain(&code)
	debug.SetPanicOnFault(true)
	a, e := buf(in, count, typ)
	if e != nil {
		return CodeOf(e)
	}
	f, e := getOp(h, a.Type)
	if e != nil {
		return CodeOf(e)
	}
	b, e := buf(inout, count, typ)
	if e != nil {
		return CodeOf(e)
	}
	n := a.Count * a.Type.Elems()
	if a.Type.Dense() || a.Type.Extent() == a.Type.Elems()*a.Type.ElemSize() {
		f.Apply(a.Type.Kind(), b.Addr, a.Addr, n)
		return 0
	}
	size := a.Type.ElemSize()
	x, y := make([]byte, max(n*size, 1)), make([]byte, max(n*size, 1))
	a.Type.PackElements(x, a.Addr, a.Count)
	a.Type.PackElements(y, b.Addr, a.Count)
	f.Apply(a.Type.Kind(), unsafe.Pointer(&y[0]), unsafe.Pointer(&x[0]), n)
	a.Type.UnpackElements(b.Addr, y, a.Count)
	return 0
}

// TypeCommit commits a type, so that calls that communicate take it.
func TypeCommit(h int64) Code {
	_, e := getType(h)
	types.commit(h)
	return CodeOf(e)
}
