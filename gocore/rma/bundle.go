package rma

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Bundle gathers short puts to a target that the kernel copies to, so that one system call writes many. The puts'
// data is copied: the origin's memory is free at once. It is memory of this process alone, outside Go's heap, since C
// adds to bundles and writes them (pybind/shim/kernel_copy.c), and Go writes them, too.
//
// # Which puts
//
// Those of at most BundledPut bytes in a passive-target epoch, from the second one on since the last call that
// completed operations or entered Go (Desc.Turn). So a single put is at the target when its call returns, as it is
// without bundles, and costs the same. A run that lies in the one before it, or follows it, is joined with it. The
// kernel writes the runs in their order.
//
// # When it is written
//
//   - when there is no room for the next put;
//   - before any other operation of this process on the same target: what is in the bundle came first;
//   - by every call that completes operations, and before the lock of the target is released;
//   - by every call that enters Go with the window (mpi.getWin), whatever it does, by a collective reset before
//     this process takes part in it, and by Finalize;
//   - by watch, once it is 5 to 10 ms old: a process that computes does not hold puts back. watch runs as long as
//     bundles are used and 100 ms more, so it costs an idle process nothing.
//
// A process that is killed, or a fork's child, writes none. The child's copies are never looked at, since no call works
// there.
//
// # Protocol
//
// Several threads may use a window, some without the GIL. Lock is 1 while one has the bundle, which it needs for a
// copy of at most BundledPut bytes, or one system call: others spin. It never waits for the GIL, nor for another
// process. Who has the lock may
//
//   - add (C only, and only while Written is 0): copies the data, then adds the run. If the origin's memory faults, the
//     bundle is as before, but for bytes that an earlier put to the same place had in it. The first run takes the next
//     number (Desc.Begun), and adds 1 to Desc.Bundles.
//   - write in C: one system call. If that writes all, the bundle is empty, and 1 is taken off Desc.Bundles. Else
//     Written is how much the target has, and C leaves the rest to Go, by making the general call. So no byte is
//     written twice.
//   - write in Go: the same, and then run by run what is left. A run that can't be written is given up, and the others are
//     written nevertheless. If the target has ended, all is given up.
//
// # Errors
//
// Go keeps the first error of each target (bundleErrors) before the bundle is empty, and sets Desc.Failed. So whoever finds
// no bundle to write, and looks at Failed after that, finds the error: the hot calls that complete operations enter Go then.
// A call that completes the operations on a target, and only such a one, returns its error, once (BundleFailure). Who
// writes does not wait for the launcher's verdict about a target that has ended: that call does (Decided).
//
// # How watch is told
//
// Bundles and Watched are a handshake. C adds 1 to Bundles and then reads Watched: if it is 0 it calls Win.Bundle.
// watch stores 0 in Watched, then reads Bundles, and goes on if it is not 0. All are sequentially consistent. So a
// bundle that is not empty is either seen or announced.
type Bundle struct {
	Lock    uint32
	Used    uint32 // runs
	Bytes   uint32 // of all runs, one after the other in Data
	Written uint32 // how many of them the target has already
	Number  uint32 // what Desc.Begun was when the first run came
	_       uint32
	Runs    [BundleRuns]fabric.Run // with addresses at the target
	Data    [BundleBytes]byte
}

const (
	BundleRuns  = 64   // runs of a bundle
	BundleBytes = 4096 // their data
	BundledPut  = 256  // length of the longest put that is bundled
)

const (
	// watchPeriod is how often watch looks. A bundle that it finds twice is written.
	watchPeriod = 5 * time.Millisecond
	// watchIdle is how often watch finds that there was none before it ends.
	watchIdle = 20
)

var bundles struct {
	sync.Mutex
	free []*Bundle
}

// newBundle returns an empty bundle. As with descriptors, its memory is only used again.
func newBundle() *Bundle {
	bundles.Lock()
	defer bundles.Unlock()
	if last := len(bundles.free) - 1; last >= 0 {
		b := bundles.free[last]
		bundles.free = bundles.free[:last]
		return b
	}
	n := int(unsafe.Sizeof(Bundle{}))
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil
	}
	return (*Bundle)(unsafe.Pointer(&mem[0]))
}

func (b *Bundle) lock() {
	for i := 1; !atom.CAS32(&b.Lock, 0, 1); i++ {
		if i%16 == 0 {
			atom.Yield()
		}
	}
}

