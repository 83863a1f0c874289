package rdmaapi

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Closing a queue wakes a thread in Wait, at whatever point of Wait it is.
func TestAQueueIsClosedWhileAThreadBeginsToWait(t *testing.T) {
	ctx := must(t, Open("tcp", ""))
	defer Close(ctx)
	late := time.AfterFunc(2*time.Minute, func() { panic("a thread waits for a queue that was closed") })
	defer late.Stop()
	for i := range 300 {
		cq := must(t, CreateCQ(ctx, 8))
		var all sync.WaitGroup
		all.Add(1)
		go func() {
			defer all.Done()
			Wait(cq, int64(10*time.Minute/time.Microsecond))
		}()
		for end := time.Now().Add(time.Duration(i%32) * time.Microsecond); time.Now().Before(end); {
		}
		must(t, Close(cq))
		all.Wait()
	}
}

// A reset that comes after Close must not create anything on the closed device.
func TestAQueuePairIsClosedWhileItIsReset(t *testing.T) {
	for _, by := range []string{"tcp", "ofi"} {
		t.Run(by, func(t *testing.T) {
			if h := Open(by, ""); h < 0 {
				t.Skip(ErrorOf(h))
			} else {
				Close(h)
			}
			for range 8 {
				ctx := must(t, Open(by, ""))
				cq := must(t, CreateCQ(ctx, 8))
				qp := must(t, CreateQP(must(t, AllocPD(ctx)), cq, cq, 8, 8, 0))
				var all sync.WaitGroup
				for range 2 {
					all.Add(1)
					go func() {
						defer all.Done()
						for PairReset(qp) == 0 {
						}
					}()
				}
				time.Sleep(time.Millisecond)
				must(t, Close(ctx))
				all.Wait()
				pairs.RLock()
				assert.Empty(t, pairs.all)
				pairs.RUnlock()
			}
		})
	}
}
