package rma

import (
	"gormapy/gocore/arena"
	"gormapy/gocore/errs"
)

// Hints are what the program says about a window, with MPI's names for them.
type Hints uint32

// The hints; alignment is beside them in Offer.
const (
	HintNoLocks    Hints = 1 << iota // no_locks; of this rank alone
	HintSameSize                     // same_size
	HintSameUnit                     // same_disp_unit
	HintNoncontig                    // alloc_shared_noncontig
	HintNICAtomics                   // gormapy_native_atomics=true, see nicatomics.go
	HintSoftware                     // gormapy_native_atomics=false
)

// agreed are the hints that a window has on all ranks or on none.
const agreed = HintSameSize | HintSameUnit | HintNoncontig | HintNICAtomics | HintSoftware

var hintNames = map[Hints]string{HintSameSize: "same_size", HintSameUnit: "same_disp_unit", HintNoncontig: "alloc_shared_noncontig",
	HintNICAtomics: "gormapy_native_atomics", HintSoftware: "gormapy_native_atomics=false"}

// checkHints finds where ranks say different things, and what they say that is
// not so.
func checkHints(offers []Offer) *errs.Error {
	first := &offers[0]
	for i := range offers {
		o := &offers[i]
		if differ := (o.Hints ^ first.Hints) & agreed; differ != 0 {
			hint := differ & -differ
			return errs.New(errs.InfoValue, "info: %s is %t on rank 0 and %t on rank %d; all ranks have to give the same",
				hintNames[hint], first.Hints&hint != 0, o.Hints&hint != 0, i)
		}
		if o.Hints&HintSameSize != 0 && o.Bytes != first.Bytes {
			return errs.New(errs.Size, "info: same_size is true, but rank 0 has %d bytes and rank %d has %d", first.Bytes, i, o.Bytes)
		}
		if o.Hints&HintSameUnit != 0 && o.Unit != first.Unit {
			return errs.New(errs.Disp, "info: same_disp_unit is true, but it is %d on rank 0 and %d on rank %d", first.Unit, o.Unit, i)
		}
		if o.Align < 0 || o.Align > arena.MaxAlign || o.Align&(o.Align-1) != 0 {
			return errs.New(errs.InfoValue, "info: mpi_minimum_memory_alignment is %d on rank %d; it must be a power of two up to %d", o.Align, i, arena.MaxAlign)
		}
	}
	return nil
}

// Alignment is what the window's segment and each rank's part in it are aligned
// to: what the rank with the largest wish wants, a page at least.
func Alignment(offers []Offer) int {
	align := 4096
	for i := range offers {
		align = max(align, int(offers[i].Align))
	}
	return align
}

// SetNoLocks says whether this rank's program has promised to lock nothing.
func (w *Win) SetNoLocks(on bool) { w.noLocks.Store(on) }

// mayLock fails if the program has promised not to.
func (w *Win) mayLock(call string) *errs.Error {
	if w.noLocks.Load() {
		return errs.New(errs.RMASync, "%s: the window's info says no_locks=true, so it can't be locked; make it without that hint, or Set_info no_locks=false", call)
	}
	return nil
}
