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

// MoveOff moves the calling thread to a processor that is not in taken, and reports
// whether it could. The thread is not bound to it: the kernel may move it again.
func MoveOff(taken []int) bool {
	var allowed, free unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return false
	}
	free = allowed
	for _, cpu := range taken {
		free.Clear(cpu)
	}
	if free.Count() == 0 || unix.SchedSetaffinity(0, &free) != nil {
		return false
	}
	return unix.SchedSetaffinity(0, &allowed) == nil
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
