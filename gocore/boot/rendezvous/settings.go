package rendezvous

import (
	"fmt"
	"strconv"
	"time"

	"gormapy/gocore/settings"
)

// The settings of this package.
var (
	Address = settings.Add(settings.Setting{Name: "GORMAPY_RENDEZVOUS", Reader: settings.ByRanks,
		Meaning: "host:port of rank 0, for ranks that are started with RANK and WORLD_SIZE and no launcher; without it MASTER_ADDR and MASTER_PORT"})
	Secret = settings.Add(settings.Setting{Name: "GORMAPY_SECRET", Secret: true, Reader: settings.ByRanks,
		Meaning: "what ranks without a launcher prove to know to each other, the same for all of a job; without it the job's identity, which guards against mistakes, not against a hostile neighbour"})
	Timeout = settings.Add(settings.Setting{Name: "GORMAPY_RENDEZVOUS_TIMEOUT", Default: "60", Reader: settings.ByRanks,
		Meaning: "seconds that ranks without a launcher wait for each other at the start"})
)

// timeout returns the time-out in effect.
func timeout() (time.Duration, error) {
	seconds, err := strconv.ParseFloat(Timeout.Value(), 64)
	if err != nil || !(seconds > 0 && seconds <= 1e6) {
		return 0, fmt.Errorf("%s is %q: it must be a number of seconds, for example %s", Timeout.Name, Timeout.Value(), Timeout.Default)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
