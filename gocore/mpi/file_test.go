package mpi

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
	"gormapy/gocore/mpiio"
)

// open begins to open a file on COMM_SELF.
func open(t testing.TB, path string, amode int) (req int64, code Code) {
	t.Helper()
	_, addr := memory(t, []byte(path)...)
	return FileOpen(CommSelf, addr, int64(len(path)), amode, 1<<20, 0, mpiio.Automatic, 0o600)
}

// newFile opens a file, which is closed at the end of the test.
func newFile(t testing.TB, path string, amode int) int64 {
	t.Helper()
	req, code := open(t, path, amode)
	f := result(t, req, code)
	t.Cleanup(func() {
		if FileCheck(f) == 0 {
			req, code := FileClose(f)
			done(t, req, code)
		}
	})
	return f
}

func TestFileIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numbers")
	f := newFile(t, path, mpiio.ModeCreate|mpiio.ModeRdwr)
	assert.Equal(t, fmt.Sprintf("0 1 %d 0 %d %d", 1<<20, mpiio.Automatic, 0o600), FileInfo(f))
	_, from := memory[int32](t, 1, 2, 3)
	into, to := memory(t, make([]int32, 4)...)
	i := typeOf("INT")

	for name, kind := range map[string]mpiio.Kind{
		"at": 0, "at, all": mpiio.All, "nonblocking": mpiio.Nonblocking, "nonblocking, all": mpiio.Nonblocking | mpiio.All,
	} {
		t.Run(name, func(t *testing.T) {
			clear(into)
			req, code := FileIO(int(kind|mpiio.Write), f, 8, from, 3, i)
			assert.EqualValues(t, 12, done(t, req, code).Bytes)
			req, code = FileIO(int(kind), f, 12, to, 4, i)
			assert.EqualValues(t, 8, done(t, req, code).Bytes, "the file ends")
			assert.Equal(t, []int32{2, 3, 0, 0}, into)
			assert.EqualValues(t, 20, FileSize(f))
		})
	}

	req, code := FileSetSize(f, 12)
	done(t, req, code)
	req, code = FileSync(f)
	done(t, req, code)
	req, code = FileClose(f)
	done(t, req, code)
	fails(t, errs.File, "the file has been closed", FileCheck(f))
	assert.Contains(t, FileInfo(f), "error ")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, data)
}

