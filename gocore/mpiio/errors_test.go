package mpiio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
)

func TestErrorsOfTheSystemHaveTheirClass(t *testing.T) {
	for errno, class := range map[unix.Errno]errs.Class{
		unix.ENOENT: errs.NoSuchFile, unix.ENOSPC: errs.NoSpace, unix.EDQUOT: errs.Quota, unix.EIO: errs.IO, unix.EBADF: errs.IO,
		unix.EACCES: errs.Access, unix.EROFS: errs.ReadOnly, unix.EBUSY: errs.FileInUse,
	} {
		e := failure("Open", "/a/b", errno)
		assert.Equal(t, class, e.Class, errno)
		assert.Contains(t, e.Detail, "/a/b")
		assert.Contains(t, e.Detail, errno.Error())
	}
}

func TestShortWritesAndReadsGoOn(t *testing.T) {
	var p [2]int
	assert.NoError(t, unix.Pipe(p[:]))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	assert.ErrorIs(t, writeAt(p[1], []byte("x"), 0), unix.ESPIPE)

	name := t.TempDir() + "/f"
	fd, created, err := openFile(name, ModeRdwr|ModeCreate|ModeExcl, true, 0o600)
	assert.NoError(t, err)
	assert.True(t, created)
	defer unix.Close(fd)
	assert.NoError(t, writeAt(fd, []byte("abcdef"), 3))
	b := make([]byte, 10)
	n, err := readAt(fd, b, 1)
	assert.NoError(t, err)
	assert.Equal(t, "\x00\x00abcdef", string(b[:n]))
	_, _, err = openFile(name, ModeRdwr|ModeCreate|ModeExcl, true, 0o600)
	assert.ErrorIs(t, err, unix.EEXIST)
	again, created, err := openFile(name, ModeRdonly, true, 0)
	assert.NoError(t, err)
	defer unix.Close(again)
	assert.False(t, created)
}

func TestRangesThatMeetAreInterleaved(t *testing.T) {
	assert.False(t, interleaved([]record{{A: 10, B: 20}, {A: 0, B: 10}}))
	assert.True(t, interleaved([]record{{A: 9, B: 20}, {A: 0, B: 10}}))
	assert.False(t, interleaved(nil))
}

func TestSegmentsAreTheRunsOfTheView(t *testing.T) {
	for _, typ := range types(t) {
		v, e := NewView(5, dtype.ByName("INT"), typ, true)
		assert.Nil(t, e)
		x := &exchange{access: &access{v: v}}
		var want, got [][2]int64
		v.Runs(8, 300, func(off, n int64) bool { want = append(want, [2]int64{off, n}); return true })
		b := append(x.describe([]byte("head"), 8, 308), "data"...)
		rest := each(b[4:], func(off, n int64) { got = append(got, [2]int64{off, n}) })
		assert.Equal(t, want, got)
		assert.Equal(t, "data", string(rest))
	}
}
