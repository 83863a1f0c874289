package rma

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Desc is what the hot calls need of a window. It lies outside Go's heap, so
// that the C shim reads it too; pybind/shim/gormapy.h has the same layout. Go
// writes it when the window is made and when an epoch changes.
type Desc struct {
	Handle int64 // the window's handle, 0 once freed
	Size   int32 // ranks
	Flags  uint32
	Open   uint32 // openFence or openLockAll: every target may be accessed
	_      uint32
}

// Values of Desc.Open.
const (
	openFence uint32 = iota + 1
	openLockAll
)

// Flags of Desc.
const (
	// DescAtOnce: no target is reached by messages, so an operation is complete
	// when its call returns and a flush has nothing to do.
	DescAtOnce uint32 = 1 << iota
)

// Target is what the hot calls need of one rank; it follows Desc.
type Target struct {
	Base  unsafe.Pointer // nil: not direct
	Bytes int64
	Unit  int64
	Open  uint32 // TargetLocked, TargetStarted: what lets this process access it
	Flags uint32
	// Of a target that is reached by copies of the kernel: its process, and where
	// its part lies there.
	Remote uint64
	PID    int64
	Ended  *uint32 // of the job's record: not 0 once PID may be another process's
}

// Values of Target.Open, which are added.
const (
	TargetLocked uint32 = 1 << iota
	TargetStarted
)

// Target.Flags, which are added.
const (
	// TargetAtomic: the part lies in shared memory that every rank of the window
	// maps, see "One arbiter".
	TargetAtomic uint32 = 1 << iota
	// TargetCopy: the kernel has copied to or from there since the last fence, so
	// that the target is Settled, and the hot calls may have it copy, too.
	TargetCopy
)

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

// newDesc takes a zeroed descriptor for n ranks. Its memory is never unmapped,
// only used again: a stale pointer finds another handle, not a fault.
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