func TestFilePointerCountsInEtypesOfTheView(t *testing.T) {
	f := newFile(t, filepath.Join(t.TempDir(), "numbers"), mpiio.ModeCreate|mpiio.ModeRdwr)
	i := typeOf("INT")
	everySecond := newType(t, TypeResized(i, 0, 8))
	req, code := FileSetView(f, 4, i, everySecond, 0, 1<<20, 0, 0, 0o600)
	succeeds(t, code)
	fails(t, errs.Type, "is not committed", waited(Interrupted, req, nil))
	req, code = FileRefuse(f, "Set_info", 0)
	succeeds(t, code)
	fails(t, errs.Arg, "Set_info: the arguments are wrong", waited(Interrupted, req, nil))
	succeeds(t, TypeCommit(everySecond))
	req, code = FileSetView(f, 4, i, everySecond, 0, 1<<20, 0, 0, 0o600)
	done(t, req, code)
	assert.EqualValues(t, 4, FileViewDisp(f))
	assert.EqualValues(t, 20, FileByteOffset(f, 2))

	_, from := memory[int32](t, 1, 2, 3)
	req, code = FileIO(int(mpiio.Write|mpiio.Individual), f, 0, from, 3, i)
	done(t, req, code)
	assert.EqualValues(t, 3, FilePosition(f))
	assert.EqualValues(t, 24, FileSize(f))
	made(t, FileSeek(f, -2, mpiio.SeekCur))
	into, to := memory[int32](t, 0)
	req, code = FileIO(int(mpiio.Individual), f, 0, to, 1, i)
	done(t, req, code)
	assert.EqualValues(t, 2, into[0])
	assert.EqualValues(t, 2, FilePosition(f))
	fails(t, errs.Arg, "whence is 9", int(-FileSeek(f, 0, 9)))
	fails(t, errs.Arg, "before the beginning", int(-FileSeek(f, -1, mpiio.SeekSet)))
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, make([]byte, 8), 0o600))
	for name, c := range map[string]struct {
		path  string
		amode int
		class errs.Class
		text  string
	}{
		"missing":        {filepath.Join(dir, "missing"), mpiio.ModeRdonly, errs.NoSuchFile, "missing"},
		"exists":         {path, mpiio.ModeCreate | mpiio.ModeExcl | mpiio.ModeRdwr, errs.FileExists, path},
		"no access mode": {path, mpiio.ModeCreate, errs.Amode, "neither MODE_RDONLY nor MODE_WRONLY nor MODE_RDWR"},
		"two modes":      {path, mpiio.ModeRdonly | mpiio.ModeWronly, errs.Amode, "must have one of"},
		"create to read": {path, mpiio.ModeCreate | mpiio.ModeRdonly, errs.Amode, "has nothing to read"},
		"unknown bits":   {path, mpiio.ModeRdwr | 1<<20, errs.Amode, "has bits that mean nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			req, code := open(t, c.path, c.amode)
			if code == 0 {
				code = waited(Interrupted, req, nil)
			}
			fails(t, c.class, c.text, code)
		})
	}

	f := newFile(t, path, mpiio.ModeRdonly)
	_, addr := memory[int32](t, 1)
	i := typeOf("INT")
	for name, c := range map[string]struct {
		kind         mpiio.Kind
		offset       int64
		addr, n, typ int64
		class        errs.Class
		text         string
	}{
		"write to a file for reading": {mpiio.Write, 0, addr, 1, i, errs.ReadOnly, "was opened with MODE_RDONLY"},
		"negative offset":             {0, -4, addr, 1, i, errs.Arg, "the offset -4 is negative"},
		"negative count":              {0, 0, addr, -1, i, errs.Count, "the count -1 is negative"},
		"null buffer":                 {0, 0, 0, 1, i, errs.Buffer, "is the buffer None"},
		"null type":                   {0, 0, addr, 1, 0, errs.Type, "DATATYPE_NULL"},
	} {
		t.Run(name, func(t *testing.T) {
			req, code := FileIO(int(c.kind), f, c.offset, c.addr, c.n, c.typ)
			if code == 0 {
				code = waited(Interrupted, req, nil)
			}
			fails(t, c.class, c.text, code)
		})
	}
	fails(t, errs.File, "FILE_NULL", FileCheck(0))
	fails(t, errs.File, "FILE_NULL", int(-FileSize(0)))
	_, code := FileClose(noHandle)
	fails(t, errs.File, "the file has been closed", code)
	assert.EqualValues(t, 8, FileSize(f))
	assert.Zero(t, FileAtomicity(f))
	assert.Equal(t, []int{0}, worldRanks(t, FileGroup(f)))
}

func TestSharedFilePointer(t *testing.T) {
	f := newFile(t, filepath.Join(t.TempDir(), "numbers"), mpiio.ModeCreate|mpiio.ModeRdwr)
	_, from := memory[int32](t, 1, 2, 3)
	for range 2 {
		req, code := FileIO(int(mpiio.Write|mpiio.Shared), f, 0, from, 3, typeOf("INT"))
		done(t, req, code)
	}
	assert.EqualValues(t, 24, FileSharedPosition(f), "the view's etype is a byte")
	req, code := FileSeekShared(f, -16, mpiio.SeekEnd)
	done(t, req, code)
	into, to := memory(t, make([]int32, 2)...)
	req, code = FileIO(int(mpiio.Shared|mpiio.All), f, 0, to, 2, typeOf("INT"))
	done(t, req, code)
	assert.Equal(t, []int32{3, 1}, into)
	assert.Zero(t, FilePosition(f), "the individual pointer stays")
}

func TestDroppedAndDeletedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := newFile(t, path, mpiio.ModeCreate|mpiio.ModeWronly)
	succeeds(t, FileDrop(f))
	fails(t, errs.File, "the file has been closed", FileCheck(f))
	succeeds(t, FileDrop(f)) // there is nothing left to drop
	_, addr := memory(t, []byte(path)...)
	succeeds(t, FileDelete(addr, int64(len(path))))
	assert.NoFileExists(t, path)
	fails(t, errs.NoSuchFile, path, FileDelete(addr, int64(len(path))))
}

