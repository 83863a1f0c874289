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

// FutexNap is FutexWait for about a millisecond at most, without telling the Go scheduler.
//
// Go's monitor (sysmon) takes the processor of Go's from a thread that blocks in a system call, and while it has something to take
// it looks every 20 us. A thread that takes a nap each millisecond keeps it at that: it runs some 7,000 times a second,
// which costs a tenth of a core and interrupts the threads of the program. So a nap keeps the processor, of
// which there are plenty. A thread that stops the world ends the nap by a signal, or waits for its end.
func FutexNap(word *uint32, val uint32, d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(val), uintptr(unsafe.Pointer(&ts)), 0, 0)
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
