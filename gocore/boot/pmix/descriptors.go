package pmix

import (
	"os"
	"strconv"
	"syscall"
)

// descriptors returns the open descriptors of this process.
func descriptors() map[int]bool {
	open := map[int]bool{}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return open
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			open[fd] = true
		}
	}
	return open
}

// withhold marks the descriptors that are new since before close-on-exec. libpmix does not
// do so with its connection to the server and a file of its own: a child that outlives
// the rank would keep the connection open, and the server would not notice the rank's end.
func withhold(before map[int]bool) {
	for fd := range descriptors() {
		if !before[fd] {
			syscall.CloseOnExec(fd)
		}
	}
}
