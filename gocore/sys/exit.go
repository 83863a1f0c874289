package sys

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidfdInfo is struct pidfd_info of linux/pidfd.h, since Linux 6.13. The exit status is there
// since Linux 6.15, once the parent has reaped the process.
type pidfdInfo struct {
	mask, cgroup    uint64
	pid, tgid, ppid uint32
	ids             [8]uint32
	status          int32
}

const (
	pidfdGetInfo  = 0xC040FF0B // PIDFD_GET_INFO
	pidfdInfoExit = 1 << 3     // PIDFD_INFO_EXIT
)

// ExitStatus returns the wait status of a process that has ended and is no child of this one,
// by its pidfd, or while it is a zombie. It waits up to d for one of these. It returns false if
// the kernel does not tell.
func ExitStatus(pid, fd int, d time.Duration) (ws unix.WaitStatus, ok bool) {
	for end := time.Now().Add(d); ; time.Sleep(time.Millisecond) {
		if ws, ok := zombieStatus(pid); ok {
			return ws, true
		}
		info := pidfdInfo{mask: pidfdInfoExit}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		if errno == 0 && info.mask&pidfdInfoExit != 0 {
			return unix.WaitStatus(info.status), true
		}
		if errno != 0 && errno != unix.ESRCH || time.Now().After(end) {
			return 0, false
		}
	}
}

// zombieStatus returns the wait status of a zombie. The kernel tells processes of the same
// user.
func zombieStatus(pid int) (ws unix.WaitStatus, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the third on
	if len(fields) < 50 || fields[0][0] != 'Z' {
		return 0, false
	}
	n, err := strconv.Atoi(string(fields[49]))
	return unix.WaitStatus(n), err == nil && n != 0 // 0: it ended well, or the kernel does not tell
}
