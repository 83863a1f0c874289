package mpi

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/mpiio"
)

// File is an open file and its communicator.
type File struct {
	*mpiio.File
	comm       *Comm
	commHandle int64
}

var files = newTable[File](1)

func getFile(h int64) (*File, *errs.Error) {
	if e := ready(); e != nil {
		return nil, e
	}
	if f := files.get(h); f != nil {
		return f, nil
	}
	if h == 0 {
		return nil, errs.New(errs.File, "the file is FILE_NULL (it was never opened, or has been closed)")
	}
	return nil, errs.New(errs.File, "the file has been closed")
}

// fileOp is an operation on a file as an operation of a request.
type fileOp struct{ *mpiio.Op }

func (o fileOp) handle() int64 { return o.Result }

func (o fileOp) status() Status {
	st := empty
	st.Bytes = o.Bytes
	return st
}

func (o fileOp) describe(why *engine.Reason) {
	why.Call, why.Info = job.CallFile, o.Text()
	o.Pending(func(w mpiio.Waiting) {
		switch p := w.(type) {
		case *coll.Op:
			describeColl(p, why)
		case *coll.BoardOp:
			why.Peer = o.Ranks()[p.Pending()]
		case *sequence:
			p.describe(why)
			why.Call = job.CallFile
		}
	})
}

// pathAt returns a copy of the name of n bytes at addr.
func pathAt(addr, n int64) string { return string(slices.Clone(bytesAt(addr, n))) }

// FileOpen begins to open a file; the request's result is its handle. The name is n
// bytes at addr; the last four parameters are the hints of package mpiio.
func FileOpen(comm, addr, n int64, amode int, buffer, aggregators, collective, perm int64) (req int64, code Code) {
	defer Contain(&code)
	parent, e := getIntracomm(comm, "Open")
	if e != nil {
		return 0, CodeOf(e)
	}
	dup := parent.duplicate(false)
	f := &File{File: &mpiio.File{Path: pathAt(addr, n), Amode: amode, Cores: runtime.NumCPU(), Wake: proc.me.Ring,
		Pointers: proc.pointers, SameNode: proc.seg.SameNode}}
	hints := mpiio.Hints{Buffer: buffer, Aggregators: aggregators, Collective: collective, Perm: perm}
	o := mpiio.Open(f.File, hints, dup, func() {
		f.comm, f.commHandle = comms.get(dup.result), dup.result
		f.Comm = f.comm.coll
	}, func() int64 {
		log.Debugf("file", "%s opened by %d ranks", f.Path, f.comm.size)
		return files.add(f)
	}, f.drop)
	return reqs.add(&Request{op: fileOp{o}}), 0
}

// drop frees the file's communicator.
func (f *File) drop() {
	comms.take(f.commHandle)
	f.comm.close()
}

// forget drops a file that is closed.
func (f *File) forget(h int64) {
	if files.take(h) == nil {
		return
	}
	f.drop()
	log.Debugf("file", "%s closed", f.Path)
}

// FileClose begins to close a file.
func FileClose(h int64) (req int64, code Code) {
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.Close(func() { f.forget(h) }) })
}

// FileDrop closes this process's descriptor of a file that the program has dropped.
func FileDrop(h int64) (code Code) {
	defer Contain(&code)
	if f := files.get(h); f != nil {
		_ = f.Drop()
		f.forget(h)
	}
	return 0
}

// FileCheck returns an error if a handle does not name an open file.
func FileCheck(h int64) Code {
	_, e := getFile(h)
	return CodeOf(e)
}

// FileDelete removes the file whose name is n bytes at addr.
func FileDelete(addr, n int64) (code Code) {
	defer Contain(&code)
	return CodeOf(mpiio.Delete(pathAt(addr, n)))
}

// fileCall makes a request of the operation that begin starts on a file.
func fileCall(h int64, begin func(f *File) (*mpiio.Op, *errs.Error)) (req int64, code Code) {
	defer Contain(&code)
	f, e := getFile(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	o, e := begin(f)
	if e != nil {
		return 0, CodeOf(e)
	}
	return reqs.add(&Request{op: fileOp{o}}), 0
}

// FileIO begins to read or write count items of a type at addr. kind is an mpiio.Kind;
// offset is for the kinds with explicit offsets.
func FileIO(kind int, h, offset, addr, count, typ int64) (req int64, code Code) {
	defer Contain(&code)
	f, e := getFile(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	b, e := buf(addr, count, typ)
	if e != nil {
		return 0, CodeOf(e)
	}
	o, e := f.Start(mpiio.Kind(kind), offset, b)
	if e != nil {
		return 0, CodeOf(e)
	}
	if mpiio.Kind(kind)&mpiio.Nonblocking != 0 {
		return inBackground(fileOp{o}), 0
	}
	return reqs.add(&Request{op: fileOp{o}}), 0
}

// FileAccess reads or writes as FileIO does, and waits until that has completed. If it is interrupted, the request continues
// under the handle in *pending, for Wait.
func FileAccess(kind int, h, offset, addr, count, typ int64, st *Status, pending *int64) (code Code) {
	defer Contain(&code)
	f, e := getFile(h)
	if e != nil {
		return CodeOf(e)
	}
	b, e := buf(addr, count, typ)
	if e != nil {
		return CodeOf(e)
	}
	if moved, done, e := f.AtOnce(mpiio.Kind(kind), offset, b); done {
		if e == nil { // a call that is refused leaves the status as it is
			*st = empty
			st.Bytes = moved
		}
		return CodeOf(e)
	}
	o, e := f.Start(mpiio.Kind(kind), offset, b)
	if e != nil {
		return CodeOf(e)
	}
	r := takeRequestOf(fileOp{o})
	return r.conclude(st, pending)
}

// FileSetSize begins to set the length of a file.
func FileSetSize(h, size int64) (int64, Code) {
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.SetSize(size) })
}

