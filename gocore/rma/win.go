package rma

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
)

// Flavor is how a window's memory came to be, numbered as in gormapy.MPI.
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

	arenas     arenas
	deaths     atomic.Int32 // of ranks, so far
	fetchMu    sync.Mutex
	next       uint64
	fetches    map[uint64]*fetch
	placements map[int]placement // by world rank; of whoever polls
}

// New makes the layer and takes its kinds of messages.
func New(e *engine.Engine) *RMA {
	m := &RMA{eng: e, wins: map[uint32]*Win{}, fetches: map[uint64]*fetch{}, placements: map[int]placement{}, arenas: arenas{peers: map[int]*arena.Peer{}}}
	e.OnGone(func(rank int) {
		m.complete(rank)
		m.deaths.Add(1)
		e.Job.Ranks[e.Rank].RingProgress() // agents may wait for the one that died
	})
	e.AddPollHook(m.serveLockProxies)
	e.SetPlacer(fabric.KindPut, m.placePut)
	e.SetPlacer(fabric.KindGetData, m.placeGetData)
	for kind, h := range map[fabric.Kind]engine.Handler{
		fabric.KindPut: m.onPut, fabric.KindGet: m.onGet, fabric.KindAcc: m.onAcc,
		fabric.KindCAS: m.onCAS, fabric.KindAck: m.onAck, fabric.KindGetData: m.onGetData,
		fabric.KindLock: m.onLock, fabric.KindLocked: m.onLocked, fabric.KindCounters: m.onCounters,
	} {
		e.Handle(kind, func(src int, head *fabric.Header, payload []byte) {
			if head.Gen == m.gen.Load() {
				h(src, head, payload)
			}
		})
	}
	return m
}

// Offer is what each rank tells the others when a window is made (a fixed
// layout, exchanged as bytes).
type Offer struct {
	Addr   uint64 // Create: the memory
	Bytes  int64
	Unit   int64
	Flavor int32
	Failed int32 // error class, 0 if well
	Probe  uint64
	Share  uint64 // Create: where the memory lies in the rank's arena, plus 1; 0: not there
	PID    int32
	FD     int32 // the arena; rank 0, second round: the window's segment
	Copy   int32 // second round: 1 if the kernel lets this rank read all others
	Mapped int32 // second round: 1 if this rank maps all memory that lies in arenas
	Hints  Hints
	Align  int32 // what mpi_minimum_memory_alignment asks for, 0 for nothing
	Keyed  int64 // third round: 1 if a network reads and writes the part by Key
	Key    fabric.RemoteKey
	Skew   int64 // of its address, from a multiple of 8
}

// OfferBytes is the size of Offer.
const OfferBytes = int(unsafe.Sizeof(Offer{}))

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
	// Hint says, in errors about ranks that are not there, what may be meant.
	Hint string

	ranks       []*job.Rank
	seg         *sys.Segment
	locks       []*lock
	acc         []accLock
	journals    []*journal // of what is written under acc, by target
	keys        []fabric.RemoteKey
	paths       []path
	region      fabric.Region // of this rank's part, for a network; or nil
	shown       []unsafe.Pointer
	nicAtomics  bool // see nicatomics.go
	nics        nicOps
	skews       []int // by target: of the part's address, from a multiple of 8
	mem         *Memory
	sent        []atomic.Uint64               // by target: messages that are to be answered
	answers     []atomic.Uint64               // by target: those that have been
	lost        []atomic.Uint64               // by target: the first one that never will be, as it has ended; 0: none
	outstanding []atomic.Pointer[Outstanding] // by target: what the network is at
	failure     atomic.Pointer[errs.Error]
	culprit     atomic.Int32 // the target of the last operation of a network that has failed
	resets      atomic.Uint32

	lockAll bool
	held    []uint8 // by target: heldNone, heldLock, heldNoCheck
	nheld   int
	pscw    pscw
	unacked unacked
	noLocks atomic.Bool

	remoteLocks []*remoteLock // by target: nil if its lock is in memory that this process shares
	lockProxies []*lockProxy  // by origin: who has the lock of this rank's part by messages

	tables   []*attachTable // of a dynamic window, by target
	seen     []atomic.Pointer[attachments]
	attachMu sync.Mutex
}

// probe is a word that peers read through the kernel to see whether they may.
var probe = uint64(0x70726f6265) //nolint

// NewOffer describes the calling rank's part. For Create addr and n are the
// user's memory, for the other flavors n is what is asked for.
func NewOffer(f Flavor, addr unsafe.Pointer, n, unit int) Offer {
	o := Offer{Addr: uint64(uintptr(addr)), Bytes: int64(n), Unit: int64(unit), Flavor: int32(f), PID: int32(os.Getpid()),
		Probe: uint64(uintptr(unsafe.Pointer(&probe)))}
	if f == FlavorCreate && n > 0 {
		if off, ok := arena.Find(addr, n); ok {
			o.Share, o.FD = off+1, int32(arena.FD())
		}
	}
	return o
}

