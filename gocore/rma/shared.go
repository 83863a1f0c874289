package rma

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
)

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
			if at[i] = m.eng.Map(world[i], o.Share, uint64(o.Bytes)); at[i] == nil {
				return nil, false
			}
		}
	}
	return at, true
}

// Address returns where this process maps the n bytes at address addr of target rank,
// which are attached to a dynamic window, or nil if it does not. The address is valid
// as long as the process lives, see engine.Map.
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
