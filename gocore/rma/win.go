package rma

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// Flavor is the kind of a window, numbered as in gormapy.MPI.
type Flavor int

// The flavors.
const (
	FlavorCreate Flavor = iota + 1
	FlavorAllocate
	FlavorDynamic
	FlavorShared
)

func (f Flavor) String() string {
	switch f {
	case FlavorCreate:
		return "Win.Create"
	case FlavorAllocate:
		return "Win.Allocate"
	case FlavorDynamic:
		return "Win.Create_dynamic"
	case FlavorShared:
		return "Win.Allocate_shared"
	}
	return fmt.Sprintf("flavor %d", int(f))
}

// RMA is the one-sided layer of a process.
type RMA struct {
	eng  *engine.Engine
	gen  atomic.Uint32 // messages of other generations are dropped
	mu   sync.RWMutex
	wins map[uint32]*Win

	deaths     atomic.Int32 // number of ranks that have ended
	fetchMu    sync.Mutex
	next       uint64
	fetches    map[uint64]*fetch
	placements map[int]placement // by world rank; guarded by the poll lock

	spares   spares
	readable sync.Map // world ranks whose memory this process has read
}

// New makes the layer and registers handlers for its kinds of messages.
func New(e *engine.Engine) *RMA {
	m := &RMA{eng: e, wins: map[uint32]*Win{}, fetches: map[uint64]*fetch{}, placements: map[int]placement{}}
	e.OnGone(func(rank int) {
		m.complete(rank)
		m.deaths.Add(1)
		e.Job.Ranks[e.Rank].RingProgress() // lock proxies may wait for the one that died
	})
	e.OnForget(func(n int) {
		delete(m.placements, n)
		m.readable.Delete(n)
	})
	e.AddPollHook(m.serveLockProxies)
	e.SetPlacer(fabric.KindPut, m.placePut)
	e.SetPlacer(fabric.KindGetData, m.placeGetData)
	for kind, h := range map[fabric.Kind]engine.Handler{
		fabric.KindPut: m.onPut, fabric.KindGet: m.onGet, fabric.KindAcc: m.onAcc,
		fabric.KindCAS: m.onCAS, fabric.KindAck: m.onAck, fabric.KindGetData: m.onGetData,
		fabric.KindLock: m.onLock, fabric.KindLocked: m.onLocked, fabric.KindCounters: m.onCounters, fabric.KindNotify: m.onNotify,
	} {
		e.Handle(kind, func(src int, head *fabric.Header, payload []byte) {
			if head.Gen == m.gen.Load() { // else it is dropped
				h(src, head, payload)
			}
		})
	}
	return m
}

// Win is this process's view of a window.
type Win struct {
	rma    *RMA
	ID     uint32
	Flavor Flavor
	Rank   int
	Size   int
	World  []int
	Bar    *coll.Barrier // nil: the window's barriers go by messages
	Desc   *Desc
	// Hint is added to errors about ranks that do not exist: what may be meant.
	Hint string

	ranks       []*job.Rank
	seg         *sys.Segment
	align       int // of the parts in seg
	locks       []*lock
	acc         []accLock
	journals    []*journal // by target, of writes under its acc
	keys        []fabric.RemoteKey
	paths       []path
	region      fabric.Region // of this rank's part, for a network; or nil
	shown       []unsafe.Pointer
	nicAtomics  bool // see nicatomics.go
	nics        nicOps
	skews       []int // by target: of the part's address, from a multiple of 8
	mem         *Memory
	sent        []atomic.Uint64               // by target: messages sent that are answered
	answers     []atomic.Uint64               // by target: answers received
	asking      []asking                      // by target
	lost        []atomic.Uint64               // by target, if it has ended: the first message that is never answered; 0: none
	outstanding []atomic.Pointer[Outstanding] // by target: operations that the network has not completed
	failure     atomic.Pointer[errs.Error]
	culprit     atomic.Int32 // the target that the last reported error concerns
	resets      atomic.Uint32

	lockAll bool
	held    []uint8 // by target: heldNone, heldLock, heldNoCheck
	nheld   int
	pscw    pscw
	unacked unacked
	notify  notifications
	noLocks atomic.Bool

	watching watching
	bundled  bundleErrors

	forks uint32 // what Forks was when the window was made

	remoteLocks []*remoteLock // by target: nil if its lock is in memory that this process shares
	lockProxies []*lockProxy  // by origin: the proxy that locks this rank's part for it; or nil

	tables   []*attachTable // of a dynamic window, by target; nil on another node
	seen     []atomic.Pointer[attachments]
	attachMu sync.Mutex
}

// Memory keeps a window's segment mapped. The window and every Python object that shows
// its memory hold it, and the last one unmaps it.
type Memory struct {
	seg  *sys.Segment
	refs atomic.Int32
}

func shareMemory(seg *sys.Segment) *Memory {
	m := &Memory{seg: seg}
	m.refs.Store(1)
	return m
}

// Mapped is memory that stays mapped until Release is called.
type Mapped interface{ Release() }

// Retain returns what keeps the part of the window that this process shows at addr mapped. It returns nil if the part is memory of
// this process's program, or in the arena of a process of this job, which stays mapped.
func (w *Win) Retain(addr uintptr) Mapped {
	if w.mem != nil {
		w.mem.refs.Add(1)
		return w.mem
	}
	for r, n := range w.World {
		if !w.rma.eng.Job.Own(n) && uintptr(w.Shown(r)) == addr {
			if p := w.rma.eng.RetainArena(n); p != nil {
				return p
			}
		}
	}
	return nil
}