// fileAtOnce is the part of FileAccess that waits for nothing.
func fileAtOnce(kind int, h, offset, addr, count, typ int64, moved *int64) (did bool, code Code) {
	f, e := getFile(h)
	if e != nil {
		return false, 0
	}
	b, e := buf(addr, count, typ)
	if e != nil {
		return false, 0
	}
	*moved, did, e = f.AtOnce(mpiio.Kind(kind), offset, b)
	return did, CodeOf(e)
}

func TestFileAtOnceDoesWhatFileIODoes(t *testing.T) {
	f := newFile(t, filepath.Join(t.TempDir(), "numbers"), mpiio.ModeCreate|mpiio.ModeRdwr)
	_, from := memory[int32](t, 1, 2, 3)
	into, to := memory(t, make([]int32, 4)...)
	i := typeOf("INT")
	moves := func(kind mpiio.Kind, offset, addr, count, bytes int64) {
		t.Helper()
		var moved int64
		did, code := fileAtOnce(int(kind), f, offset, addr, count, i, &moved)
		succeeds(t, code)
		assert.True(t, did)
		assert.Equal(t, bytes, moved)
	}
	moves(mpiio.Write, 8, from, 3, 12)
	moves(0, 12, to, 4, 8) // the file ends
	assert.Equal(t, []int32{2, 3, 0, 0}, into)
	moves(0, 20, to, 1, 0)

	assert.Zero(t, FileSeek(f, 4, mpiio.SeekSet))
	moves(mpiio.Individual|mpiio.Write, -1, from, 2, 8)
	assert.EqualValues(t, 12, FilePosition(f))
	moves(mpiio.Individual, -1, to, 4, 8)
	assert.EqualValues(t, 20, FilePosition(f))
	assert.Equal(t, []int32{2, 3, 0, 0}, into)
	moves(mpiio.All|mpiio.Write, 8, from, 3, 12) // of the only rank
	moves(mpiio.Shared|mpiio.Write, -1, from, 1, 4)
	moves(mpiio.Shared, -1, to, 1, 4)
	assert.EqualValues(t, 8, FileSharedPosition(f))

	var st Status
	var pending int64
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = FileAccess(0, f, 0, to, 1, i, &st, &pending) }))
}

func TestFileAtOnceLeavesToFileIO(t *testing.T) {
	f := newFile(t, filepath.Join(t.TempDir(), "numbers"), mpiio.ModeCreate|mpiio.ModeRdwr)
	readable := newFile(t, filepath.Join(t.TempDir(), "others"), mpiio.ModeCreate|mpiio.ModeWronly)
	_, at := memory(t, make([]int32, 1<<15)...)
	i := typeOf("INT")
	spaced := newType(t, TypeVector(i, 2, 1, 2))
	succeeds(t, TypeCommit(spaced))
	leaves := func(why string, kind mpiio.Kind, h, offset, count, typ int64) {
		t.Helper()
		moved := int64(-1)
		did, _ := fileAtOnce(int(kind), h, offset, at, count, typ, &moved)
		assert.False(t, did, why)
		assert.LessOrEqual(t, moved, int64(0), why)
		assert.Zero(t, FileSize(h), why)
	}
	w := mpiio.Write
	leaves("nonblocking", w|mpiio.Nonblocking, f, 0, 1, i)
	leaves("nothing", w, f, 0, 0, i)
	leaves("more than a short access", w, f, 0, 1<<15, i)
	leaves("memory with gaps", w, f, 0, 1, spaced)
	leaves("a type that is not there", w, f, 0, 1, -7)
	leaves("a file that is not there", w, f, 0, 1, 1<<40)
	leaves("what the access mode forbids", 0, readable, 0, 1, i)
	req, code := FileSetAtomicity(f, true)
	done(t, req, code)
	leaves("atomic mode", w, f, 0, 1, i)
	req, code = FileSetAtomicity(f, false)
	done(t, req, code)
	req, code = FileSetView(f, 0, i, spaced, 0, 1<<20, 0, 0, 0o600)
	done(t, req, code)
	leaves("a view with gaps", w, f, 0, 1, i)

	moved := int64(0)
	_, code = fileAtOnce(int(w), f, -1, at, 1, i, &moved)
	assert.Zero(t, code, "in a view with gaps nothing is said")
	req, code = FileSetView(f, 0, i, i, 0, 1<<20, 0, 0, 0o600)
	done(t, req, code)
	did, code := fileAtOnce(int(w), f, -1, at, 1, i, &moved)
	assert.True(t, did)
	fails(t, errs.Arg, "the offset -1 is negative", code)
}
