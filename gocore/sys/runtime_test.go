package sys

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A thread that leaves Go while the world is being stopped must not hold it up until it
// comes back. Without the timer of PrepareRuntime, four of these on two cores meet it every
// few seconds: go test -c, and run the test with -test.count=60 four times at once.
func TestTheWorldStopsWithoutAThreadThatHasLeftGo(t *testing.T) {
	require.NoError(t, PrepareRuntime())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	var ends [2]int
	require.NoError(t, unix.Pipe2(ends[:], unix.O_CLOEXEC))
	away := 20 * time.Second
	done := make(chan struct{})
	go func() {
		defer close(done)
		word := make([]byte, 64)
		for {
			fds := []unix.PollFd{{Fd: int32(ends[0]), Events: unix.POLLIN}}
			if n, _ := unix.Poll(fds, int(away.Milliseconds())); n == 0 {
				continue
			}
			if n, _ := unix.Read(ends[0], word); n == 0 {
				return
			}
		}
	}()
	var stats runtime.MemStats
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		_, err := unix.Write(ends[1], []byte{1})
		require.NoError(t, err)
		for k := rand.IntN(3000); k > 0; k-- {
		}
		begin := time.Now()
		runtime.ReadMemStats(&stats) // stops the world
		assert.Less(t, time.Since(begin), away/2)
	}
	unix.Close(ends[1])
	<-done
	unix.Close(ends[0])
}
