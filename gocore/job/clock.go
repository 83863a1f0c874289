package job

import (
	"time"

	"golang.org/x/sys/unix"
)

// began and beganNanos are the same moment on two clocks: Go's, which is read without a
// system call, and CLOCK_MONOTONIC, which all processes share.
var began, beganNanos = func() (time.Time, int64) {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Now(), ts.Nano()
}()

// Now returns the time of CLOCK_MONOTONIC in nanoseconds, the clock of
// WaitRecord.Since.
func Now() int64 {
	if t, ok := simulated(); ok {
		return t
	}
	return beganNanos + int64(time.Since(began))
}
