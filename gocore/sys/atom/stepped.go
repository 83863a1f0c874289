//go:build interleave

package atom

import (
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/sys"
)

// Op is the kind of an access.
type Op uint8

// The accesses.
const (
	OpLoad Op = iota
	OpStore
	OpAdd
	OpCAS
	OpSwap
)

// Stepper is called at every access.
type Stepper interface {
	// Step returns when the calling thread may make the access to p.
	Step(op Op, p unsafe.Pointer)
	// Delay reports whether it keeps a store of size bytes, to make it later.
	Delay(p unsafe.Pointer, size int, v uint64) bool
	// Done is called after the access with its result (of a store, the stored value; of
	// a compare-and-swap, 1 if it swapped) and whether it wrote.
	Done(op Op, p unsafe.Pointer, result uint64, wrote bool)
	// Yield is called by Yield.
	Yield()
	// Sleep blocks the calling thread until Wake(p) or a time-out that the
	// explorer chooses; it returns at once if *p != v.
	Sleep(p *uint32, v uint32)
	// Wake makes the sleepers on p runnable.
	Wake(p *uint32)
}

// Explorer is the stepper of the running test. While it is nil the functions do the same
// as in a normal build.
var Explorer Stepper

// Way is how data is moved.
type Way uint8

// The ways.
const (
	WayRead   Way = iota // by loads of the caller
	WayWrite             // by stores of the caller
	WayKernel            // read by the kernel, in one system call
)

// Data, if not nil, is told of the data that Reads, Writes and Copies are called for.
var Data func(p unsafe.Pointer, n int, way Way)

func data(p unsafe.Pointer, n int, way Way) {
	if Data != nil && n > 0 {
		Data(p, n, way)
	}
}

func step(op Op, p unsafe.Pointer) {
	if Explorer != nil {
		Explorer.Step(op, p)
	}
}

func done(op Op, p unsafe.Pointer, result uint64, wrote bool) {
	if Explorer != nil {
		Explorer.Done(op, p, result, wrote)
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Load32 reads *p.
func Load32(p *uint32) uint32 {
	step(OpLoad, unsafe.Pointer(p))
	v := atomic.LoadUint32(p)
	done(OpLoad, unsafe.Pointer(p), uint64(v), false)
	return v
}

// Store32 writes *p.
func Store32(p *uint32, v uint32) {
	step(OpStore, unsafe.Pointer(p))
	if Explorer == nil || !Explorer.Delay(unsafe.Pointer(p), 4, uint64(v)) {
		atomic.StoreUint32(p, v)
	}
	done(OpStore, unsafe.Pointer(p), uint64(v), true)
}

// Publish32 is Store32.
func Publish32(p *uint32, v uint32) { Store32(p, v) }

// Publish64 is Store64.
func Publish64(p *uint64, v uint64) { Store64(p, v) }

// Add32 adds d and returns the new value.
func Add32(p *uint32, d uint32) uint32 {
	step(OpAdd, unsafe.Pointer(p))
	v := atomic.AddUint32(p, d)
	done(OpAdd, unsafe.Pointer(p), uint64(v), true)
	return v
}

// CAS32 replaces *p by new if it is old, and reports whether it did.
func CAS32(p *uint32, old, new uint32) bool {
	step(OpCAS, unsafe.Pointer(p))
	ok := atomic.CompareAndSwapUint32(p, old, new)
	done(OpCAS, unsafe.Pointer(p), bit(ok), ok)
	return ok
}

// Swap32 writes v and returns the old value.
func Swap32(p *uint32, v uint32) uint32 {
	step(OpSwap, unsafe.Pointer(p))
	old := atomic.SwapUint32(p, v)
	done(OpSwap, unsafe.Pointer(p), uint64(old), true)
	return old
}

// Load64 reads *p.
func Load64(p *uint64) uint64 {
	step(OpLoad, unsafe.Pointer(p))
	v := atomic.LoadUint64(p)
	done(OpLoad, unsafe.Pointer(p), v, false)
	return v
}

// Store64 writes *p.
func Store64(p *uint64, v uint64) {
	step(OpStore, unsafe.Pointer(p))
	if Explorer == nil || !Explorer.Delay(unsafe.Pointer(p), 8, v) {
		atomic.StoreUint64(p, v)
	}
	done(OpStore, unsafe.Pointer(p), v, true)
}

// CAS64 replaces *p by new if it is old, and reports whether it did.
func CAS64(p *uint64, old, new uint64) bool {
	step(OpCAS, unsafe.Pointer(p))
	ok := atomic.CompareAndSwapUint64(p, old, new)
	done(OpCAS, unsafe.Pointer(p), bit(ok), ok)
	return ok
}

// Yield gives the processor to another runnable thread.
func Yield() {
	if Explorer != nil {
		Explorer.Yield()
		return
	}
	sys.Yield()
}

// Pause leaves the processor for d, see sys.Pause. The explorer takes it for a Yield.
func Pause(d time.Duration) {
	if Explorer != nil {
		Explorer.Yield()
		return
	}
	sys.Pause(d)
}

// Wait sleeps while *p == v, at most d. interrupted reports whether a signal arrived.
func Wait(p *uint32, v uint32, d time.Duration) (interrupted bool) {
	if Explorer != nil {
		Explorer.Sleep(p, v)
		return false
	}
	return sys.FutexWait(p, v, d) == eintr
}

// Nap is Wait for about a millisecond at most, see sys.FutexNap.
func Nap(p *uint32, v uint32, d time.Duration) {
	if Explorer != nil {
		Explorer.Sleep(p, v)
		return
	}
	sys.FutexNap(p, v, d)
}

// Wake wakes all threads that sleep on p.
func Wake(p *uint32) {
	if Explorer != nil {
		Explorer.Wake(p)
		return
	}
	sys.FutexWake(p)
}

// Reads tells Data that the caller reads n bytes at p, which other ranks write.
func Reads(p unsafe.Pointer, n int) { data(p, n, WayRead) }

// Writes tells Data that the caller writes n bytes at p, which other ranks read.
func Writes(p unsafe.Pointer, n int) { data(p, n, WayWrite) }

// Copies tells Data that the kernel reads n bytes at p, in another rank's memory, for the caller.
func Copies(p unsafe.Pointer, n int) { data(p, n, WayKernel) }
