package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readLimit bounds the wait for the reader of this process's output.
	readLimit = 3 * time.Second
	// forwardDelay is the time for a process manager to pass on the output that it
	// has read: through a proxy, to its own output.
	forwardDelay = 100 * time.Millisecond
)

// letOutputPass waits until this process's standard output and error have been read, if
// they are pipes. A process manager that gets an abort ends at once, and drops the
// output that it has not read, which often is the traceback.
func letOutputPass() {
	end := time.Now().Add(readLimit)
	piped := false
	for fd := 1; fd <= 2; fd++ {
		for {
			unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
			if err != nil {                                   // no pipe
				break
			}
			piped = true
			if unread == 0 || time.Now().After(end) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	if piped {
		time.Sleep(forwardDelay)
	}
}
