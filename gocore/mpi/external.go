package mpi

import (
	"errors"
	"runtime/debug"
	"sync"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
)

// conversionError is an error of a conversion as one of MPI.
func conversionError(call string, err error) *errs.Error {
	return errs.New(errs.Conversion, "%s: %v", call, err)
}

// TypeExternalSize returns the number of bytes of one item in external32.
func TypeExternalSize(h int64) int64 {
	t, e := getType(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return int64(t.ExternalSize())
}

// TypePackExternal is TypePack with the data in external32. If a value does not fit
// there, nothing is written.
func TypePackExternal(h, in, count, out, outSize, position int64) (pos int64) {
	const call = "Pack_external"
	defer containNegated(&pos)
	debug.SetPanicOnFault(true)
	b, e := buf(in, count, h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	n := int64(b.Type.ExternalTotal(b.Count))
	if position < 0 || position > outSize || n > outSize-position {
		return -int64(classError(errs.Arg, "%s: %d bytes from position %d do not fit an output of %d bytes; Pack_external_size returns how many are needed", call, n, position, outSize))
	}
	to, e := checkedPointer(out, outSize)
	if e != nil {
		return -int64(CodeOf(e))
	}
	if n == 0 {
		return position
	}
	err := b.Type.Exceeds(b.Addr, b.Count)
	if err == nil {
		err = b.Type.PackExternal(unsafe.Slice((*byte)(unsafe.Add(to, position)), n), b.Addr, b.Count, 0)
	}
	if err != nil {
		return -int64(CodeOf(conversionError(call, err)))
	}
	return position + n
}

// TypeUnpackExternal is the inverse of TypePackExternal.
func TypeUnpackExternal(h, in, inSize, position, out, count int64) (pos int64) {
	const call = "Unpack_external"
	defer containNegated(&pos)
	debug.SetPanicOnFault(true)
	b, e := buf(out, count, h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	n := int64(b.Type.ExternalTotal(b.Count))
	if position < 0 || position > inSize || n > inSize-position {
		return -int64(classError(errs.Arg, "%s: %d bytes from position %d are more than the input of %d bytes has", call, n, position, inSize))
	}
	from, e := checkedPointer(in, inSize)
	if e != nil {
		return -int64(CodeOf(e))
	}
	if n == 0 {
		return position
	}
	if err := b.Type.UnpackExternal(b.Addr, unsafe.Slice((*byte)(unsafe.Add(from, position)), n), b.Count, 0); err != nil {
		return -int64(CodeOf(conversionError(call, err)))
	}
	return position + n
}

// f90 has the handles of Fortran's parametrized types: the same arguments make the same
// type.
var f90 struct {
	sync.Mutex
	handles map[f90Arguments]int64
}

type f90Arguments struct {
	class int
	p, r  int64
}

// The classes of TypeF90.
const (
	f90Integer = iota
	f90Real
	f90Complex
)

// TypeF90 returns the handle of a Fortran type of p decimal digits and a decimal exponent
// range of r; integers (class 0) have r digits. The others are real (1) and complex (2).
func TypeF90(class int, p, r int64) (out int64) {
	defer containNegated(&out)
	if _, e := getType(1); e != nil { // there are no types before Init
		return -int64(CodeOf(e))
	}
	f90.Lock()
	defer f90.Unlock()
	of := f90Arguments{class, p, r}
	if h := f90.handles[of]; h != 0 {
		return h
	}
	var t *dtype.Type
	err := errors.New("no such class of Fortran types")
	switch class {
	case f90Integer:
		t, err = dtype.F90Integer(int(r))
	case f90Real:
		t, err = dtype.F90Real(int(p), int(r))
	case f90Complex:
		t, err = dtype.F90Complex(int(p), int(r))
	}
	if err != nil {
		return -int64(CodeOf(errs.New(errs.Arg, "%v", err)))
	}
	if f90.handles == nil {
		f90.handles = make(map[f90Arguments]int64)
	}
	h := types.add(t, true)
	f90.handles[of] = h
	return h
}