// layout is where everything lies in a window's segment, by rank.
type layout struct {
	lock    []int
	inbox   []int // see general
	journal []int
	table   []int // of attached memory, in dynamic windows
	data    []int
	total   int
}

func newLayout(offers []Offer) layout {
	var l layout
	n := len(offers)
	for range n {
		l.lock = append(l.lock, l.total)
		l.total += lockBytes(n)
	}
	for range n {
		l.inbox = append(l.inbox, l.total)
		l.total += inboxBytes(n)
	}
	l.total = pageUp(l.total)
	for range n {
		l.journal = append(l.journal, l.total)
		l.total += journalBytes
	}
	align := Alignment(offers)
	l.total = alignUp(l.total, align)
	for i := range offers {
		o := &offers[i]
		l.data = append(l.data, l.total)
		switch {
		case Flavor(o.Flavor) == FlavorAllocate || Flavor(o.Flavor) == FlavorShared && o.Hints&HintNoncontig != 0:
			l.total += alignUp(int(o.Bytes), align)
		case Flavor(o.Flavor) == FlavorShared: // one run of memory, as MPI promises by default
			l.total += int(o.Bytes)
		case Flavor(o.Flavor) == FlavorDynamic:
			l.table = append(l.table, l.total)
			l.total += tableBytes
		}
	}
	l.total = max(pageUp(l.total), 4096)
	return l
}

func alignUp(n, align int) int { return (n + align - 1) / align * align }

func pageUp(n int) int { return alignUp(n, 4096) }

// CheckOffers finds what makes the window impossible.
func CheckOffers(offers []Offer) *errs.Error {
	for i := range offers {
		o := &offers[i]
		switch {
		case o.Failed != 0:
			return errs.New(errs.Class(o.Failed), "rank %d of the communicator could not give its part of the window", i)
		case o.Flavor != offers[0].Flavor:
			return errs.New(errs.Win, "the ranks of the communicator make different kinds of windows in the same collective call")
		case o.Bytes < 0 || o.Bytes > 1<<46:
			return errs.New(errs.Size, "rank %d asks for a window of %d bytes", i, o.Bytes)
		}
	}
	return checkHints(offers)
}

// CreateSegment is done by rank 0 of the window's communicator.
func CreateSegment(offers []Offer) (*sys.Segment, *errs.Error) {
	l := newLayout(offers)
	seg, err := sys.NewSegment("window", l.total)
	if err != nil {
		return nil, errs.New(errs.NoMem, "make window of %d bytes in all: %v", l.total, err)
	}
	if err := seg.Align(Alignment(offers)); err != nil {
		seg.Close()
		return nil, errs.New(errs.NoMem, "make window of %d bytes in all: %v", l.total, err)
	}
	return seg, nil
}

// OpenSegment is done by the other ranks with what rank 0 made, as it told them
// in its second offer.
func OpenSegment(offers []Offer, made *Offer) (*sys.Segment, error) {
	seg, err := sys.OpenSegment(int(offers[0].PID), int(made.FD))
	if err != nil {
		return nil, err
	}
	if err := seg.Align(Alignment(offers)); err != nil {
		seg.Close()
		return nil, err
	}
	return seg, nil
}

// CanCopy tries whether this process may read the memory of all others that are
// not reached by a network.
func (m *RMA) CanCopy(offers []Offer, world []int) bool {
	for i := range offers {
		if world[i] == m.eng.Rank || m.eng.Remote(world[i]) {
			continue
		}
		if _, caps := m.eng.Transport(world[i]); !caps.OneSided {
			return false
		}
		ep, err := m.eng.Endpoint(world[i])
		if err != nil {
			return false
		}
		var got uint64
		if _, err := ep.Get(unsafe.Pointer(&got), fabric.RemoteKey{Addr: offers[i].Probe}, 8, 0); err != nil || got != probe {
			return false
		}
	}
	return true
}

