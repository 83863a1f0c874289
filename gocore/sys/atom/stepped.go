//go:build interleave

package atom

import (
	"sync/atomic"
	"time"
)

// Stepper is told of every access before it happens.
type Stepper interface {
	// Step returns when the calling thread may make its next access.
	Step()
	// Sleep blocks the calling thread until Wake(p) or a time-out that the
	// explorer chooses; it returns at once if *p != v.
	Sleep(p *uint32, v uint32)
	// Wake makes the sleepers on p runnable.
	Wake(p *uint32)
}

// Explorer is the stepper of the test that runs; nil outside of one.
var Explorer Stepper

func step() {
	if Explorer != nil {
		Explorer.Step()
	}
}

func Load32(p *uint32) uint32          { step(); return atomic.LoadUint32(p) }
func Store32(p *uint32, v uint32)      { step(); atomic.StoreUint32(p, v) }
func Add32(p *uint32, d uint32) uint32 { step(); return atomic.AddUint32(p, d) }
func CAS32(p *uint32, old, new uint32) bool {
	step()
	return atomic.CompareAndSwapUint32(p, old, new)
}
func Swap32(p *uint32, v uint32) uint32 { step(); return atomic.SwapUint32(p, v) }
func Load64(p *uint64) uint64           { step(); return atomic.LoadUint64(p) }
func Store64(p *uint64, v uint64)       { step(); atomic.StoreUint64(p, v) }
func CAS64(p *uint64, old, new uint64) bool {
	step()
	return atomic.CompareAndSwapUint64(p, old, new)
}

func Yield() { step() }

func Wait(p *uint32, v uint32, d time.Duration) (interrupted bool) {
	if Explorer != nil {
		Explorer.Sleep(p, v)
	}
	return false
}

func Wake(p *uint32) {
	if Explorer != nil {
		Explorer.Wake(p)
	}
}
