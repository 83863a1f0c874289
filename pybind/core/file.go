package core

import "gormapy/gocore/mpi"

// FileClose begins to close a file; it and the other calls that begin something return a request for the shim's
// result().
func FileClose(file int64) int64 { return handle(mpi.FileClose(file)) }

// FileDrop closes this process's descriptor and returns 0.
func FileDrop(file int64) int { return -mpi.FileDrop(file) }

// FileCheck returns 0 if the handle names an open file, else a negative code.
func FileCheck(file int64) int { return -mpi.FileCheck(file) }

// FileDelete removes the file whose name is n bytes at addr.
func FileDelete(addr, n int64) int { return -mpi.FileDelete(addr, n) }

// FileSetSize begins to set the length.
func FileSetSize(file, size int64) int64 { return handle(mpi.FileSetSize(file, size)) }

// FilePreallocate begins to reserve room.
func FilePreallocate(file, size int64) int64 { return handle(mpi.FilePreallocate(file, size)) }

// FileSync begins to write what is in the system's memory to the device.
func FileSync(file int64) int64 { return handle(mpi.FileSync(file)) }

// FileSetAtomicity begins to switch atomic mode.
func FileSetAtomicity(file int64, on bool) int64 { return handle(mpi.FileSetAtomicity(file, on)) }

// FileSeekShared begins to move the shared file pointer.
func FileSeekShared(file, offset int64, whence int) int64 {
	return handle(mpi.FileSeekShared(file, offset, whence))
}

// FileSetInfo begins to change the hints.
func FileSetInfo(file, buffer, aggregators, collective, perm int64) int64 {
	return handle(mpi.FileSetInfo(file, buffer, aggregators, collective, perm))
}

// FileSetView begins to change the view.
func FileSetView(file, disp, etype, filetype, representation, buffer, aggregators, collective, perm int64) int64 {
	return handle(mpi.FileSetView(file, disp, etype, filetype, representation, buffer, aggregators, collective, perm))
}

// FileRefuse begins a collective call whose arguments are wrong at this rank; the other ranks get an error of the class.
func FileRefuse(file int64, call string, class int) int64 {
	return handle(mpi.FileRefuse(file, call, class))
}

// FileSize returns the length in bytes.
func FileSize(file int64) int64 { return mpi.FileSize(file) }

// FileSeek moves the individual file pointer and returns 0.
func FileSeek(file, offset int64, whence int) int64 { return mpi.FileSeek(file, offset, whence) }

// FilePosition returns the individual file pointer.
func FilePosition(file int64) int64 { return mpi.FilePosition(file) }

// FileSharedPosition returns the shared file pointer.
func FileSharedPosition(file int64) int64 { return mpi.FileSharedPosition(file) }

// FileByteOffset returns the byte of the file at an offset of the view.
func FileByteOffset(file, offset int64) int64 { return mpi.FileByteOffset(file, offset) }

// FileTypeExtent returns the extent of a type in the file.
func FileTypeExtent(file, t int64) int64 { return mpi.FileTypeExtent(file, t) }

// FileViewDisp returns the displacement of the view.
func FileViewDisp(file int64) int64 { return mpi.FileViewDisp(file) }

// FileAtomicity returns 1 in atomic mode, else 0.
func FileAtomicity(file int64) int64 { return mpi.FileAtomicity(file) }

// FileGroup makes the group of a file.
func FileGroup(file int64) int64 { return mpi.FileGroup(file) }

// FileInfo returns "rank size buffer aggregators collective perm".
func FileInfo(file int64) string { return mpi.FileInfo(file) }

// FileCounters returns "reads writes": the system calls of this process on files.
func FileCounters() string { return mpi.FileCounters() }