func (b *Bundle) unlock() { atom.Store32(&b.Lock, 0) }

// empty empties the bundle, under its lock.
func (b *Bundle) empty(d *Desc) {
	b.Bytes, b.Written = 0, 0
	atom.Store32(&b.Used, 0)
	atom.Add32(&d.Bundles, ^uint32(0))
}

// write has what is left of the bundle written, under its lock: once by all, which returns how many bytes of the runs
// it has written, and then run by run. It returns the first error. gone reports whether an error says that there is no
// target any more.
func (b *Bundle) write(all func(runs []fabric.Run) int, one func(data unsafe.Pointer, r fabric.Run) error,
	gone func(error) bool) (err error) {
	runs := b.Runs[:b.Used]
	written := int(b.Written)
	if written == 0 {
		if written = all(runs); written == int(b.Bytes) {
			return nil
		}
	}
	at := 0
	for _, r := range runs {
		data := unsafe.Pointer(&b.Data[at])
		at += r.N
		if at <= written {
			continue
		}
		if has := written - (at - r.N); has > 0 {
			data, r = unsafe.Add(data, has), fabric.Run{Addr: r.Addr + uint64(has), N: r.N - has}
		}
		if e := one(data, r); e != nil && err == nil {
			if err = e; gone(e) {
				break
			}
		}
	}
	return err
}

// Turn begins a call of the program on the window: what it has put before is written first.
func (w *Win) Turn() {
	atom.Add32(&w.Desc.Turn, 1)
	if atom.Load32(&w.Desc.Bundles) != 0 {
		w.WriteBundles()
	}
}

// WriteBundles writes all bundles. It does not wait.
func (w *Win) WriteBundles() {
	for r := range w.Size {
		if b := w.bundle(r); b != nil && atom.Load32(&b.Used) != 0 {
			w.writeBundle(r, b)
		}
	}
}

// bundle returns a target's bundle, or nil.
func (w *Win) bundle(r int) *Bundle {
	return (*Bundle)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&w.Desc.Target(r).Bundle))))
}

func (w *Win) setBundle(r int, b *Bundle) {
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&w.Desc.Target(r).Bundle)), unsafe.Pointer(b))
}

func (w *Win) writeBundle(rank int, b *Bundle) {
	b.lock()
	defer b.unlock()
	if b.Used == 0 {
		return
	}
	defer b.empty(w.Desc)
	eng, world, key, t := w.rma.eng, w.World[rank], w.keys[rank].Key, w.Desc.Target(rank)
	err := b.write(func(runs []fabric.Run) int {
		if atom.Load32(t.Ended) != 0 {
			return 0
		}
		written := sys.WriteProcessOnce(int(t.PID), unsafe.Pointer(&b.Data), runs)
		if atom.Load32(t.Ended) != 0 { // it may have been another process's memory
			return 0
		}
		return written
	}, func(data unsafe.Pointer, r fabric.Run) error {
		_, err := eng.Put(world, data, fabric.RemoteKey{Addr: r.Addr, Key: key}, r.N, 0)
		return err
	}, func(err error) bool { return errors.Is(err, fabric.ErrPeerGone) })
	if err != nil {
		w.bundled.keep(w.Desc, rank, bundleError{err: err, until: now() + int64(engine.VerdictLimit)})
	}
}

// bundleErrors are the first errors of bundles that no call has returned yet, by target.
type bundleErrors struct {
	sync.Mutex
	by map[int]bundleError
}

// bundleError is why a run could not be written, and until when a verdict about its target is waited for.
type bundleError struct {
	err   error
	until int64
}

func (x *bundleErrors) keep(d *Desc, rank int, e bundleError) {
	x.Lock()
	defer x.Unlock()
	if x.by == nil {
		x.by = map[int]bundleError{}
	}
	if _, has := x.by[rank]; !has {
		x.by[rank] = e
	}
	atom.Store32(&d.Failed, 1)
}

// take removes the errors of a target (-1: of all), and returns that of the lowest one.
func (x *bundleErrors) take(d *Desc, rank int) (of int, e bundleError, found bool) {
	x.Lock()
	defer x.Unlock()
	for r, err := range x.by {
		if rank != -1 && r != rank {
			continue
		}
		if !found || r < of {
			of, e, found = r, err, true
		}
		delete(x.by, r)
	}
	if len(x.by) == 0 {
		atom.Store32(&d.Failed, 0)
	}
	return of, e, found
}

