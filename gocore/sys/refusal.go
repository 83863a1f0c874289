package sys

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CopyRefusal returns the reason why the kernel does not let this process copy from
// and to the memory of process pid; empty if it does. For the own pid it checks whether
// the system calls can be used at all.
//
// It reads nothing of the other process: the kernel checks the permission before
// it looks at the address, and there is never memory at address 0.
func CopyRefusal(pid int) string {
	var word uint64
	if err := ReadProcess(os.Getpid(), unsafe.Pointer(&word), uint64(uintptr(unsafe.Pointer(&word))), int(unsafe.Sizeof(word))); err != nil {
		// A process may always read its own memory, so this is not a matter of permission.
		if errors.Is(err, unix.ENOSYS) {
			return "the kernel (or a sandbox) has no process_vm_readv"
		}
		return fmt.Sprintf("process_vm_readv is not permitted at all (%v): %s", err, filtered())
	}
	if pid == os.Getpid() {
		return ""
	}
	err := ReadProcess(pid, unsafe.Pointer(&word), 0, int(unsafe.Sizeof(word)))
	switch {
	case err == nil, errors.Is(err, unix.EFAULT):
		return ""
	case errors.Is(err, unix.ESRCH):
		return fmt.Sprintf("there is no process %d here (it has ended, or runs in another container)", pid)
	case errors.Is(err, unix.EPERM):
		return denied(pid)
	}
	return fmt.Sprintf("process_vm_readv of process %d: %v", pid, err)
}

// filtered returns what forbids system calls.
func filtered() string {
	if status("self", "Seccomp") == "2" {
		return "a seccomp filter takes it away, as those of containers do (docker run --cap-add=SYS_PTRACE, or --security-opt seccomp=unconfined)"
	}
	return "a security module takes it away"
}

// denied returns which of the kernel's rules forbids this process to access pid's
// memory, in the order of ptrace(2), "Ptrace access mode checking".
func denied(pid int) string {
	theirs, own := status(strconv.Itoa(pid), "Uid"), strconv.Itoa(os.Geteuid())
	if theirs != "" && theirs != own {
		return fmt.Sprintf("process %d belongs to user %s, this one to user %s", pid, theirs, own)
	}
	switch scope := PtraceScope(); scope {
	case 2:
		return "Yama allows it to administrators only (/proc/sys/kernel/yama/ptrace_scope is 2)"
	case 3:
		return "Yama allows it to nobody (/proc/sys/kernel/yama/ptrace_scope is 3)"
	case 1:
		return fmt.Sprintf("Yama restricts it to parents (/proc/sys/kernel/yama/ptrace_scope is 1) and process %d has not allowed it to others by PR_SET_PTRACER", pid)
	}
	return fmt.Sprintf("process %d is protected (not dumpable, of another user namespace, or by a security module)", pid)
}

// PtraceScope returns what the security module Yama allows: 0 everything that the
// user may do, 1 what the other process has allowed, 2 administrators only, 3 nothing;
// -1 if the kernel has no Yama.
func PtraceScope() int {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return -1
	}
	scope, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return scope
}

// status returns the first value of a field of /proc/PID/status, empty if unknown.
func status(pid, field string) string {
	text, _ := os.ReadFile("/proc/" + pid + "/status")
	for _, line := range strings.Split(string(text), "\n") {
		if values, ok := strings.CutPrefix(line, field+":"); ok {
			if f := strings.Fields(values); len(f) > 0 {
				return f[0]
			}
		}
	}
	return ""
}