// Register makes this rank's part of a window known to the network, if there is
// one that reads and writes memory: offers are those of all ranks, seg what
// CreateSegment or OpenSegment gave. If it can't, messages do it. The offer is
// completed.
func (m *RMA) Register(mine *Offer, rank int, world []int, offers []Offer, seg *sys.Segment) fabric.Region {
	net := m.eng.Net()
	if net == nil || !net.Caps().OneSided || mine.Bytes == 0 || m.eng.AllLocal(world) {
		return nil
	}
	var at unsafe.Pointer
	switch Flavor(mine.Flavor) {
	case FlavorDynamic:
		return nil
	case FlavorCreate:
		at = fabric.Pointer(mine.Addr)
	default:
		at = unsafe.Pointer(&seg.Mem[newLayout(offers).data[rank]])
	}
	region, err := net.Register(at, int(mine.Bytes))
	if err != nil {
		log.Infof("rma", "%d bytes can't be registered with %s, so that messages serve this window: %v", mine.Bytes, net.Name(), err)
		return nil
	}
	mine.Keyed, mine.Key, mine.Skew = 1, region.Key(), int64(uintptr(at)%8)
	return region
}

// Attach makes the window once all is exchanged: seg is rank 0's segment as
// mapped here, region what Register gave, copies whether all ranks can copy
// through the kernel where there is no network, shared what MapShared gave, nil if
// not every rank could map all.
func (m *RMA) Attach(id uint32, handle int64, rank int, world []int, offers []Offer, seg *sys.Segment, region fabric.Region, copies bool, shared []unsafe.Pointer, bar *coll.Barrier) (*Win, *errs.Error) {
	n := len(world)
	near := m.eng.AllLocal(world)
	w := &Win{rma: m, ID: id, Flavor: Flavor(offers[0].Flavor), Rank: rank, Size: n, World: world, Bar: bar, seg: seg, region: region,
		keys: make([]fabric.RemoteKey, n), paths: make([]path, n), shown: make([]unsafe.Pointer, n), sent: make([]atomic.Uint64, n), answers: make([]atomic.Uint64, n), lost: make([]atomic.Uint64, n), held: make([]uint8, n),
		outstanding: make([]atomic.Pointer[Outstanding], n), remoteLocks: make([]*remoteLock, n), lockProxies: make([]*lockProxy, n)}
	d, err := newDesc(n)
	if err != nil {
		return nil, errs.New(errs.NoMem, "map window descriptor: %v", err)
	}
	w.Desc = d
	w.SetNoLocks(offers[rank].Hints&HintNoLocks != 0)
	for _, r := range world {
		w.ranks = append(w.ranks, &m.eng.Job.Ranks[r])
	}
	l := newLayout(offers)
	d.Size = int32(n)
	inSegment := w.Flavor == FlavorAllocate || w.Flavor == FlavorShared
	w.unacked = unacked{me: rank, settled: make([]atomic.Uint32, n), poll: m.eng.PollSure, exclude: m.eng.Exclude, deliver: w.deliver}
	w.pscw.init(rank, w.ranks, func(r int) bool { return m.eng.Gone(world[r]) }, seg.Mem, l.inbox)
	w.pscw.tell = w.tellRemote
	w.unacked.inboxes = w.pscw.inboxes
	if w.Flavor == FlavorDynamic {
		w.seen = make([]atomic.Pointer[attachments], n)
		for _, at := range l.table {
			w.tables = append(w.tables, newAttachTable(seg.Mem[at:at+tableBytes]))
		}
	}
	for i := range n {
		w.locks = append(w.locks, newLock(seg.Mem[l.lock[i]:], rank, w.ranks))
		w.locks[i].ring = w.bell(i)
		w.outstanding[i].Store(w.newOutstanding(i))
		if m.eng.Remote(world[i]) {
			w.remoteLocks[i] = &remoteLock{w: w, target: i}
		}
		w.unacked.numbers = append(w.unacked.numbers, &w.locks[i].words.fences)
		w.journals = append(w.journals, newJournal(seg.Mem[l.journal[i]:]))
		w.acc = append(w.acc, accLock{word: &w.locks[i].words.acc, me: uint32(rank + 1),
			dead: func(r int) bool { return m.eng.Gone(world[r]) }, redo: func() { w.redo(i) }})
		t := d.Target(i)
		t.Bytes, t.Unit = offers[i].Bytes, offers[i].Unit
		w.keys[i] = fabric.RemoteKey{Addr: offers[i].Addr}
		if offers[i].Keyed != 0 {
			w.keys[i] = offers[i].Key
		}
		w.skews = append(w.skews, int(offers[i].Skew))
		t.Remote, t.PID, t.Ended = offers[i].Addr, int64(offers[i].PID), &m.eng.Job.Ranks[world[i]].Ended
		far := m.eng.Remote(world[i])
		if inSegment {
			w.shown[i] = unsafe.Add(unsafe.Pointer(&seg.Mem[0]), l.data[i])
		}
		switch {
		case far:
		case inSegment:
			t.Base, t.Flags = w.shown[i], TargetAtomic
		case shared != nil && shared[i] != nil:
			t.Base, t.Flags = shared[i], TargetAtomic
		case i == rank:
			t.Base = fabric.Pointer(offers[i].Addr)
		}
		if n == 1 { // nobody else reaches it
			t.Flags = TargetAtomic
		}
	}
	if inSegment {
		w.mem = shareMemory(seg)
	}
	if w.nicAtomics = m.nicAtomics(offers, world, rank); w.nicAtomics {
		d.Target(rank).Flags = 0
	}
	d.Flags = DescAtOnce
	for i := range n {
		t := d.Target(i)
		switch far := m.eng.Remote(world[i]); {
		case t.Base != nil, i == rank, t.Bytes == 0 && w.Flavor != FlavorDynamic:
			w.paths[i] = pathDirect
		case far && offers[i].Keyed != 0:
			w.paths[i] = pathRDMA
		case copies && !far:
			w.paths[i] = pathCopy
		default:
			w.paths[i] = pathMessage
		}
		if w.paths[i] == pathMessage || w.paths[i] == pathRDMA || w.nicAtomics {
			d.Flags = 0
		}
		// The same on all ranks, whatever their own way is.
		users := w.Flavor == FlavorCreate && offers[i].Bytes > 0 && (shared == nil || shared[i] == nil)
		w.unacked.on = w.unacked.on || near && copies && n > 1 && (users || w.Flavor == FlavorDynamic)
	}
	m.mu.Lock()
	m.wins[id] = w
	m.mu.Unlock()
	d.Handle = handle
	return w, nil
}