// FilePreallocate begins to reserve space for a file.
func FilePreallocate(h, size int64) (int64, Code) {
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.Preallocate(size) })
}

// FileSync begins to write a file to its device.
func FileSync(h int64) (int64, Code) {
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.Sync() })
}

// FileSetAtomicity begins to switch atomic mode.
func FileSetAtomicity(h int64, on bool) (int64, Code) {
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.SetAtomicity(on) })
}

// FileSeekShared begins to move the shared file pointer.
func FileSeekShared(h, offset int64, whence int) (int64, Code) {
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.SeekShared(offset, whence) })
}

// FileSetInfo begins to change the hints of a file.
func FileSetInfo(h, buffer, aggregators, collective, perm int64) (int64, Code) {
	hints := mpiio.Hints{Buffer: buffer, Aggregators: aggregators, Collective: collective, Perm: perm}
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) { return f.SetInfo(hints) })
}

// FileSetView begins to change the view of a file; representation is one of package mpiio.
func FileSetView(h, disp, etype, filetype, representation, buffer, aggregators, collective, perm int64) (int64, Code) {
	hints := mpiio.Hints{Buffer: buffer, Aggregators: aggregators, Collective: collective, Perm: perm}
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) {
		e, err := committedType(etype)
		if err != nil {
			return f.Refuse("Set_view", err)
		}
		t, err := committedType(filetype)
		if err != nil {
			return f.Refuse("Set_view", err)
		}
		return f.SetView(disp, e, t, representation, hints)
	})
}

// FileRefuse begins a collective call for which the caller has found its own arguments wrong: the other ranks get
// an error of the class.
func FileRefuse(h int64, call string, class int) (int64, Code) {
	if class <= 0 || class > 0xff {
		class = int(errs.Arg)
	}
	return fileCall(h, func(f *File) (*mpiio.Op, *errs.Error) {
		return f.Refuse(call, errs.New(errs.Class(class), "%s: the arguments are wrong", call))
	})
}

// fileNumber returns the result of a local call of a file, or a negative code.
func fileNumber(h int64, get func(f *File) (int64, *errs.Error)) (n int64) {
	var code Code
	defer func() {
		if code != 0 {
			n = -int64(code)
		}
	}()
	defer Contain(&code)
	f, e := getFile(h)
	if e == nil {
		n, e = get(f)
	}
	code = CodeOf(e)
	return n
}

// FileSize returns the length of a file.
func FileSize(h int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) { return f.Size() })
}

// FileSeek moves the individual file pointer.
func FileSeek(h, offset int64, whence int) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) { return 0, f.SetPosition(offset, whence) })
}

// FilePosition returns the individual file pointer.
func FilePosition(h int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) { return f.Position() })
}

// FileSharedPosition returns the shared file pointer.
func FileSharedPosition(h int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) { return f.SharedPosition() })
}

// FileByteOffset returns the offset in the file of an offset in the view.
func FileByteOffset(h, offset int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) { return f.ByteOffset(offset) })
}

// FileViewDisp returns the displacement of a file's view.
func FileViewDisp(h int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) { return f.View().Disp, nil })
}

// FileTypeExtent returns the extent of a type in a file.
func FileTypeExtent(h, typ int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) {
		t, e := getType(typ)
		if e != nil {
			return 0, e
		}
		return f.View().Extent(t)
	})
}

// FileAtomicity returns 1 in atomic mode, else 0.
func FileAtomicity(h int64) int64 {
	return fileNumber(h, func(f *File) (int64, *errs.Error) {
		if f.Atomic() {
			return 1, nil
		}
		return 0, nil
	})
}

// FileGroup makes the group of a file.
func FileGroup(h int64) int64 {
	f, e := getFile(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return addGroup(f.comm.group.ranks)
}

// FileInfo returns "rank size buffer aggregators collective perm" of a file, or
// "error CODE".
func FileInfo(h int64) string {
	f, e := getFile(h)
	if e != nil {
		return fmt.Sprintf("error %d", CodeOf(e))
	}
	x := f.Hints()
	return fmt.Sprintf("%d %d %d %d %d %d", f.comm.rank, f.comm.size, x.Buffer, x.Aggregators, x.Collective, x.Perm)
}

// FileCounters returns "reads writes": the system calls of this process on files.
func FileCounters() string {
	reads, writes := mpiio.Counters()
	return fmt.Sprintf("%d %d", reads, writes)
}

// bytesAt returns n bytes of the caller's memory at addr.
func bytesAt(addr, n int64) []byte {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(addr)), n)
}
