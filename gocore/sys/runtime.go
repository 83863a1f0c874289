package sys

import (
	"fmt"
	"os"
	"runtime/metrics"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pollerDescriptors is how many descriptors Go's network poller needs: one of epoll, and
// an eventfd.
const pollerDescriptors = 2

// The timer that PrepareRuntime keeps pending: all of Go can stand still in a process for this long.
const (
	seldom = 2 * time.Second        // in a process that has little to collect: it is not to be woken in vain
	often  = 100 * time.Millisecond // while collections follow each other
)

// PrepareRuntime prepares Go's runtime for a process in which most threads are C's. It must
// be called before anything else of the core is used.
//
// It starts Go's network poller, which otherwise the first timer or file starts. Go ends the
// whole process if it can't start it, so this function checks first that there are enough
// descriptors.
//
// And it keeps a timer pending. Since Go 1.26 a thread that leaves Go, for a system call or
// for C, looks whether the world is to be stopped before it gives up its processor
// (reentersyscall in runtime/proc.go): a collector that begins in between, and takes the
// processors of all threads that have left, waits for this one until it comes back. Only the
// runtime's monitor (sysmon) would take the processor, but it sleeps while the world is being
// stopped, for a minute or until the next timer is due. Meanwhile every call of the process
// waits, and the thread that left may need the interpreter's lock, which a caller holds.
func PrepareRuntime() error {
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
	keepTimer()
	return nil
}

var keepTimer = sync.OnceFunc(func() {
	go func() {
		cycles := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
		for before := uint64(0); ; {
			next := seldom
			if metrics.Read(cycles); cycles[0].Value.Uint64() != before {
				before, next = cycles[0].Value.Uint64(), often
			}
			time.Sleep(next)
		}
	}()
})
