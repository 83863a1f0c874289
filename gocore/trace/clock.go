package trace

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Clocks of records.
const (
	ClockMonotonic = 0 // nanoseconds
	ClockTSC       = 1 // ticks of the time-stamp counter, or of arm64's virtual counter
)

// clockHere returns the fastest clock of this machine that is reliable.
func clockHere() uint32 {
	switch runtime.GOARCH {
	case "arm64":
		return ClockTSC // architecturally constant
	case "amd64":
		text, err := os.ReadFile("/proc/cpuinfo")
		if err != nil {
			return ClockMonotonic
		}
		_, flags, _ := strings.Cut(string(text), "\nflags")
		flags, _, _ = strings.Cut(flags, "\n")
		if strings.Contains(flags, " constant_tsc") && strings.Contains(flags, " nonstop_tsc") {
			return ClockTSC
		}
	}
	return ClockMonotonic
}

func nanos() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}

// pair returns one moment by the part's clock and in nanoseconds: the closest of
// several attempts, since the process may be delayed between the two.
func (p *Part) pair() (tick, nano uint64) {
	best := ^uint64(0)
	for range 5 {
		before := p.Now()
		n := nanos()
		after := p.Now()
		if after-before < best {
			best, tick, nano = after-before, before+(after-before)/2, n
		}
	}
	return tick, nano
}

// Pair returns this moment by the part's clock and in nanoseconds.
func (p *Part) Pair() (tick, nano uint64) { return p.pair() }
