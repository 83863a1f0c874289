package mpi

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// Window is a window with its own duplicate of the communicator, on which it
// synchronises.
type Window struct {
	*rma.Win
	comm       *Comm
	commHandle int64

	// For the waits of fences. They are made once, so that a fence allocates nothing.
	label        string
	passed       func() bool
	checkBarrier func() error
	fenceGen     atomic.Uint32 // the generation of the last fence

	posted, started atomic.Pointer[membership] // with whom the last Post and Start were; see members

	waits atomic.Int64 // since when a call waits that is made again and again, see awaitTarget; 0: none does
}

// prepare fills in the label, and the functions that a fence waits with.
func (win *Window) prepare() {
	win.label = "window " + strconv.FormatUint(uint64(win.ID), 10)
	if bar := win.Bar; bar != nil {
		win.passed = func() bool {
			if over, e := win.comm.pt.Ended(win.fenceGen.Load()); e != nil { // the barrier's words are those of later calls
				return over
			}
			return bar.Passed()
		}
		win.checkBarrier = func() error {
			if win.comm.pt.Dropped(win.fenceGen.Load()) != nil {
				return nil
			}
			return bar.Check(proc.eng)
		}
	}
}

// getWin returns the window of a handle for a call of the program. What the program has put before is written.
func getWin(h int64) (*Window, *errs.Error) {
	if win := wins.get(h); win != nil {
		if e := ready(); e != nil {
			return nil, e
		}
		win.Turn()
		return win, nil
	}
	if h == 0 {
		return nil, errs.New(errs.Win, "the window is WIN_NULL (it was never made, or has been freed)")
	}
	return nil, errs.New(errs.Win, "the window has been freed")
}

func (win *Window) reset() {
	win.comm.coll.Restart()
	win.Win.Reset()
}

// WinNoLocks sets whether this rank promises to lock nothing of a window.
func WinNoLocks(h int64, on bool) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		win.SetNoLocks(on)
	}
	return CodeOf(e)
}

// WinCheckFree returns an error if a window can't be freed now. Python calls it before
// it releases what belongs to the window.
func WinCheckFree(h int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.CheckFree()
	}
	return CodeOf(e)
}

// FreeWin frees a window.
func FreeWin(h int64) Begin {
	return func() (operation, *errs.Error) {
		win, e := getWin(h)
		if e == nil {
			e = win.CheckFree()
		}
		if e != nil {
			return nil, e
		}
		o := &syncOp{win: win, call: job.CallWinFree, gen: win.comm.pt.Generation()}
		o.then = func() {
			win.comm.met = o.passed
			wins.take(h)
			proc.me.Ring() // threads that wait for notifications
			comms.take(win.commHandle)
			win.comm.close()
			win.Win.Free(o.passed)
			log.Debugf("rma", "window %d freed", win.ID)
		}
		return o, nil
	}
}

// WinFree is FreeWin as a request.
func WinFree(h int64) (req int64, code Code) { return FreeWin(h).request() }

// WinDescription is what Python knows of a window: address and size of this process's part in bytes, its displacement
// unit, the flavor, and rank and size of the group. The extension has an array.
type WinDescription [6]int64

// WinDescribe fills in the description of a window.
func WinDescribe(h int64, d *WinDescription) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	t := win.Desc.Target(win.Rank)
	*d = WinDescription{int64(uintptr(t.Base)), t.Bytes, int64(t.Unit), int64(win.Flavor), int64(win.Rank), int64(win.Size)}
	return 0
}

// WinCheck returns 0 if a handle names a window, else an error.
func WinCheck(h int64) Code {
	_, e := getWin(h)
	return CodeOf(e)
}

