//go:build cgo

package libfabric

// #include "glue.h"
import "C"

import (
	"fmt"
	"syscall"
)

// Errno is an error of libfabric: an errno of the system, or one of its own from
// 256 on.
type Errno int

// Errors that callers compare with.
const (
	// EAGAIN: there is no room now, or no completion. Poll and try again.
	EAGAIN = Errno(syscall.EAGAIN)
	ENOSYS = Errno(syscall.ENOSYS)
)

func (e Errno) Error() string {
	if loaded.Load() == nil {
		return fmt.Sprintf("libfabric error %d", int(e))
	}
	return C.GoString(C.gm_fi_strerror(C.int(e)))
}

// own has the names of libfabric's own errors.
var own = map[Errno]string{
	256: "FI_EOTHER", 257: "FI_ETOOSMALL", 258: "FI_EOPBADSTATE", 259: "FI_EAVAIL", 260: "FI_EBADFLAGS",
	261: "FI_ENOEQ", 262: "FI_EDOMAIN", 263: "FI_ENOCQ", 264: "FI_ECRC", 265: "FI_ETRUNC", 266: "FI_ENOKEY",
	267: "FI_ENOAV", 268: "FI_EOVERRUN", 269: "FI_ENORX",
}

// Name returns the constant's name, or FI_ and the number if the name is not known.
func (e Errno) Name() string {
	if name, ok := own[e]; ok {
		return name
	}
	if name := systemName(syscall.Errno(e)); name != "" {
		return "FI_" + name
	}
	return fmt.Sprintf("FI_%d", int(e))
}

// systemName returns the name of the errnos that providers report.
func systemName(e syscall.Errno) string {
	switch e {
	case syscall.EPERM:
		return "EPERM"
	case syscall.ENOENT:
		return "ENOENT"
	case syscall.EIO:
		return "EIO"
	case syscall.EAGAIN:
		return "EAGAIN"
	case syscall.ENOMEM:
		return "ENOMEM"
	case syscall.EACCES:
		return "EACCES"
	case syscall.EFAULT:
		return "EFAULT"
	case syscall.EBUSY:
		return "EBUSY"
	case syscall.ENODEV:
		return "ENODEV"
	case syscall.EINVAL:
		return "EINVAL"
	case syscall.ENOSYS:
		return "ENOSYS"
	case syscall.ENODATA:
		return "ENODATA"
	case syscall.EMSGSIZE:
		return "EMSGSIZE"
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case syscall.ECONNABORTED:
		return "ECONNABORTED"
	case syscall.ECONNRESET:
		return "ECONNRESET"
	case syscall.ENOTCONN:
		return "ENOTCONN"
	case syscall.ESHUTDOWN:
		return "ESHUTDOWN"
	case syscall.ETIMEDOUT:
		return "ETIMEDOUT"
	case syscall.ECONNREFUSED:
		return "ECONNREFUSED"
	case syscall.EHOSTUNREACH:
		return "EHOSTUNREACH"
	case syscall.EREMOTEIO:
		return "EREMOTEIO"
	case syscall.ECANCELED:
		return "ECANCELED"
	case syscall.EKEYREJECTED:
		return "EKEYREJECTED"
	case syscall.EPIPE:
		return "EPIPE"
	}
	return ""
}

// check returns the error of a call whose result is 0 or a negative errno.
func check(what string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	if rc > 0 {
		rc = -rc
	}
	return &CallError{Call: what, Errno: Errno(-rc)}
}

// CallError is a call that failed.
type CallError struct {
	Call  string
	Errno Errno
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Call, e.Errno.Error(), e.Errno.Name())
}

func (e *CallError) Unwrap() error { return e.Errno }
