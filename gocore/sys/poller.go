package sys

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pollerDescriptors is how many descriptors Go's network poller needs: one of epoll, and
// an eventfd.
const pollerDescriptors = 2

// StartPoller starts Go's network poller, which otherwise the first timer or file
// starts. Go ends the whole process if it can't start it, so this function checks first
// that there are enough descriptors. It must be called before anything else of the core
// is used.
func StartPoller() error {
	var taken [pollerDescriptors]int
	for i := range taken {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			for _, fd := range taken[:i] {
				unix.Close(fd)
			}
			var limit unix.Rlimit
			_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
			return fmt.Errorf("start Go's network poller: it needs %d descriptors, and there are %d: %w (the limit is %d: ulimit -n raises it)",
				pollerDescriptors, i, os.NewSyscallError("eventfd", err), limit.Cur)
		}
		taken[i] = fd
	}
	for _, fd := range taken {
		unix.Close(fd)
	}
	time.Sleep(time.Nanosecond)
	return nil
}
