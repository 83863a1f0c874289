//go:build !interleave

package atom

import (
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/sys"
)

// Load32 reads *p.
func Load32(p *uint32) uint32 { return atomic.LoadUint32(p) }

// Store32 writes *p; on x86-64 it is a full barrier.
func Store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

// Add32 adds d and returns the new value.
func Add32(p *uint32, d uint32) uint32 { return atomic.AddUint32(p, d) }

// CAS32 replaces *p by new if it is old, and reports whether it did.
func CAS32(p *uint32, old, new uint32) bool { return atomic.CompareAndSwapUint32(p, old, new) }

// Swap32 writes v and returns the old value.
func Swap32(p *uint32, v uint32) uint32 { return atomic.SwapUint32(p, v) }

// Load64 reads *p.
func Load64(p *uint64) uint64 { return atomic.LoadUint64(p) }

// Store64 writes *p; on x86-64 it is a full barrier.
func Store64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// CAS64 replaces *p by new if it is old, and reports whether it did.
func CAS64(p *uint64, old, new uint64) bool { return atomic.CompareAndSwapUint64(p, old, new) }

// Yield gives the processor to another runnable thread.
func Yield() { sys.Yield() }

// Pause leaves the processor for d, see sys.Pause.
func Pause(d time.Duration) { sys.Pause(d) }

// Wait sleeps while *p == v, at most d. interrupted reports whether a signal arrived.
func Wait(p *uint32, v uint32, d time.Duration) (interrupted bool) {
	return sys.FutexWait(p, v, d) == eintr
}

// Nap is Wait for about a millisecond at most, see sys.FutexNap.
func Nap(p *uint32, v uint32, d time.Duration) { sys.FutexNap(p, v, d) }

// Wake wakes all threads that sleep on p.
func Wake(p *uint32) { sys.FutexWake(p) }

// Reads, Writes and Copies tell a model of the machine, in builds with the tag "interleave", of data that other ranks
// write or read: n bytes at p that the caller reads by loads, writes by stores, or has read by the kernel, in
// one system call.
func Reads(unsafe.Pointer, int) {}

// Writes is described with Reads.
func Writes(unsafe.Pointer, int) {}

// Copies is described with Reads.
func Copies(unsafe.Pointer, int) {}
