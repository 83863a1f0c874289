package rma

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
)

// arenas are the peers' arenas, by world rank. One is opened when a window first has
// a part in it.
type arenas struct {
	mu    sync.RWMutex
	peers map[int]*arena.Peer // nil: can't be opened
}

// share maps n bytes at off of the arena that world rank r has open as descriptor fd.
// It returns nil if they can't be mapped.
func (m *RMA) share(r, fd int, off, n uint64) unsafe.Pointer {
	a := &m.arenas
	a.mu.RLock()
	p, known := a.peers[r]
	a.mu.RUnlock()
	if !known {
		a.mu.Lock()
		if p, known = a.peers[r]; !known {
			peer := m.eng.Job.Rank(r)
			if p, _ = arena.OpenPeer(peer.PID(), fd); atomic.LoadUint32(&peer.Ended) != 0 {
				p = nil // the pid may be another process's by now
			}
			a.peers[r] = p
		}
		a.mu.Unlock()
	}
	if p == nil {
		return nil
	}
	at, err := p.At(off, n)
	if err != nil {
		return nil
	}
	return at
}

// forgetProcess closes what belongs to a process of another job that nothing names any more.
func (m *RMA) forgetProcess(number int) {
	delete(m.placements, number)
	a := &m.arenas
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.peers[number]; p != nil {
		p.Close()
	}
	delete(a.peers, number)
}

// MapShared maps the parts that lie in the ranks' arenas, for a window over memory of
// the program, and reports whether all could be mapped. What makes an element atomic
// must be the same for all ranks, so they use the mappings only if every rank has all.
func (m *RMA) MapShared(offers []Offer, world []int) ([]unsafe.Pointer, bool) {
	at := make([]unsafe.Pointer, len(offers))
	for i := range offers {
		o := &offers[i]
		switch {
		case o.Share == 0:
		case world[i] == m.eng.Rank:
			at[i] = fabric.Pointer(o.Addr)
		case m.eng.Remote(world[i]):
		default:
			if at[i] = m.share(world[i], int(o.FD), o.Share-1, uint64(o.Bytes)); at[i] == nil {
				return nil, false
			}
		}
	}
	return at, true
}

// Address returns where this process maps the n bytes at address addr of target rank,
// which are attached to a dynamic window, or nil if it does not. The address is valid
// as long as the process lives, see arena.Peer.At.
func (w *Win) Address(rank, addr, n int) (unsafe.Pointer, *errs.Error) {
	if w.Flavor != FlavorDynamic {
		return nil, errs.New(errs.RMAFlavor, "the window was made by %v; addresses are looked for in windows of Win.Create_dynamic", w.Flavor)
	}
	p := location{rank: rank}
	if e := w.checkTarget(rank); e != nil {
		return nil, e
	}
	if e := w.locateAttached(&p, addr, 0, n); e != nil || !p.direct {
		return nil, e
	}
	return p.addr, nil
}
