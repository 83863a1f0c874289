package sys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Life is the state of a process as far as it could be determined.
type Life int

// The states of a process.
const (
	Unknown Life = iota // it can't be determined now: no descriptors, memory or permission
	Living
	Ended // it does not exist, or is a zombie, or its pid is another process's by now
)

// Look returns the state of the process with number pid and start time age, 0 if that
// is not known. A process that can't be inspected is Unknown, never Ended.
func Look(pid int, age uint64) Life {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	state, start, ok := parseStat(stat)
	if err != nil || !ok {
		// The process may live all the same: reading needs a descriptor, memory, and /proc.
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return Ended
		}
		return Unknown
	}
	if state == 'Z' || state == 'X' || age != 0 && start != age {
		return Ended
	}
	return Living
}

// Alive reports whether process pid exists and is not a zombie. It returns true if that
// can't be determined.
func Alive(pid int) bool { return Look(pid, 0) != Ended }

// StartTime returns the start of process pid in clock ticks since boot, 0 if it does not
// exist or that can't be determined. The pid and the start time together identify a
// process even after its end.
func StartTime(pid int) uint64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, start, _ := parseStat(stat)
	return start
}

// parseStat returns fields 3 and 22 of proc_pid_stat(5); the name before them may
// contain any characters.
func parseStat(stat []byte) (state byte, start uint64, ok bool) {
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 {
		return 0, 0, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	return f[0][0], start, err == nil
}

// PidFD opens a descriptor that becomes readable when process pid ends.
// ok is false on kernels before 5.3, which have no pidfds, and where a sandbox forbids
// them.
func PidFD(pid int) (fd int, ok bool, err error) {
	fd, err = unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return -1, false, nil
	}
	return fd, true, err
}

// Stopped reports whether a process is stopped, by a signal or a debugger.
func Stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state, _, ok := parseStat(stat)
	return ok && (state == 'T' || state == 't')
}
