package sys

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A thread that stops the world does not wait for the end of a nap.
func TestNapDoesNotHoldUpTheCollector(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const long = time.Minute
	var word uint32
	begun, ended := make(chan struct{}), make(chan time.Duration)
	go func() {
		runtime.LockOSThread()
		close(begun)
		start := time.Now()
		FutexNap(&word, 0, long)
		ended <- time.Since(start)
	}()
	<-begun
	time.Sleep(10 * time.Millisecond)
	runtime.GC()
	atomic.StoreUint32(&word, 1)
	FutexWake(&word)
	if took := <-ended; took > long/2 {
		t.Errorf("a nap took %v", took)
	}
}
