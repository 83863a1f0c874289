package cachemodel

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
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
	until(func() bool { return atomic.LoadUint32(p) == v })
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

// BenchmarkTwoRanks measures calls of two ranks that do nothing else, by two processors of this machine, to compare them with
// what the model predicts: what the calls themselves take, and transfers.
func BenchmarkTwoRanks(b *testing.B) {
	const calls = 5000
	long := dtype.ByName("INT64_T")
	for _, kind := range []coll.Kind{coll.KindBarrier, coll.KindBcast, coll.KindReduce, coll.KindAllreduce, coll.KindAllgather} {
		b.Run(kind.String(), func(b *testing.B) {
			var times []float64
			for b.Loop() {
				seg, err := job.Create(2)
				require.NoError(b, err)
				rank := func(i int) func() time.Duration {
					e := engine.New(seg, i, engine.Options{})
					c := &coll.Comm{Chan: p2p.New(e).Open(2, i, []int{0, 1}), Rank: i, Size: 2}
					c.UseBlock(e, job.WorldBlock)
					mem := make([]int64, 4)
					a := coll.Args{Call: coll.Call{Kind: kind, Bytes: 8, Elem: long.Kind()}}
					a.Send, a.Recv = p2p.Buf{Addr: unsafe.Pointer(&mem[0]), Count: 1, Type: long}, p2p.Buf{Addr: unsafe.Pointer(&mem[1]), Count: 1, Type: long}
					if kind == coll.KindReduce || kind == coll.KindAllreduce {
						a.Op = op.Sum
					}
					return func() time.Duration {
						begin := time.Now()
						for k := range calls {
							if kind == coll.KindBarrier {
								if !c.Bar.Arrive() {
									until(c.Bar.Passed)
								}
								continue
							}
							if kind.Rooted() {
								a.Root = k % 2
							}
							s := c.BoardOp(&a)
							if !s.Advance() {
								until(s.AdvanceFunc)
							}
							s.Release()
						}
						return time.Since(begin)
					}
				}
				first, second := rank(0), rank(1)
				times = append(times, float64(pair(b, first, func() { second() }))/calls)
				require.NoError(b, seg.Close())
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2], "ns/call")
			b.ReportMetric(times[len(times)/10], "ns/call-p10")
		})
	}
}

// until returns when done returns true.
func until(done func() bool) {
	for i := 0; !done(); i++ {
		if i > 1<<20 {
			sys.Yield() // the other thread may have no processor
		}
	}
}
