package rma

import (
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Spare is a segment of a window that has been freed, which stays mapped for the next window of the same ranks.
//
// # Protocol
//
// A rank that has left the barrier of a window's Free, and whose program shows none of the window's memory any more, keeps the
// segment. The next time that the same ranks make a window, each offers the segment that it has kept last, by the tag that
// begins it (Offer.Spare). If all have offered the same one, and it is large enough, they use it: no rank uses it for
// the old window any more, since each has offered it after its Free. Then each rank clears what is to be its own in the
// new window (Clear), and tells the others in the next exchange. After that the segment is as a new one to all of them. It has
// other data only where no part of the window lies, and behind the first words of tables of attached memory.
//
// Else each rank that has offered a segment unmaps it. So what the ranks keep is alike again, whatever order
// their threads have freed windows in. A rank that ends, or gives the call up, before it has told the others that
// it has cleared its part leaves them with an error, and they unmap the segment.
type Spare struct {
	world []int
	align int
	seg   *sys.Segment
}

// A process keeps at most mostSpares segments, each of at most largestSpare bytes: it takes longer to clear more than to map
// new memory. Those of dynamic windows have a large table for each rank, of which few pages are ever touched. Only its first
// words have to be cleared. They are kept up to largestDynamic bytes, if no table has had more than mostAttached changes, and
// used again by dynamic windows and by windows that are not larger than largestSpare.
const (
	mostSpares     = 4
	largestSpare   = 256 << 10
	largestDynamic = 64 << 20
	mostAttached   = 1024
)

// spares are the segments that a process keeps, the last one at the end.
type spares struct {
	mu   sync.Mutex
	list []*Spare
}

// keep adds a segment. The oldest one goes if there are too many.
func (s *spares) keep(one *Spare) {
	s.mu.Lock()
	s.list = append(s.list, one)
	var old *Spare
	if len(s.list) > mostSpares {
		old = s.list[0]
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.mu.Unlock()
	old.Close()
}

// take removes and returns the segment of these ranks that was kept last, nil if there is none.
func (s *spares) take(world []int) *Spare {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		if one := s.list[i]; slices.Equal(one.world, world) {
			s.list = slices.Delete(s.list, i, i+1)
			return one
		}
	}
	return nil
}

// TakeSpare returns a segment that a window of these ranks can use, nil if there is none. They all share memory.
func (m *RMA) TakeSpare(world []int) *Spare { return m.spares.take(world) }

// Forks counts the forks of this process. The extension has it counted. A child keeps the mappings and the arrays of its
// parent's windows, and may write to them at any time: the segment of a window is not used again if the process has forked
// since it was made.
var Forks = new(uint32)

// spare returns what remains of the window once it is freed, nil if its segment is not to be kept.
func (w *Win) spare() *Spare {
	if !w.keepsSegment() || !w.rma.eng.AllLocal(w.World) || w.forks != atom.Load32(Forks) {
		return nil
	}
	return &Spare{world: w.World, align: w.align, seg: w.seg}
}

// keepsSegment reports whether the window's segment is small enough to be kept.
func (w *Win) keepsSegment() bool {
	if w.Flavor != FlavorDynamic {
		return len(w.seg.Mem) <= largestSpare
	}
	changes := atom.Load32(&w.tables[w.Rank].version) / 2
	return len(w.seg.Mem) <= largestDynamic && changes <= mostAttached
}

// Tag returns what names the segment in an offer, 0 for none.
func (s *Spare) Tag() uint64 {
	if s == nil {
		return 0
	}
	return *tag(s.seg)
}

// Fits reports whether the ranks use the segment for the window of these offers. They all agree.
func (s *Spare) Fits(offers []Offer) bool {
	if s == nil || s.align < Alignment(offers) {
		return false
	}
	for i := range offers {
		if offers[i].Spare != *tag(s.seg) || offers[i].Node != offers[0].Node {
			return false
		}
	}
	total := newLayout(offers, int(offers[0].Node)).total
	return total <= len(s.seg.Mem) && (total <= largestSpare || Flavor(offers[0].Flavor) == FlavorDynamic)
}

// Clear clears what is rank's in the window of these offers, which the segment fits, and returns the segment.
func (s *Spare) Clear(offers []Offer, rank int) *sys.Segment {
	l, n := newLayout(offers, int(offers[0].Node)), len(offers)
	data := l.parts[rank]
	if Flavor(offers[0].Flavor) == FlavorDynamic {
		data = int(unsafe.Sizeof(attachWords{}))
	}
	for _, part := range [][2]int{
		{l.lock[rank], lockBytes(n)}, {l.inbox[rank], inboxBytes(n)}, {l.journal[rank], journalBytes},
		{l.notify[rank], notifyBytes}, {l.data[rank], data},
	} {
		clear(s.seg.Mem[part[0] : part[0]+part[1]])
	}
	return s.seg
}

// Close unmaps the segment.
func (s *Spare) Close() {
	if s != nil {
		s.seg.Close()
	}
}

// ReserveDesc returns memory for the descriptor of a window of n ranks, for Setup.
func ReserveDesc(n int) (*Desc, *errs.Error) {
	d, err := newDesc(n)
	if err != nil {
		return nil, errs.New(errs.NoMem, "map window descriptor: %v", err)
	}
	d.Size = int32(n)
	return d, nil
}

// Release gives back a descriptor that no window uses.
func (d *Desc) Release() { d.release() }
