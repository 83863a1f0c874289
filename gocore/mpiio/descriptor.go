package mpiio

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// classes are the error classes for errors of the system.
var classes = map[unix.Errno]errs.Class{
	unix.ENOENT: errs.NoSuchFile, unix.EEXIST: errs.FileExists, unix.EACCES: errs.Access, unix.EPERM: errs.Access,
	unix.EROFS: errs.ReadOnly, unix.ENOSPC: errs.NoSpace, unix.EDQUOT: errs.Quota, unix.ENAMETOOLONG: errs.BadFile,
	unix.ENOTDIR: errs.BadFile, unix.EISDIR: errs.BadFile, unix.ELOOP: errs.BadFile, unix.ETXTBSY: errs.FileInUse,
	unix.EBUSY: errs.FileInUse, unix.EFBIG: errs.NoSpace, unix.ENOMEM: errs.NoMem, unix.EFAULT: errs.Buffer,
	unix.EOPNOTSUPP: errs.UnsupportedOperation, unix.ENXIO: errs.BadFile, unix.ENODEV: errs.BadFile,
}

// advice is what the user can do about an error of the system.
var advice = map[unix.Errno]string{
	unix.ENOENT:       "create it with MODE_CREATE, or look at the name and the working directory",
	unix.EEXIST:       "MODE_EXCL asks for a new file: delete this one, or leave out MODE_EXCL",
	unix.EACCES:       "look at the permissions of the file and of its directory",
	unix.EROFS:        "open it with MODE_RDONLY, or write elsewhere",
	unix.ENOSPC:       "free some space, or write elsewhere",
	unix.EDQUOT:       "free some of your space, or write elsewhere",
	unix.EISDIR:       "it is a directory",
	unix.EMFILE:       "this process has too many files open: close some",
	unix.ENFILE:       "the system has too many files open",
	unix.EFBIG:        "the file would become larger than the file system or the limit of the shell (ulimit -f) allows",
	unix.ENXIO:        "it is not a regular file",
	unix.ENAMETOOLONG: "shorten the name",
}

// classOf returns the error class for the error of a system call.
func classOf(err error) errs.Class {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return errs.IO
	}
	if c, ok := classes[errno]; ok {
		return c
	}
	return errs.IO
}

// failure returns the MPI error for the error of a system call on a file.
func failure(call, path string, err error) *errs.Error {
	text := err.Error()
	var errno unix.Errno
	if errors.As(err, &errno) {
		if s := advice[errno]; s != "" {
			text += "; " + s
		}
	}
	return errs.New(classOf(err), "%s: %s: %s", call, path, text)
}

// counters count system calls on files, for tests and for tuning.
var counters struct{ reads, writes atomic.Int64 }

// Counters returns how many system calls of this process have read from files, and how
// many have written to them.
func Counters() (reads, writes int64) { return counters.reads.Load(), counters.writes.Load() }

// again calls f until no signal interrupts it.
func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// opened reports whether memory that a system call could not access is accessible now: mpiexec --check protects memory that it
// watches, and opens it for accesses of the runtime.
func opened(b []byte, err error, times *int) bool {
	if err != unix.EFAULT || *times == fabric.MostProbes {
		return false
	}
	*times++
	return sys.Touch(func() { fabric.Probe(unsafe.Pointer(unsafe.SliceData(b)), len(b)) }) == nil
}

// writeAt writes all of b at off.
func writeAt(fd int, b []byte, off int64) error {
	times := 0
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, off)
		counters.writes.Add(1)
		switch {
		case err == unix.EINTR || opened(b, err, &times):
		case err != nil:
			return err
		case n == 0:
			return unix.EIO // the system wrote nothing and reported no error
		default:
			b, off = b[n:], off+int64(n)
		}
	}
	return nil
}

// readAt reads b at off and returns how many bytes precede the file's end.
func readAt(fd int, b []byte, off int64) (int, error) {
	got, times := 0, 0
	for got < len(b) {
		n, err := unix.Pread(fd, b[got:], off+int64(got))
		counters.reads.Add(1)
		switch {
		case err == unix.EINTR || opened(b[got:], err, &times):
		case err != nil:
			return got, err
		case n == 0:
			return got, nil
		default:
			got += n
		}
	}
	return got, nil
}

// openFile opens a file and reports whether it has created it, with perm.
func openFile(path string, amode int, create bool, perm uint32) (fd int, created bool, err error) {
	flags := unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK // opening a pipe must not hang
	switch {
	case amode&ModeRdwr != 0:
		flags |= unix.O_RDWR
	case amode&ModeWronly != 0:
		flags |= unix.O_WRONLY
	}
	open := func(more int) error {
		return again(func() (err error) { fd, err = unix.Open(path, flags|more, perm); return err })
	}
	if create && amode&ModeCreate != 0 {
		err = open(unix.O_CREAT | unix.O_EXCL)
		if err == nil {
			return fd, true, nil
		}
		if err != unix.EEXIST || amode&ModeExcl != 0 {
			return -1, false, err
		}
	}
	if err = open(0); err == unix.ENOENT && create && amode&ModeCreate != 0 {
		err = open(unix.O_CREAT) // it was removed since, or is a dangling link
	}
	if err != nil {
		return -1, false, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG, unix.S_IFCHR, unix.S_IFBLK:
			return fd, false, nil
		case unix.S_IFDIR:
			err = unix.EISDIR
		default:
			err = unix.ENXIO
		}
	}
	unix.Close(fd)
	return -1, false, err
}

// Delete removes a file.
func Delete(path string) *errs.Error {
	if err := again(func() error { return unix.Unlink(path) }); err != nil {
		return failure("Delete", path, err)
	}
	return nil
}

// absolute returns a name that stays valid when the working directory changes.
func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}