// Memory is what keeps a window's segment mapped: the window and every Python
// object that shows its memory hold it, and the last one unmaps it.
type Memory struct {
	seg  *sys.Segment
	refs atomic.Int32
}

func shareMemory(seg *sys.Segment) *Memory {
	m := &Memory{seg: seg}
	m.refs.Store(1)
	return m
}

// Memory returns what keeps the window's memory mapped, nil if it is the user's.
func (w *Win) Memory() *Memory { return w.mem }

// Retain adds a holder.
func (m *Memory) Retain() { m.refs.Add(1) }

// Release takes one away.
func (m *Memory) Release() {
	if m.refs.Add(-1) == 0 {
		m.seg.Close()
	}
}

// Free ends the window on this rank. All ranks must have passed a barrier.
func (w *Win) Free() {
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
		// Replies to ranks that have ended, or from before a collective reset.
		w.rma.eng.Drop(w, errs.New(errs.Win, "the window has been freed"))
	})
	for r := range w.outstanding {
		w.outstanding[r].Load().cancel()
	}
	if w.region != nil {
		_ = w.region.Close()
	}
	w.Desc.release()
	if w.mem != nil {
		w.mem.Release()
	} else {
		w.seg.Close()
	}
}

// inAccess tells what access epoch is open, other than a fence's; empty if none.
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

// path is how puts and gets come to a target.
type path uint8

const (
	pathDirect path = iota
	pathCopy
	pathRDMA
	pathMessage
)

func (k path) String() string { return [...]string{"direct", "copy", "rdma", "message"}[k] }

// Path names the way to target r: direct, copy, rdma or message. In a dynamic
// window shared memory is direct, too.
func (w *Win) Path(r int) string { return w.paths[r].String() }

// Later reports whether operations on target r may use their origin's memory after
// the call that starts them.
func (w *Win) Later(r int) bool { return w.paths[r] >= pathRDMA || w.nicAtomics }

// Shown is where this process can load from and store to target r's part; nil if
// it can't.
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

// Reset drops what is under way, within a collective reset: messages of before
// are not served or waited for after it.
func (m *RMA) Reset(gen uint32) {
	m.eng.Exclude(func() {
		m.gen.Store(gen)
		m.forget(nil, 0)
	})
}

// Resets is how often Reset has been called: what was started before is not counted
// any more.
func (w *Win) Resets() uint32 { return w.resets.Load() }

// Reset puts the window's epochs and locks back, within a collective reset. Each rank
// does so for all that they share, for any of them may have ended.
func (w *Win) Reset() {
	w.resets.Add(1)
	w.settleNet()
	w.lockAll, w.nheld = false, 0
	clear(w.held)
	w.Desc.Open = 0
	for r := range w.Size {
		w.Desc.Target(r).Open = 0
		w.Desc.Target(r).Flags &^= TargetCopy
		w.sent[r].Store(0)
		w.answers[r].Store(0)
		w.lost[r].Store(0)
		w.renewOutstanding(r)
		if w.remoteLocks[r] != nil {
			w.remoteLocks[r].reset()
		}
	}
	w.dropLockProxies()
	w.pscw.reset()
	w.unacked.reset()
	for r, l := range w.locks {
		w.redo(r) // of a rank that is dead: others may write the same
		l.zero()
	}
	if w.Bar != nil {
		w.Bar.Zero()
	}
	w.failure.Store(nil)
}
