package mpi

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/errs"
	"gormapy/gocore/mpiio"
)

func TestPackExternal(t *testing.T) {
	long := typeOf("LONG")
	assert.EqualValues(t, 4, TypeExternalSize(long))
	assert.EqualValues(t, 8, TypeExternalSize(typeOf("AINT")))
	_, from := memory(t, int64(1), -2)
	packed, to := memory(t, make([]byte, 10)...)
	assert.EqualValues(t, 9, TypePackExternal(long, from, 2, to, 10, 1))
	assert.Equal(t, []byte{0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0}, packed)
	back, into := memory(t, make([]int64, 2)...)
	assert.EqualValues(t, 9, TypeUnpackExternal(long, to, 10, 1, into, 2))
	assert.Equal(t, []int64{1, -2}, back)
	assert.EqualValues(t, 3, TypePackExternal(long, from, 0, to, 10, 3), "nothing moves nothing")

	_, large := memory(t, int64(1), 1<<31)
	fails(t, errs.Conversion, "the value 2147483648 of item 1", Code(-TypePackExternal(long, large, 2, to, 10, 0)))
	assert.Equal(t, []byte{0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0}, packed)
	fails(t, errs.Arg, "8 bytes from position 3 do not fit an output of 10 bytes", Code(-TypePackExternal(long, from, 2, to, 10, 3)))
	fails(t, errs.Arg, "are more than the input of 10 bytes has", Code(-TypeUnpackExternal(long, to, 10, 3, into, 2)))
	fails(t, errs.Type, "DATATYPE_NULL", Code(-TypeExternalSize(0)))
	fails(t, errs.Buffer, "is the buffer None", Code(-TypePackExternal(long, from, 2, 0, 10, 0)))
}

func TestF90TypesAreThere(t *testing.T) {
	for _, h := range []int64{TypeF90(0, 0, 9), TypeF90(1, 6, 37), TypeF90(2, 15, 307)} {
		made(t, h)
		fails(t, errs.Type, "is predefined and can't be freed", TypeFree(h))
		_, e := committedType(h)
		assert.Nil(t, e)
	}
	assert.Equal(t, TypeF90(1, 6, 37), TypeF90(1, 6, 37))
	assert.NotEqual(t, TypeF90(1, 6, 37), TypeF90(1, 6, 36))
	assert.NotEqual(t, TypeF90(1, 6, 37), TypeF90(2, 6, 37))
	fails(t, errs.Arg, "18 decimal digits", Code(-TypeF90(0, 0, 40)))
	fails(t, errs.Arg, "no such class", Code(-TypeF90(3, 0, 0)))
}

func TestFileInExternal32(t *testing.T) {
	f := newFile(t, filepath.Join(t.TempDir(), "longs"), mpiio.ModeCreate|mpiio.ModeRdwr)
	long := typeOf("LONG")
	everySecond := newType(t, TypeVector(long, 2, 1, 2))
	succeeds(t, TypeCommit(everySecond))
	assert.EqualValues(t, 24, FileTypeExtent(f, everySecond))
	req, code := FileSetView(f, 2, long, everySecond, mpiio.External32, 1<<20, 0, 0, 0o600)
	done(t, req, code)
	assert.EqualValues(t, 12, FileTypeExtent(f, everySecond))
	assert.EqualValues(t, 4, FileTypeExtent(f, long))
	assert.EqualValues(t, 14, FileByteOffset(f, 2))
	_, from := memory(t, int64(1), -2, 3)
	req, code = FileIO(int(mpiio.Write|mpiio.Individual), f, 0, from, 3, long)
	done(t, req, code)
	assert.EqualValues(t, 3, FilePosition(f))
	assert.EqualValues(t, 18, FileSize(f))
	back, into := memory(t, make([]int64, 3)...)
	req, code = FileIO(0, f, 0, into, 3, long)
	done(t, req, code)
	assert.Equal(t, []int64{1, -2, 3}, back)
	_, large := memory(t, int64(1)<<40)
	_, code = FileIO(int(mpiio.Write), f, 0, large, 1, long)
	fails(t, errs.Conversion, "Write_at of", code)
	fails(t, errs.Type, "DATATYPE_NULL", Code(-FileTypeExtent(f, 0)))
}