// WinShared returns "addr nbytes disp_unit" of rank's part of a window, or "error CODE".
// For a part that this process can't load from and store to, nbytes is 0.
func WinShared(h int64, rank int) string {
	win, e := getWin(h)
	if e == nil && win.Flavor == rma.FlavorDynamic {
		e = errs.New(errs.RMAFlavor, "Shared_query: memory is attached to a dynamic window in pieces; ask a window made by Win.Allocate_shared or Win.Allocate")
	}
	if e == nil && rank == p2p.ProcNull {
		for rank = 0; rank < win.Size-1 && win.Desc.Target(rank).Bytes == 0; {
			rank++
		}
	}
	if e == nil && (rank < 0 || rank >= win.Size) {
		e = win.NoRank("Shared_query: rank", rank)
	}
	if e != nil {
		return fmt.Sprintf("error %d", CodeOf(e))
	}
	t, base := win.Desc.Target(rank), win.Shown(rank)
	if base == nil {
		return fmt.Sprintf("0 0 %d", t.Unit)
	}
	return fmt.Sprintf("%d %d %d", uintptr(base), t.Bytes, t.Unit)
}

// WinPath names the path to a target: direct, copy, rdma or message.
func WinPath(h int64, rank int) string {
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size {
		return ""
	}
	return win.Path(rank)
}

// WinLater reports whether operations on a target may use their origin's memory after
// the call that starts them.
func WinLater(h int64, rank int) bool {
	win, e := getWin(h)
	return e == nil && rank >= 0 && rank < win.Size && win.Later(rank)
}

// WinAttach makes n bytes at addr part of a dynamic window.
func WinAttach(h, addr, n int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	at, e := checkedPointer(addr, n)
	if e == nil {
		e = win.Attach(at, int(n))
	}
	return CodeOf(e)
}

// WinDetach ends what WinAttach began with memory at addr.
func WinDetach(h, addr int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e == nil {
		e = win.Detach(uintptr(addr))
	}
	return CodeOf(e)
}

// WinGroup makes the group of a window.
func WinGroup(h int64) int64 {
	win, e := getWin(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return addGroup(win.World)
}

// held is memory that Python objects hold: windows' segments, arenas of other processes, and Alloc_mem.
var held = newTable[heldMemory](1)

type heldMemory struct {
	mapped rma.Mapped
	pages  []byte
}

// WinRetain keeps the part of a window that this process shows at addr mapped until WinRelease is called with the
// returned handle. It returns 0 if it stays mapped without that, or is memory of this process's program.
func WinRetain(h, addr int64) int64 {
	win, e := getWin(h)
	if e != nil {
		return 0
	}
	m := win.Retain(uintptr(addr))
	if m == nil {
		return 0
	}
	return held.add(&heldMemory{mapped: m})
}

// AllocMem allocates n bytes of shared memory at a multiple of align (0: any). Windows
// of it are direct. It sets *addr and returns a handle for WinRelease.
func AllocMem(n, align int64, addr *int64) (h int64, code Code) {
	defer Contain(&code)
	switch {
	case n < 0:
		return 0, classError(errs.Size, "Alloc_mem of %d bytes", n)
	case align < 0 || align > arena.MaxAlign || align&(align-1) != 0:
		return 0, classError(errs.InfoValue, "mpi_minimum_memory_alignment is %d; it must be a power of two up to %d", align, arena.MaxAlign)
	}
	mem, err := arena.Alloc(int(n), int(align))
	if err != nil {
		return 0, classError(errs.NoMem, "Alloc_mem of %d bytes: %v", n, err)
	}
	*addr = int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	return held.add(&heldMemory{pages: mem}), 0
}

// ArenaProblem returns why memory from Alloc_mem is not shared, "" if it is.
func ArenaProblem() string {
	if err := arena.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// WinRelease ends what WinRetain or AllocMem began.
func WinRelease(h int64) {
	m := held.take(h)
	switch {
	case m == nil:
	case m.mapped != nil:
		m.mapped.Release()
	default:
		_ = arena.Free(m.pages)
	}
}

// WinDesc returns a window's descriptor for the hot calls, nil if the handle names no
// window.
func WinDesc(h int64) unsafe.Pointer {
	win, e := getWin(h)
	if e != nil {
		return nil
	}
	return unsafe.Pointer(win.Desc)
}

// WinBundle returns the bundle for short puts to a rank, nil if there is none; see rma.Bundle.
func WinBundle(h int64, rank int) *rma.Bundle {
	win := wins.get(h)
	if win == nil || ready() != nil {
		return nil
	}
	return win.Bundle(rank)
}
