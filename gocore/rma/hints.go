package rma

import (
	"gormapy/gocore/arena"
	"gormapy/gocore/errs"
)

// Hints are the info hints that the program gives for a window.
type Hints uint32

// The hints, by the names of their info keys; the alignment is in Offer.Align.
const (
	HintNoLocks    Hints = 1 << iota // no_locks; of this rank alone
	HintSameSize                     // same_size
	HintSameUnit                     // same_disp_unit
	HintNoncontig                    // alloc_shared_noncontig
	HintNICAtomics                   // gormapy_native_atomics=true, see nicatomics.go
	HintSoftware                     // gormapy_native_atomics=false
)

// agreed are the hints that all ranks of a window must give alike.
const agreed = HintSameSize | HintSameUnit | HintNoncontig | HintNICAtomics | HintSoftware

var hintNames = map[Hints]string{HintSameSize: "same_size", HintSameUnit: "same_disp_unit", HintNoncontig: "alloc_shared_noncontig",
	HintNICAtomics: "gormapy_native_atomics", HintSoftware: "gormapy_native_atomics=false"}

// checkHints returns an error if ranks give different hints, or hints that do not
// hold.
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

// Alignment returns the alignment of the window's segment and of each rank's part in
// it: the largest that any rank asks for, at least a page.
func Alignment(offers []Offer) int {
	align := 4096
	for i := range offers {
		align = max(align, int(offers[i].Align))
	}
	return align
}

// SetNoLocks sets the hint no_locks of this rank.
func (w *Win) SetNoLocks(on bool) { w.noLocks.Store(on) }

// mayLock returns an error if the hint no_locks is set.
func (w *Win) mayLock(call string) *errs.Error {
	if w.noLocks.Load() {
		return errs.New(errs.RMASync, "%s: the window's info says no_locks=true, so it can't be locked; make it without that hint, or Set_info no_locks=false", call)
	}
	return nil
}
