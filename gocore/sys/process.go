package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// prSetPtracerAny is PR_SET_PTRACER_ANY of linux/prctl.h.
const prSetPtracerAny = ^uintptr(0)

// AllowPeers lets processes of the same user copy from and to this process's
// memory even where the Yama module restricts ptrace. Without Yama it does nothing.
func AllowPeers() { _ = unix.Prctl(unix.PR_SET_PTRACER, prSetPtracerAny, 0, 0, 0) }

// rawBytes is how much a call copies in so few microseconds that Go's scheduler need not know of it.
const rawBytes = 16 << 10

// rawRuns is the same of runs: each costs a quarter of a call.
const rawRuns = 8

// copyChunk bounds one call, so that a copy of gigabytes can be interrupted
// between calls and never exceeds what the kernel transfers at once (2 GiB).
const copyChunk = 64 << 20

// ReadProcess copies n bytes from address remote of process pid to local.
func ReadProcess(pid int, local unsafe.Pointer, remote uint64, n int) error {
	return copyProcess(unix.SYS_PROCESS_VM_READV, pid, local, remote, n)
}

// WriteProcess copies n bytes from local to address remote of process pid.
func WriteProcess(pid int, local unsafe.Pointer, remote uint64, n int) error {
	return copyProcess(unix.SYS_PROCESS_VM_WRITEV, pid, local, remote, n)
}

func copyProcess(call uintptr, pid int, local unsafe.Pointer, remote uint64, n int) error {
	for done := 0; done < n; {
		step := min(n-done, copyChunk)
		l := unix.Iovec{Base: (*byte)(unsafe.Add(local, done))}
		l.SetLen(step)
		r := unix.RemoteIovec{Base: uintptr(remote) + uintptr(done), Len: step}
		var got uintptr
		var e unix.Errno
		if step <= rawBytes {
			got, _, e = unix.RawSyscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&l)), 1, uintptr(unsafe.Pointer(&r)), 1, 0)
		} else {
			got, _, e = unix.Syscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&l)), 1, uintptr(unsafe.Pointer(&r)), 1, 0)
		}
		if e != 0 {
			return e
		}
		if got == 0 {
			return unix.EFAULT
		}
		done += int(got)
	}
	return nil
}

// MaxRuns is how many runs the kernel accepts in one call (UIO_MAXIOV).
const MaxRuns = 1024

// ReadProcessRuns copies runs of memory of process pid to local, one after the
// other. There may be at most MaxRuns. It modifies runs if the kernel copies only a
// part at a time.
func ReadProcessRuns(pid int, local unsafe.Pointer, runs []unix.RemoteIovec) error {
	return copyProcessRuns(unix.SYS_PROCESS_VM_READV, pid, local, runs)
}

// WriteProcessRuns copies from local to runs of memory of process pid, as
// ReadProcessRuns does in the other direction.
func WriteProcessRuns(pid int, local unsafe.Pointer, runs []unix.RemoteIovec) error {
	return copyProcessRuns(unix.SYS_PROCESS_VM_WRITEV, pid, local, runs)
}

func copyProcessRuns(call uintptr, pid int, local unsafe.Pointer, runs []unix.RemoteIovec) error {
	left := 0
	for i := range runs {
		left += runs[i].Len
	}
	for left > 0 {
		l := unix.Iovec{Base: (*byte)(local)}
		l.SetLen(left)
		var got uintptr
		var e unix.Errno
		if left <= rawBytes && len(runs) <= rawRuns {
			got, _, e = unix.RawSyscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&l)), 1, uintptr(unsafe.Pointer(&runs[0])), uintptr(len(runs)), 0)
		} else {
			got, _, e = unix.Syscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&l)), 1, uintptr(unsafe.Pointer(&runs[0])), uintptr(len(runs)), 0)
		}
		if e != 0 {
			return e
		}
		if got == 0 {
			return unix.EFAULT
		}
		if left -= int(got); left == 0 {
			break
		}
		local = unsafe.Add(local, got)
		for int(got) >= runs[0].Len {
			got -= uintptr(runs[0].Len)
			runs = runs[1:]
		}
		runs[0].Base += got
		runs[0].Len -= int(got)
	}
	return nil
}

// WriteProcessOnce makes one system call that copies from local to runs of memory of process pid, one after the other. It
// returns how many bytes have been copied, 0 if the kernel refused it. R is the kernel's struct iovec.
func WriteProcessOnce[R any](pid int, local unsafe.Pointer, runs []R) int {
	left := 0
	for i := range runs {
		left += (*unix.RemoteIovec)(unsafe.Pointer(&runs[i])).Len
	}
	l := unix.Iovec{Base: (*byte)(local)}
	l.SetLen(left)
	got, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_WRITEV, uintptr(pid), uintptr(unsafe.Pointer(&l)), 1, uintptr(unsafe.Pointer(&runs[0])), uintptr(len(runs)), 0)
	if e != 0 {
		return 0
	}
	return int(got)
}

// schedAttr is struct sched_attr of linux/sched/types.h, version 0.
type schedAttr struct {
	size, policy    uint32
	flags           uint64
	nice            int32
	priority        uint32
	runtime, _d, _p uint64
}

// ShortSlice asks the scheduler for a slice of 100 us for the calling thread,
// so that it runs soon after a wake-up on a busy machine (EEVDF, Linux 6.12;
// older kernels ignore it). It needs no privilege.
func ShortSlice() {
	a := schedAttr{policy: unix.SCHED_NORMAL, runtime: 100_000}
	a.size = uint32(unsafe.Sizeof(a))
	unix.RawSyscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(&a)), 0)
}
