package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readLimit bounds the wait for whoever reads what this process wrote.
	readLimit = 300 * time.Millisecond
	// forwardDelay is what a process manager gets to pass on what it has read:
	// through a proxy, to its own output.
	forwardDelay = 30 * time.Millisecond
)

// letOutputPass waits until what this process wrote to standard output and
// error was read, as far as they are pipes. A process manager that is told to
// abort ends at once, and drops what it has not read: the traceback, mostly.
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
