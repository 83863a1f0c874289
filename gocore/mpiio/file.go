package mpiio

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// The access modes, numbered as in the MPI 5.0 ABI.
const (
	ModeCreate        = 1
	ModeRdonly        = 2
	ModeWronly        = 4
	ModeRdwr          = 8
	ModeDeleteOnClose = 16
	ModeUniqueOpen    = 32
	ModeExcl          = 64
	ModeAppend        = 128
	ModeSequential    = 256
	modeAll           = 511
)

// Hints are the info hints for accesses to a file; those of rank 0 are in effect.
type Hints struct {
	Buffer      int64 // bytes of an aggregator's window
	Aggregators int64 // 0: automatic
	Collective  int64 // Automatic, Enabled, Disabled: two phases
	Perm        int64 // of a file that is created
}

// Values of Hints.Collective: whether collective accesses have two phases.
const (
	Automatic = iota
	Enabled
	Disabled
)

// File is one rank's side of an open file.
type File struct {
	Path  string
	Amode int
	Comm  *coll.Comm // the file's own
	Cores int        // of the host: limits the number of aggregators
	Wake  func()     // wakes the sleeping threads of this process
	// Pointers is that of the process. SameNode reports whether ranks share memory.
	Pointers *Pointers
	SameNode func(world []int) bool

	fd     int
	shared *sys.Segment // has the shared file pointer if the ranks share memory
	word   *int64       // else the pointer, at rank 0
	far    bool         // the pointer is at rank 0
	turn   atomic.Bool  // held by the operation that locks, in atomic mode

	mu     sync.Mutex
	hints  Hints
	view   *View
	pos    int64 // individual file pointer, in etypes
	atomic bool
	last   *Op // the latest collective
	ops    int // operations that use the descriptor
	closed bool

	buffers *buffers // of the latest access in two phases

	texts map[string]string // see Op.Text, by the name of the call
}

var byteType = dtype.ByName("BYTE")

func raw(b []byte) p2p.Buf {
	return p2p.Buf{Addr: unsafe.Pointer(unsafe.SliceData(b)), Count: len(b), Type: byteType}
}

// name returns the file's name for errors.
func (f *File) name() string { return f.Path }

// short returns the file's name for wait records, which have little space.
func (f *File) short() string { return filepath.Base(f.Path) }

// take keeps the descriptor open for an operation. It returns false if it is closed.
func (f *File) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.ops++
	return true
}

// give ends the use of the descriptor that take began.
func (f *File) give() {
	f.mu.Lock()
	f.ops--
	last := f.closed && f.ops == 0
	f.mu.Unlock()
	if last {
		_ = f.release()
	}
}

// Drop closes this rank's descriptor as soon as no operation uses it.
func (f *File) Drop() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	idle := f.ops == 0
	f.mu.Unlock()
	if idle {
		return f.release()
	}
	return nil
}

func (f *File) release() error {
	if f.shared != nil {
		_ = f.shared.Close()
		f.shared = nil
	}
	if f.word != nil {
		f.Pointers.serve(f.Comm.Chan.Ctx, nil)
	}
	if f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	if err := unix.Close(fd); err != nil && err != unix.EINTR {
		return err
	}
	return nil
}

// View returns the view in effect.
func (f *File) View() *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// Hints returns the hints in effect.
func (f *File) Hints() Hints {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hints
}

// Atomic reports whether the file is in atomic mode.
func (f *File) Atomic() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.atomic
}

// Size returns the length of the file in bytes.
func (f *File) Size() (int64, *errs.Error) {
	var st unix.Stat_t
	if !f.take() {
		return 0, errs.New(errs.File, "Get_size: %s has been closed", f.name())
	}
	defer f.give()
	if err := again(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return 0, failure("Get_size", f.name(), err)
	}
	return st.Size, nil
}

// noPointer returns an error, for calls with offsets and individual pointers, if the file
// is in sequential mode.
func (f *File) noPointer(call string) *errs.Error {
	if f.Amode&ModeSequential != 0 {
		return errs.New(errs.UnsupportedOperation, "%s: %s was opened with MODE_SEQUENTIAL, which has only the shared file pointer: use Read_shared, Write_shared and the ordered calls",
			call, f.name())
	}
	return nil
}

// Whence of Seek, numbered as in the MPI 5.0 ABI.
const (
	SeekSet = 600
	SeekCur = 602
	SeekEnd = 604
)

// target returns the destination of a seek, in etypes.
func (f *File) target(call string, offset int64, whence int, now int64) (int64, *errs.Error) {
	switch whence {
	case SeekSet:
		now = 0
	case SeekCur:
	case SeekEnd:
		size, e := f.Size()
		if e != nil {
			return 0, e
		}
		v := f.View()
		now = (v.Before(size) + v.Etype - 1) / v.Etype
	default:
		return 0, errs.New(errs.Arg, "%s: whence is %d; it must be SEEK_SET, SEEK_CUR or SEEK_END", call, whence)
	}
	if to := now + offset; to >= 0 {
		return to, nil
	}
	return 0, errs.New(errs.Arg, "%s: the offset %d leads before the beginning of %s's view (it counts from %d)", call, offset, f.name(), now)
}

// SetPosition moves the individual file pointer.
func (f *File) SetPosition(offset int64, whence int) *errs.Error {
	if e := f.noPointer("Seek"); e != nil {
		return e
	}
	now, _ := f.Position()
	to, e := f.target("Seek", offset, whence, now)
	if e != nil {
		return e
	}
	f.mu.Lock()
	f.pos = to
	f.mu.Unlock()
	return nil
}

// Position returns the individual file pointer, in etypes.
func (f *File) Position() (int64, *errs.Error) {
	if e := f.noPointer("Get_position"); e != nil {
		return 0, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pos, nil
}

// SharedPosition returns the shared file pointer, in etypes.
func (f *File) SharedPosition() (int64, *errs.Error) {
	if e := f.needShared("Get_position_shared"); e != nil {
		return 0, e
	}
	defer f.give()
	return f.loadShared()
}

// needShared takes the file for a call that uses the shared file pointer. It returns an
// error if there is none.
func (f *File) needShared(call string) *errs.Error {
	if !f.take() {
		return errs.New(errs.File, "%s: %s has been closed", call, f.name())
	}
	if f.shared == nil && !f.far {
		f.give()
		return errs.New(errs.UnsupportedOperation, "%s: the ranks that opened %s can't share memory, which the shared file pointer needs (they must run as the same user, and /proc must be mounted)",
			call, f.name())
	}
	return nil
}

// ByteOffset returns the offset in the file of an offset in etypes.
func (f *File) ByteOffset(offset int64) (int64, *errs.Error) {
	if offset < 0 {
		return 0, errs.New(errs.Arg, "Get_byte_offset: the offset %d is negative", offset)
	}
	v := f.View()
	return v.Pos(offset * v.Etype), nil
}
