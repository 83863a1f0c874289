package sys

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0 // FUTEX_WAIT, shared between processes
	futexWake = 1 // FUTEX_WAKE
)

// FutexWait sleeps while *word == val, at most d. It returns 0 when woken, or
// the errno: EAGAIN (word differs), ETIMEDOUT, or EINTR when a signal handler
// ran on this thread. It tells the Go scheduler that it blocks.
func FutexWait(word *uint32, val uint32, d time.Duration) unix.Errno {
	ts := unix.NsecToTimespec(int64(d))
	_, _, e := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(val),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	return e
}

// FutexWake wakes all threads that sleep on word, in any process.
func FutexWake(word *uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

// Yield gives the processor to another runnable thread. It does not tell the
// Go scheduler, because it returns within microseconds.
func Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Pause leaves the processor for d, to any other thread: Yield gives it only to those of the same
// scheduling group, and costs the caller its share where the kernel takes a whole slice for it.
func Pause(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal may end it early
}
