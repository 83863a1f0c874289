package ibverbs

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Errors where no device can be used. Each has more of what is needed than the one before.
var (
	ErrNoLibrary = errors.New("libibverbs can't be loaded")
	ErrNoDriver  = errors.New("the kernel has no RDMA driver")
	ErrNoDevice  = errors.New("there is no RDMA device")
	ErrNoPort    = errors.New("no RDMA port is active")
)

// Error is a call of the library that failed.
type Error struct {
	Call  string // such as ibv_reg_mr
	Errno syscall.Errno
	What  string // what the call was for, and advice
}

func (e *Error) Error() string {
	name := unix.ErrnoName(e.Errno)
	if name == "" {
		name = "errno " + strconv.Itoa(int(e.Errno))
	}
	s := fmt.Sprintf("%s: %s (%s)", e.Call, name, e.Errno.Error())
	if e.What != "" {
		s += ": " + e.What
	}
	return s
}

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Errno }

func utoa(v uint32) string { return strconv.FormatUint(uint64(v), 10) }
