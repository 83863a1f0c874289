package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// CPU is the processor that the calling thread runs on, -1 if unknown.
func CPU() int {
	var cpu uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return -1
	}
	return int(cpu)
}

// Thread is the kernel's number of the calling thread.
func Thread() int { return unix.Gettid() }

// MoveOff moves the calling thread to a processor that is not in taken, if it
// may use one. It is not bound to it: the kernel may move it again.
func MoveOff(taken []int) bool {
	var may, free unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return false
	}
	free = may
	for _, cpu := range taken {
		free.Clear(cpu)
	}
	if free.Count() == 0 || unix.SchedSetaffinity(0, &free) != nil {
		return false
	}
	return unix.SchedSetaffinity(0, &may) == nil
}

// MaxCPU bounds the numbers of processors that Allowed returns.
const MaxCPU = 1024

// Allowed are the processors that the calling thread may run on; none if that
// can't be known.
func Allowed() (cpus []int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	for cpu := range MaxCPU {
		if may.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
