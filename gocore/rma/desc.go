package rma

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/engine"
)

// Desc describes a window to the hot calls. It lies outside Go's heap, so that the C
// shim can read it, too; pybind/shim/gormapy.h has the same layout. Go writes it when
// the window is made and when an epoch changes.
type Desc struct {
	Handle int64 // the window's handle, 0 once freed
	Size   int32 // ranks
	Flags  uint32
	Open   uint32 // openFence or openLockAll: every target may be accessed

	// See bundle.go.
	Turn    uint32 // changes with every call that completes operations, and with every call that enters Go
	Failed  uint32 // not 0: BundleFailure has an error to return
	Bundles uint32 // how many are not empty
	Begun   uint32 // how many have been begun in all
	Watched uint32 // not 0: watch looks for bundles that nothing completes
	_       uint32
}

// Values of Desc.Open.
const (
	openFence uint32 = iota + 1
	openLockAll
)

// Flags of Desc.
const (
	// DescCompleteOnReturn: all targets have the path direct or copy, and no network does atomics,
	// so an operation is complete when its call returns, and a flush has nothing to do.
	DescCompleteOnReturn uint32 = 1 << iota
)

// Target describes one rank's part to the hot calls. Size of them follow Desc.
type Target struct {
	Base  unsafe.Pointer // nil: not direct
	Bytes int64
	Unit  int64
	Open  uint32 // TargetLocked, TargetStarted: the epochs in which this process may access it
	Flags uint32
	// For the path copy: the address of the part in the target's process, and that
	// process.
	Remote uint64
	PID    int64
	Ended  *uint32    // in the job's record of the rank: not 0 once PID may be another process's
	Notify *NotifyBox // nil: the rank is on another node
	Bundle *Bundle    // see bundle.go; nil: there has been none
	Turn   uint32     // what Desc.Turn was at the last short put that was written at once
	_      uint32
}

// Values of Target.Open, which are combined.
const (
	TargetLocked uint32 = 1 << iota
	TargetStarted
)

// Values of Target.Flags, which are combined.
const (
	// TargetAtomic: the part lies in shared memory that every rank of the window
	// maps, see "One arbiter".
	TargetAtomic uint32 = 1 << iota
	// TargetCopy: the kernel has copied to or from the part since the last fence, so the
	// target is Settled, and the hot calls may copy in the same way.
	TargetCopy
	// TargetMessages: operations on the part are messages. A put of at most ShortPut bytes and an accumulate
	// do not use the origin's memory after their call.
	TargetMessages
)

// ShortPut is the length up to which the data of a put by message is copied in its call.
const ShortPut = engine.CopyMax

const (
	descBytes   = int(unsafe.Sizeof(Desc{}))
	targetBytes = int(unsafe.Sizeof(Target{}))
)

// Target returns the entry of rank r, which must be in range.
func (d *Desc) Target(r int) *Target {
	return (*Target)(unsafe.Add(unsafe.Pointer(d), descBytes+r*targetBytes))
}

var descs struct {
	sync.Mutex
	free map[int][]*Desc // by mapped size
}

// newDesc returns a zeroed descriptor for n ranks. Its memory is never unmapped, only
// used again, so a stale pointer finds another handle and does not fault.
func newDesc(n int) (*Desc, error) {
	size := (descBytes + n*targetBytes + 4095) / 4096 * 4096
	descs.Lock()
	defer descs.Unlock()
	if l := descs.free[size]; len(l) > 0 {
		d := l[len(l)-1]
		descs.free[size] = l[:len(l)-1]
		clear(unsafe.Slice((*byte)(unsafe.Pointer(d)), size))
		return d, nil
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	return (*Desc)(unsafe.Pointer(&mem[0])), nil
}

func (d *Desc) release() {
	size := (descBytes + int(d.Size)*targetBytes + 4095) / 4096 * 4096
	d.Handle, d.Open = 0, 0
	descs.Lock()
	if descs.free == nil {
		descs.free = map[int][]*Desc{}
	}
	descs.free[size] = append(descs.free[size], d)
	descs.Unlock()
}