// Release removes a holder. The last one unmaps the memory.
func (m *Memory) Release() {
	if m.refs.Add(-1) == 0 {
		m.seg.Close()
	}
}

// Direct reports whether all ranks reach all parts of the window by a mapping, so that no process is needed for that.
func (w *Win) Direct() bool {
	for _, p := range w.paths {
		if p != pathDirect {
			return false
		}
	}
	return true
}

var errFreed = errs.New(errs.Win, "the window has been freed")

// Free ends the window on this rank. All ranks must have passed a barrier, unless the window is given up; together reports
// whether they have.
func (w *Win) Free(together bool) {
	if spans.TryLock() {
		spans.release()
		spans.Unlock()
	}
	w.rma.mu.Lock()
	delete(w.rma.wins, w.ID)
	w.rma.mu.Unlock()
	w.dropLockProxies()
	w.rma.eng.Exclude(func() {
		w.rma.divert(w)
		// These are replies to ranks that have ended, or from before a collective reset.
		w.rma.eng.Drop(w, errFreed)
	})
	for r := range w.outstanding {
		w.outstanding[r].Load().cancel()
	}
	if w.region != nil {
		_ = w.region.Close()
	}
	w.EndBundles()
	w.Desc.release()
	if w.mem != nil && !w.mem.refs.CompareAndSwap(1, 0) { // the program shows it
		w.mem.Release()
		return
	}
	if s := w.spare(); together && s != nil {
		w.rma.spares.keep(s)
		return
	}
	w.seg.Close()
}

// inAccess describes the access epoch that is open, other than a fence's. It returns ""
// if there is none.
func (w *Win) inAccess() string {
	switch {
	case w.pscw.started:
		return "Start has opened an access epoch (Complete ends it)"
	case w.lockAll:
		return "all targets are locked by Lock_all (Unlock_all ends it)"
	case w.nheld > 0:
		for r, h := range w.held {
			if h != heldNone {
				return fmt.Sprintf("rank %d is locked (unlock it first)", r)
			}
		}
	}
	return ""
}

// path is how puts and gets reach a target, see the package comment. The order matters:
// on the paths from pathRDMA on, operations complete later, and accumulates and atomics go
// by messages (but for those of nicatomics.go).
type path uint8

const (
	pathDirect path = iota
	pathCopy
	pathRDMA
	pathMessage
)

func (k path) String() string { return [...]string{"direct", "copy", "rdma", "message"}[k] }

// Path names the path to target r: direct, copy, rdma or message. In a dynamic window
// shared memory is accessed directly on any path.
func (w *Win) Path(r int) string { return w.paths[r].String() }

// Later reports whether operations on target r may use their origin's memory after
// the call that starts them.
func (w *Win) Later(r int) bool { return w.paths[r] >= pathRDMA || w.nicAtomics }

// crowd is how many messages to a target may wait for room, and how many operations on one
// that has ended may be started before a call says so.
const crowd = 256

// Crowded reports whether so many operations on a target are under way that another one has
// to wait: their messages wait for room, or the target has ended.
func (w *Win) Crowded(r int) bool {
	if uint(r) >= uint(w.Size) || w.sent[r].Load()-w.answers[r].Load() < crowd {
		return false
	}
	return w.rma.eng.Gone(w.World[r]) || w.rma.eng.Queued(w.World[r]) >= crowd
}

// CheckCrowded returns an error if the target has ended. Unlike CheckQuiet it does not give
// up the operations, so that the call can be made again and says the same.
func (w *Win) CheckCrowded(r int) error {
	if !w.rma.eng.Gone(w.World[r]) {
		return nil
	}
	return w.unfinished(r)
}

// Shown returns the address at which this process can load from and store to target r's
// part; nil if it can't.
func (w *Win) Shown(r int) unsafe.Pointer {
	if base := w.Desc.Target(r).Base; base != nil {
		return base
	}
	return w.shown[r]
}

func (w *Win) name() string {
	if w.Size == 1 {
		return "the window of 1 rank"
	}
	return fmt.Sprintf("the window of %d ranks", w.Size)
}

// Reset drops what is under way, within a collective reset. Messages from before it are
// neither served nor waited for.
func (m *RMA) Reset(gen uint32) {
	m.eng.Exclude(func() {
		m.gen.Store(gen)
		m.forget(nil, 0)
	})
}

// Resets returns how often Reset has been called. Operations that were started before
// the last time are not counted any more.
func (w *Win) Resets() uint32 { return w.resets.Load() }

// Reset puts the window's epochs and locks back, within a collective reset. Each rank
// does so for everything that the ranks share, because any of them may have ended.
func (w *Win) Reset() {
	w.resets.Add(1)
	w.dropBundles()
	w.awaitNetwork()
	w.lockAll, w.nheld = false, 0
	clear(w.held)
	w.Desc.Open = 0
	for r := range w.Size {
		w.Desc.Target(r).Open = 0
		w.Desc.Target(r).Flags &^= TargetCopy
		w.sent[r].Store(0)
		w.answers[r].Store(0)
		w.asking[r].reset()
		w.lost[r].Store(0)
		w.renewOutstanding(r)
		if w.remoteLocks[r] != nil {
			w.remoteLocks[r].reset()
		}
	}
	w.dropLockProxies()
	w.pscw.reset()
	w.unacked.reset()
	w.notify.reset(w.Rank)
	for r, l := range w.locks {
		w.redo(r) // for a rank that has died: others may write the same
		l.zero()
	}
	if w.Bar != nil {
		w.Bar.Zero()
	}
	w.failure.Store(nil)
}
