//go:build cgo

package libfabric

/*
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Flags of completions.
const (
	FlagSend         = uint64(C.FI_SEND)
	FlagRecv         = uint64(C.FI_RECV)
	FlagRead         = uint64(C.FI_READ)
	FlagWrite        = uint64(C.FI_WRITE)
	FlagRemoteWrite  = uint64(C.FI_REMOTE_WRITE)
	FlagRemoteCQData = uint64(C.FI_REMOTE_CQ_DATA)
)

// Completion is an operation that has completed.
type Completion struct {
	Context uintptr
	Flags   uint64
	Len     uint64
	Buf     uintptr
	Data    uint64 // with FlagRemoteCQData
}

// Completion must have the size that the library writes.
var _ [unsafe.Sizeof(Completion{})]byte = [unsafe.Sizeof(C.struct_fi_cq_data_entry{})]byte{}

// Failure is an operation that has failed.
type Failure struct {
	Context   uintptr
	Flags     uint64
	Len       uint64
	Errno     Errno
	ProvErrno int
	Text      string // of ProvErrno, the provider's own
}

func (f *Failure) Error() string {
	s := fmt.Sprintf("%s: %s", f.Errno.Name(), f.Errno.Error())
	if f.Text != "" && f.Text != f.Errno.Error() {
		s += fmt.Sprintf(" (provider error %d: %s)", f.ProvErrno, f.Text)
	}
	return s
}

// CQ is a completion queue. One thread reads at a time.
type CQ struct {
	c       *C.struct_fid_cq
	entries *C.struct_fi_cq_data_entry
	failure *C.struct_gm_fi_failure
	// FD becomes readable when there are completions, see Fabric.TryWait; -1: the queue
	// has no descriptor.
	FD int
}

// Batch is how many completions one Read returns at most.
const Batch = 64

// OpenCQ makes a CQ with room for size completions, or for the provider's default if size
// is 0. wait asks for a descriptor to sleep on.
func (d *Domain) OpenCQ(size int, wait bool) (*CQ, error) {
	q := &CQ{FD: -1}
	w := C.int(0)
	if wait {
		w = 1
	}
	if err := check("fi_cq_open", C.gm_fi_cq_open(d.c, C.size_t(size), w, &q.c)); err != nil {
		return nil, err
	}
	if wait {
		fd := C.int(-1)
		if err := check("fi_control(FI_GETWAIT)", C.gm_fi_cq_fd(q.c, &fd)); err != nil {
			_ = closeFid("fi_close(cq)", unsafe.Pointer(q.c))
			return nil, err
		}
		q.FD = int(fd)
	}
	q.entries = (*C.struct_fi_cq_data_entry)(C.calloc(Batch, C.sizeof_struct_fi_cq_data_entry))
	q.failure = (*C.struct_gm_fi_failure)(C.calloc(1, C.sizeof_struct_gm_fi_failure))
	return q, nil
}

// Read drives the provider, and returns completions, or a failure, or neither. err is not
// nil if the queue itself does not work. The completions are valid until the next Read.
func (q *CQ) Read() (done []Completion, failed *Failure, err error) {
	n := C.gm_fi_cq_read(q.c, q.entries, Batch, q.failure)
	switch {
	case n > 0:
		return unsafe.Slice((*Completion)(unsafe.Pointer(q.entries)), int(n)), nil, nil
	case n == 0:
		f := q.failure
		return nil, &Failure{
			Context: uintptr(f.context), Flags: uint64(f.flags), Len: uint64(f.len), Errno: Errno(f.err),
			ProvErrno: int(f.prov_errno), Text: C.GoString(&f.text[0]),
		}, nil
	case Errno(-n) == EAGAIN:
		return nil, nil, nil
	}
	return nil, nil, check("fi_cq_read", C.int(n))
}

// Close closes it.
func (q *CQ) Close() error {
	err := closeFid("fi_close(cq)", unsafe.Pointer(q.c))
	if err == nil {
		C.free(unsafe.Pointer(q.entries))
		C.free(unsafe.Pointer(q.failure))
		q.entries, q.failure = nil, nil
	}
	return err
}
