package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// CPU returns the processor that the calling thread runs on, -1 if unknown.
func CPU() int {
	var cpu uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return -1
	}
	return int(cpu)
}

// Thread returns the kernel's number of the calling thread.
func Thread() int { return unix.Gettid() }

// MoveOff moves the calling thread to a processor in allowed that is not in taken, and
// reports whether it could. The thread is not bound to it: the kernel may move it
// again. A thread that may run on other processors than allowed is left where it is:
// the program has chosen them.
func MoveOff(taken, allowed []int) bool {
	var now, mine, free unix.CPUSet
	for _, cpu := range allowed {
		mine.Set(cpu)
	}
	if unix.SchedGetaffinity(0, &now) != nil || now != mine {
		return false
	}
	free = mine
	for _, cpu := range taken {
		free.Clear(cpu)
	}
	if free.Count() == 0 || unix.SchedSetaffinity(0, &free) != nil {
		return false
	}
	return unix.SchedSetaffinity(0, &mine) == nil
}

// MaxCPU bounds the numbers of processors that Allowed returns.
const MaxCPU = 1024

// Allowed returns the processors that the calling thread may run on; none if that is
// not known.
func Allowed() (cpus []int) {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return nil
	}
	for cpu := range MaxCPU {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