// BundleFailure returns, once, the error of bundles for a target (-1: for any) that could not be written. It comes after
// Turn and Decided.
func (w *Win) BundleFailure(rank int) *errs.Error {
	if atom.Load32(&w.Desc.Failed) == 0 {
		return nil
	}
	of, e, found := w.bundled.take(w.Desc, rank)
	if !found {
		return nil
	}
	return w.failed("Put", of, nil, 0, e.err) // the origin's memory has been copied: it is not to blame
}

// Decided reports whether BundleFailure would not wait: of targets that have ended, the launcher has decided what that means.
func (w *Win) Decided(rank int) bool {
	if atom.Load32(&w.Desc.Failed) == 0 {
		return true
	}
	w.bundled.Lock()
	defer w.bundled.Unlock()
	for r, e := range w.bundled.by {
		if (rank == -1 || r == rank) && errors.Is(e.err, fabric.ErrPeerGone) && !w.rma.eng.Judged(w.World[r]) && now() < e.until {
			return false
		}
	}
	return true
}

// dropBundles forgets what is in bundles, and their errors, in a collective reset.
func (w *Win) dropBundles() {
	w.bundled.take(w.Desc, -1)
	for r := range w.Size {
		if b := w.bundle(r); b != nil {
			b.lock()
			if b.Used != 0 {
				b.empty(w.Desc)
			}
			b.unlock()
		}
	}
}

// watching is the timer that writes bundles which nothing completes.
type watching struct {
	sync.Mutex
	timer *time.Timer
	seen  uint32 // what Desc.Begun was when it looked last
	idle  int    // how often it has found none since
	over  bool   // the window has been freed
}

// Bundle returns the bundle for a target, and has it watched. It returns nil if there is none for it.
func (w *Win) Bundle(rank int) *Bundle {
	g := &w.watching
	g.Lock()
	defer g.Unlock()
	if g.over || rank < 0 || rank >= w.Size || w.paths[rank] != pathCopy {
		return nil
	}
	b := w.bundle(rank)
	if b == nil {
		if b = newBundle(); b == nil {
			return nil
		}
		w.setBundle(rank, b)
	}
	if w.Desc.Watched == 0 {
		atom.Store32(&w.Desc.Watched, 1)
		g.seen, g.idle = atom.Load32(&w.Desc.Begun), 0
		if g.timer == nil {
			g.timer = time.AfterFunc(watchPeriod, w.watch)
		} else {
			g.timer.Reset(watchPeriod)
		}
	}
	return b
}

func (w *Win) watch() {
	g, d := &w.watching, w.Desc
	g.Lock()
	defer g.Unlock()
	if g.over {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			log.Errorf("rma", "internal error in watching bundles: %v", p)
			g.timer.Reset(watchPeriod)
		}
	}()
	begun := atom.Load32(&d.Begun)
	if atom.Load32(&d.Bundles) == 0 && begun == g.seen {
		g.idle++
	} else {
		g.idle = 0
		for r := range w.Size {
			b := w.bundle(r)
			if b != nil && atom.Load32(&b.Used) != 0 && int32(atom.Load32(&b.Number)-g.seen) <= 0 {
				w.writeBundle(r, b)
			}
		}
		g.seen = begun
	}
	if g.idle >= watchIdle {
		if d.unwatch() {
			return
		}
		g.idle = 0
	}
	g.timer.Reset(watchPeriod)
}

// unwatch ends the watch, and reports whether it has: not, if there is a bundle. Who adds the next one sees that nobody
// watches.
func (d *Desc) unwatch() bool {
	atom.Store32(&d.Watched, 0)
	if atom.Load32(&d.Bundles) == 0 {
		return true
	}
	atom.Store32(&d.Watched, 1)
	return false
}

// EndBundles ends the use of bundles. What is in them is lost.
func (w *Win) EndBundles() {
	g := &w.watching
	g.Lock()
	defer g.Unlock()
	if g.over {
		return
	}
	g.over = true
	if g.timer != nil {
		g.timer.Stop()
	}
	w.dropBundles()
	bundles.Lock()
	defer bundles.Unlock()
	for r := range w.Size {
		if b := w.bundle(r); b != nil {
			w.setBundle(r, nil)
			bundles.free = append(bundles.free, b)
		}
	}
}
