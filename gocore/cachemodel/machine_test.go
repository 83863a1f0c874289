package cachemodel

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// pair runs first and second at the same time, on two processors, and returns what first returns.
func pair(b *testing.B, first func() time.Duration, second func()) time.Duration {
	b.Helper()
	cpus := sys.Allowed()
	if len(cpus) < 2 {
		b.Skip("there is only one processor")
	}
	on := func(cpu int) {
		runtime.LockOSThread() // and not unlocked: the thread ends with its goroutine
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			b.Error(err)
		}
	}
	took, done := make(chan time.Duration), make(chan bool)
	go func() {
		on(cpus[0])
		took <- first()
	}()
	go func() {
		on(cpus[1])
		second()
		close(done)
	}()
	d := <-took
	<-done
	return d
}

// await returns when *p is v.
func await(p *uint32, v uint32) {
	for i := 0; atomic.LoadUint32(p) != v; i++ {
		if i > 1<<20 {
			sys.Yield() // the other thread may have no processor
		}
	}
}

// BenchmarkTransfer measures what the model takes as Machine.Transfer: two processors hand a line to and fro. A round trip has four
// transfers, a load and a store on each side. The median of many short runs is reported, since others may use the machine.
func BenchmarkTransfer(b *testing.B) {
	const trips = 2000
	var times []float64
	for b.Loop() {
		word := &make([]struct {
			_    [64]byte
			word uint32
			_    [60]byte
		}, 1)[0].word
		d := pair(b, func() time.Duration {
			begin := time.Now()
			for i := range uint32(trips) {
				atomic.SwapUint32(word, 2*i+1)
				await(word, 2*i+2)
			}
			return time.Since(begin)
		}, func() {
			for i := range uint32(trips) {
				await(word, 2*i+1)
				atomic.SwapUint32(word, 2*i+2)
			}
		})
		times = append(times, float64(d)/trips/4)
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "ns/transfer")
	b.ReportMetric(times[len(times)/10], "ns/transfer-p10")
}

// BenchmarkBytes measures what the model takes as Machine.Byte: one processor copies what another has just written.
func BenchmarkBytes(b *testing.B) {
	for _, n := range []int{512, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rounds := max(20, 4<<20/n)
			var times []float64
			for b.Loop() {
				from, to := make([]byte, n+64), make([]byte, n+64)
				turn := new(uint32)
				var copying time.Duration
				pair(b, func() time.Duration {
					for i := range uint32(rounds) {
						for k := range n / 8 {
							*(*uint64)(unsafe.Pointer(&from[8*k])) = uint64(i)
						}
						atomic.SwapUint32(turn, 2*i+1)
						await(turn, 2*i+2)
					}
					return 0
				}, func() {
					for i := range uint32(rounds) {
						await(turn, 2*i+1)
						begin := time.Now()
						fabric.Copy(unsafe.Pointer(&to[0]), unsafe.Pointer(&from[0]), n)
						copying += time.Since(begin)
						atomic.SwapUint32(turn, 2*i+2)
					}
				})
				times = append(times, float64(copying)/float64(rounds)/float64(n))
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2], "ns/B")
		})
	}
}
