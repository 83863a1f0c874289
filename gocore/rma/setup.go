package rma

import (
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Setup is what the ranks of a window have agreed on before NewWin.
type Setup struct {
	ID      uint32
	Rank    int
	World   []int // world ranks
	Offers  []Offer
	Segment *sys.Segment     // the node's, mapped in this process
	Region  fabric.Region    // from Register
	Copies  bool             // all ranks can copy through the kernel where there is no network
	Mapped  []unsafe.Pointer // from MapShared; nil unless every rank could map all
	Desc    *Desc            // from ReserveDesc; nil: NewWin makes it

	layout layout
}

// inSegment reports whether the parts lie in the window's segment.
func (s *Setup) inSegment() bool {
	f := Flavor(s.Offers[0].Flavor)
	return f == FlavorAllocate || f == FlavorShared
}

// sharesSegment reports whether rank i maps this process's segment of the window.
func (s *Setup) sharesSegment(i int) bool { return s.Offers[i].Node == s.Offers[s.Rank].Node }

// mapped returns the address where this process maps the part of rank i, if that is the
// program's memory in an arena; else nil.
func (s *Setup) mapped(i int) unsafe.Pointer {
	if s.Mapped == nil {
		return nil
	}
	return s.Mapped[i]
}

// NewWin makes the window once all is exchanged.
func (m *RMA) NewWin(s *Setup) (*Win, *errs.Error) {
	s.layout = newLayout(s.Offers, int(s.Offers[s.Rank].Node))
	d, e := s.Desc, (*errs.Error)(nil)
	if d == nil {
		if d, e = ReserveDesc(len(s.World)); e != nil {
			return nil, e
		}
	}
	w := m.emptyWin(s, d)
	for i := range s.World {
		w.addRank(s, i)
		w.addTarget(s, i)
	}
	if s.inSegment() {
		w.mem = shareMemory(s.Segment)
	}
	if w.nicAtomics = m.nicAtomics(s.Offers, s.World); w.nicAtomics {
		d.Target(s.Rank).Flags = 0
	}
	d.Flags = DescCompleteOnReturn
	for i := range s.World {
		w.choosePath(s, i)
	}
	m.mu.Lock()
	m.wins[s.ID] = w
	m.mu.Unlock()
	return w, nil
}

// emptyWin makes the window without its targets.
func (m *RMA) emptyWin(s *Setup, d *Desc) *Win {
	n := len(s.World)
	words := make([]atomic.Uint64, 3*n)
	w := &Win{rma: m, ID: s.ID, Flavor: Flavor(s.Offers[0].Flavor), Rank: s.Rank, Size: n, World: s.World,
		Desc: d, seg: s.Segment, region: s.Region, align: Alignment(s.Offers), forks: atom.Load32(Forks),
		keys: make([]fabric.RemoteKey, n), paths: make([]path, n), shown: make([]unsafe.Pointer, n), held: make([]uint8, n),
		sent: words[:n], answers: words[n : 2*n], asking: make([]asking, n), lost: words[2*n:],
		outstanding: make([]atomic.Pointer[Outstanding], n), remoteLocks: make([]*remoteLock, n), lockProxies: make([]*lockProxy, n)}
	d.Size, d.Turn = int32(n), 1
	w.SetNoLocks(s.Offers[s.Rank].Hints&HintNoLocks != 0)
	w.ranks = make([]*job.Rank, n)
	for i, r := range s.World {
		w.ranks[i] = m.eng.Job.Rank(r)
	}
	w.locks, w.journals, w.acc, w.skews = make([]*lock, 0, n), make([]*journal, 0, n), make([]accLock, 0, n), make([]int, 0, n)
	w.pscw.init(s.Rank, w.ranks, func(r int) bool { return m.eng.Gone(s.World[r]) }, s.Segment.Mem, s.layout.inbox)
	w.pscw.tell = w.tellRemote
	w.notify.init(s.Segment.Mem, s.layout.notify)
	w.unacked = unacked{me: s.Rank, inboxes: w.pscw.inboxes, settled: make([]atomic.Uint32, n), poll: m.eng.PollSure, exclude: m.eng.Exclude, deliver: w.deliver, ring: w.ringAll}
	if w.Flavor == FlavorDynamic {
		w.seen = make([]atomic.Pointer[attachments], n)
		w.tables = make([]*attachTable, n)
		for i, at := range s.layout.data {
			if s.sharesSegment(i) {
				w.tables[i] = newAttachTable(s.Segment.Mem[at : at+tableBytes])
			}
		}
	}
	return w
}

// addRank adds rank i's lock and journal in the window's segment.
func (w *Win) addRank(s *Setup, i int) {
	eng, world := w.rma.eng, s.World[i]
	l := newLock(s.Segment.Mem[s.layout.lock[i]:], s.Rank, w.ranks)
	l.ring = w.bell(i)
	w.locks = append(w.locks, l)
	if eng.Remote(world) {
		w.remoteLocks[i] = &remoteLock{w: w, target: i}
	}
	w.unacked.numbers = append(w.unacked.numbers, &l.words.fences)
	w.journals = append(w.journals, newJournal(s.Segment.Mem[s.layout.journal[i]:]))
	w.acc = append(w.acc, accLock{word: &l.words.acc, me: uint32(s.Rank + 1),
		dead: func(r int) bool { return eng.Gone(s.World[r]) }, redo: func() { w.redo(i) }})
}

// addTarget fills in the address of rank i's part, and the one where this process maps
// it.
func (w *Win) addTarget(s *Setup, i int) {
	o, t := &s.Offers[i], w.Desc.Target(i)
	w.outstanding[i].Store(w.newOutstanding(i))
	w.keys[i] = fabric.RemoteKey{Addr: o.Addr}
	if o.Keyed != 0 {
		w.keys[i] = o.Key
	}
	w.skews = append(w.skews, int(o.Skew))
	t.Bytes, t.Unit = o.Bytes, o.Unit
	t.Remote, t.PID, t.Ended = o.Addr, int64(o.PID), &w.ranks[i].Ended
	if !w.rma.eng.Remote(s.World[i]) {
		t.Notify = w.notify.boxes[i]
	}
	if s.inSegment() && s.sharesSegment(i) {
		w.shown[i] = unsafe.Add(unsafe.Pointer(&s.Segment.Mem[0]), s.layout.data[i])
	}
	switch {
	case w.rma.eng.Remote(s.World[i]):
	case s.inSegment():
		t.Base, t.Flags = w.shown[i], TargetAtomic
	case s.mapped(i) != nil:
		t.Base, t.Flags = s.mapped(i), TargetAtomic
	case i == s.Rank:
		t.Base = fabric.Pointer(o.Addr)
	}
	if w.Size == 1 { // no other rank reaches it
		t.Flags = TargetAtomic
	}
}

// choosePath decides how operations reach rank i, once all targets are filled in.
func (w *Win) choosePath(s *Setup, i int) {
	o, t := &s.Offers[i], w.Desc.Target(i)
	switch remote := w.rma.eng.Remote(s.World[i]); {
	case t.Base != nil, i == s.Rank, t.Bytes == 0 && w.Flavor != FlavorDynamic:
		w.paths[i] = pathDirect
	case remote && o.Keyed != 0:
		w.paths[i] = pathRDMA
	case s.Copies && !remote:
		w.paths[i] = pathCopy
	default:
		w.paths[i] = pathMessage
	}
	if w.paths[i] == pathMessage || w.paths[i] == pathRDMA || w.nicAtomics {
		w.Desc.Flags = 0
	}
	if w.paths[i] == pathMessage && !w.nicAtomics {
		t.Flags |= TargetMessages
	}
	// All ranks come to the same result, whatever their own paths are.
	users := w.Flavor == FlavorCreate && o.Bytes > 0 && s.mapped(i) == nil
	if s.Copies && w.Size > 1 && w.rma.eng.AllLocal(s.World) && (users || w.Flavor == FlavorDynamic) {
		w.unacked.on = true
	}
}
