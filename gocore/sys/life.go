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

// Life is what could be found out about a process.
type Life int

// The lives of a process.
const (
	Unknown Life = iota // nothing now, for want of descriptors, memory or permission
	Living
	Ended // it does not exist, or is a zombie, or its number is another's by now
)

// Look reports whether the process that has number pid and start time age, 0 if that
// is not known, lives. It never takes a process for dead that it can't look at.
func Look(pid int, age uint64) Life {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	state, start, ok := parseStat(stat)
	if err != nil || !ok {
		// Not only where that file is absent: it needs a descriptor, memory, and /proc.
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

// Alive reports whether process pid exists and is not a zombie. Who can't find that
// out takes it to be alive.
func Alive(pid int) bool { return Look(pid, 0) != Ended }

// StartTime is the start of process pid in clock ticks since boot, 0 if it does not
// exist or that can't be found out. Together with the pid it names a process for good.
func StartTime(pid int) uint64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, start, _ := parseStat(stat)
	return start
}

// parseStat reads fields 3 and 22 of proc_pid_stat(5); the name before them may
// contain anything.
func parseStat(stat []byte) (state byte, start uint64, ok bool) {
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 {
		return 0, 0, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	return f[0][0], start, err == nil
}

// PidFD opens a descriptor that becomes readable when process pid ends.
// ok is false on kernels before 5.3, which have none, and where a sandbox forbids it.
func PidFD(pid int) (fd int, ok bool, err error) {
	fd, err = unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return -1, false, nil
	}
	return fd, true, err
}
