package rma

import (
	"fmt"
	"strings"

	"gormapy/gocore/errs"
)

// The assertions of MPI, numbered as in gormapy.MPI.
const (
	ModeNoCheck   = 1024
	ModeNoStore   = 2048
	ModeNoPut     = 4096
	ModeNoPrecede = 8192
	ModeNoSucceed = 16384
	modeAll       = ModeNoCheck | ModeNoStore | ModeNoPut | ModeNoPrecede | ModeNoSucceed
)

const (
	heldNone uint8 = iota
	heldLock
	heldNoCheck // locked with MODE_NOCHECK: no lock was taken
)

// CheckAssert returns an error if a has flags that do not exist.
func CheckAssert(a int) *errs.Error {
	if a&^modeAll != 0 || a < 0 {
		return errs.New(errs.Assert, "the assertion %d has bits that are no MODE_* flag", a)
	}
	return nil
}

// NoRank returns the error for a rank that the window does not have; what names it.
func (w *Win) NoRank(what string, rank int) *errs.Error {
	there := fmt.Sprintf("its ranks are 0 to %d", w.Size-1)
	if w.Size == 1 {
		there = "its only rank is 0"
	}
	return errs.New(errs.Rank, "%s %d is not in %s: %s%s", what, rank, w.name(), there, w.Hint)
}

// checkTarget returns an error if rank can't be accessed now.
func (w *Win) checkTarget(rank int) *errs.Error {
	if rank < 0 || rank >= w.Size {
		return w.NoRank("the target rank", rank)
	}
	if w.Desc.Open == 0 && w.Desc.Target(rank).Open == 0 {
		if s := w.inAccess(); s != "" {
			return errs.New(errs.RMASync, "rank %d can't be accessed in this epoch, which is not for it: %s", rank, s)
		}
		return errs.New(errs.RMASync, "rank %d can't be accessed outside of an epoch: call Fence on all ranks, or Lock(%d), Lock_all or Start before", rank, rank)
	}
	return nil
}

// CheckFree returns an error if the window can't be freed now.
func (w *Win) CheckFree() *errs.Error {
	if s := w.inAccess(); s != "" {
		return errs.New(errs.RMASync, "Free inside an epoch: %s", s)
	}
	if w.pscw.exposed {
		return errs.New(errs.RMASync, "Free inside an epoch: Post exposes this process's part; Wait first")
	}
	return nil
}

// CheckFence returns an error if a fence can't be called now.
func (w *Win) CheckFence(assert int) *errs.Error {
	if e := CheckAssert(assert); e != nil {
		return e
	}
	if s := w.inAccess(); s != "" {
		return errs.New(errs.RMASync, "Fence inside an epoch: %s", s)
	}
	if w.pscw.exposed {
		return errs.New(errs.RMASync, "Fence inside an epoch: Post exposes this process's part; Wait first")
	}
	return nil
}

// Idle reports whether a fence has nothing to do: no operation precedes it, none
// follows, and all ranks assert both, as MPI requires for these two assertions.
func Idle(assert int) bool {
	return assert&(ModeNoPrecede|ModeNoSucceed) == ModeNoPrecede|ModeNoSucceed
}

// Fenced opens the next epoch after a fence that has completed.
func (w *Win) Fenced(assert int) {
	w.Desc.Open = 0
	if assert&ModeNoSucceed == 0 {
		w.Desc.Open = openFence
	}
}

// Lock is the acquisition of one or all targets, polled until it is done.
type Lock struct {
	w      *Win
	mode   lockMode
	at, to int // targets still to be locked: at, at+1 … to-1
	drawn  bool
	all    bool
	tried  bool // of Lock_all: the remote locks from at on have been tried
	waits  bool // of Lock_all: it waits for its turn at at, and holds no lock behind that
	err    *errs.Error
}

// Lock begins to lock one target. It returns a value, so that locking a free target
// costs no allocation.
func (w *Win) Lock(rank int, excl bool, assert int) (Lock, *errs.Error) {
	if e := CheckAssert(assert); e != nil {
		return Lock{}, e
	}
	if rank < 0 || rank >= w.Size {
		return Lock{}, w.NoRank("Lock: rank", rank)
	}
	if e := w.mayLock("Lock"); e != nil {
		return Lock{}, e
	}
	switch {
	case w.pscw.started:
		return Lock{}, errs.New(errs.RMASync, "Lock of rank %d: %s", rank, w.inAccess())
	case w.lockAll:
		return Lock{}, errs.New(errs.RMASync, "Lock of rank %d: all targets are locked by Lock_all already", rank)
	case w.held[rank] != heldNone:
		return Lock{}, errs.New(errs.RMASync, "Lock of rank %d: this process has locked it already; Unlock(%d) first", rank, rank)
	}
	w.closeFence()
	if assert&ModeNoCheck != 0 {
		w.opened(rank, heldNoCheck)
		return Lock{w: w}, nil
	}
	l := Lock{w: w, at: rank, to: rank + 1}
	if excl {
		l.mode = exclusive
	}
	return l, nil
}

// LockAll begins to lock all targets shared.
func (w *Win) LockAll(assert int) (Lock, *errs.Error) {
	if e := CheckAssert(assert); e != nil {
		return Lock{}, e
	}
	if s := w.inAccess(); s != "" {
		return Lock{}, errs.New(errs.RMASync, "Lock_all: %s", s)
	}
	if e := w.mayLock("Lock_all"); e != nil {
		return Lock{}, e
	}
	w.closeFence()
	if assert&ModeNoCheck != 0 {
		for r := range w.Size {
			w.held[r] = heldNoCheck
		}
		w.lockAll, w.Desc.Open = true, openLockAll
		return Lock{w: w}, nil
	}
	return Lock{w: w, to: w.Size, all: true}, nil
}

func (w *Win) closeFence() { w.Desc.Open = 0 }

func (w *Win) opened(rank int, how uint8) {
	w.held[rank] = how
	w.nheld++
	w.Desc.Target(rank).Open |= TargetLocked
}

// Advance locks as many targets as it can and reports whether it has finished: all
// are locked, or Err is set.
//
// Lock_all waits for the turn of one lock after the other, in the order of ranks: two that
// held each other's locks while they wait behind exclusive ones would never end. But most locks are
// free, and those of remote targets take a round trip each. So these are tried all at
// once, which does not queue. When one has to be waited for, those behind it are given
// back, and tried again when it is held.
func (l *Lock) Advance() bool {
	for l.err == nil && l.at < l.to {
		if l.all && !l.tried {
			l.tryRemote()
		}
		held := false
		if l.w.remoteLocks[l.at] != nil {
			held = l.lockRemote()
		} else {
			held = l.lockLocal()
		}
		if !held {
			return l.err != nil
		}
		if l.waits {
			l.waits, l.tried = false, false
		}
		if l.all {
			l.w.held[l.at] = heldLock
		} else {
			l.w.opened(l.at, heldLock)
		}
		l.at++
		if l.all && l.at == l.to {
			l.w.lockAll, l.w.Desc.Open = true, openLockAll
		}
	}
	return true
}

// lockLocal reports whether the lock at at, of a target that shares memory, is held.
func (l *Lock) lockLocal() bool {
	k := l.w.locks[l.at]
	if !l.drawn {
		if l.mode == shared && k.tryShared() {
			return true
		}
		if !k.begin(l.mode) {
			l.giveBack()
			return false
		}
		l.drawn = true
	}
	if !k.try() {
		l.giveBack()
		return false
	}
	l.drawn = false
	return true
}

// lockRemote reports whether the lock at at, of a remote target, is held. It sets err if that
// never will be.
func (l *Lock) lockRemote() bool {
	remote := l.w.remoteLocks[l.at]
	switch remote.state() {
	case remoteGranted:
		return true
	case remoteRefused:
		l.err = l.refused(l.at, int(remote.holder.Load()))
		l.Abandon()
	case remoteBusy:
		l.giveBack()
		remote.unlock()
		remote.ask(askShared)
	case remoteIdle:
		what := askShared
		if l.mode == exclusive {
			what = askExclusive
		}
		remote.ask(what)
	}
	return false
}

// tryRemote tries all remote locks from at on.
func (l *Lock) tryRemote() {
	for _, remote := range l.w.remoteLocks[l.at:] {
		if remote != nil {
			remote.ask(askTry)
		}
	}
	l.tried = true
}

// giveBack releases the remote locks behind at, which Lock_all is going to wait for.
func (l *Lock) giveBack() {
	if !l.all || l.waits {
		return
	}
	l.waits = true
	for _, remote := range l.w.remoteLocks[l.at+1:] {
		if remote != nil {
			remote.unlock()
		}
	}
}

// Err returns the error of a lock that can't be acquired.
func (l *Lock) Err() *errs.Error { return l.err }

// Target returns the rank whose lock is waited for.
func (l *Lock) Target() int { return min(l.at, l.w.Size-1) }

// Holders returns the ranks of the window that hold the lock of target now, for
// messages to the user.
func (w *Win) Holders(target int) []int {
	if target < 0 || target >= len(w.locks) || w.locks[target] == nil {
		return nil
	}
	return w.locks[target].holders()
}

// Ahead returns how many turns come before this rank's, 0 if it waits for none.
func (l *Lock) Ahead() int {
	if l.at >= l.to || !l.drawn || l.w.remoteLocks[l.at] != nil {
		return 0
	}
	return int(l.w.locks[l.at].ahead())
}

// Check skips the turns of dead ranks. A dead exclusive holder left its target's
// memory as it was when it died: the one rank that finds that gets an error, and the
// lock is free from then on.
func (l *Lock) Check() error {
	if l.at >= l.to {
		return nil
	}
	w := l.w
	dead := func(i int) bool { return i != w.Rank && w.rma.eng.Gone(w.World[i]) }
	holder := -1
	if w.remoteLocks[l.at] == nil { // else the proxy does it
		holder = w.locks[l.at].skip(dead)
	}
	if dead(l.at) {
		l.Abandon()
		l.err = errs.New(errs.ProcFailed, "rank %d of the window can't be locked: %s", l.at, w.rma.eng.HowGone(w.World[l.at]))
		return l.err
	}
	if holder >= 0 {
		l.Abandon()
		l.err = l.refused(l.at, holder)
		return l.err
	}
	return nil
}

// Abandon gives up waiting. For Lock_all it releases the targets already locked.
func (l *Lock) Abandon() {
	if l.at >= l.to {
		return
	}
	if l.drawn {
		l.w.locks[l.at].leave()
		l.drawn = false
	}
	if remote := l.w.remoteLocks[l.at]; remote != nil && !l.all {
		remote.unlock()
	}
	if l.all {
		for r := range l.at {
			l.w.release(r)
			l.w.held[r] = heldNone
		}
		for _, remote := range l.w.remoteLocks[l.at:] {
			if remote != nil {
				remote.unlock()
			}
		}
	}
	l.to = l.at
}

// CheckPassive returns an error if the request-based call can't be made now: MPI
// allows it in passive-target epochs only.
func (w *Win) CheckPassive(call string, rank int) *errs.Error {
	if rank < 0 || rank >= w.Size {
		return w.NoRank("the target rank", rank)
	}
	if w.held[rank] == heldNone {
		return errs.New(errs.RMASync, "%s: rank %d is not locked; request-based operations need Lock(%d) or Lock_all (%s is for every epoch)", call, rank, rank, strings.ToUpper(call[1:2])+call[2:])
	}
	return nil
}

// CheckUnlock returns an error if rank can't be unlocked or flushed.
func (w *Win) CheckUnlock(call string, rank int) *errs.Error {
	if rank < 0 || rank >= w.Size {
		return w.NoRank(call+": rank", rank)
	}
	if w.held[rank] == heldNone || (w.lockAll && call == "Unlock") {
		if w.lockAll {
			return errs.New(errs.RMASync, "Unlock of rank %d: it was locked by Lock_all; call Unlock_all", rank)
		}
		return errs.New(errs.RMASync, "%s of rank %d, which is not locked by this process", call, rank)
	}
	return nil
}

// CheckUnlockAll returns an error if Unlock_all or Flush_all can't be called.
func (w *Win) CheckUnlockAll(call string) *errs.Error {
	if call == "Unlock_all" && !w.lockAll {
		return errs.New(errs.RMASync, "Unlock_all without Lock_all")
	}
	if !w.lockAll && w.nheld == 0 {
		return errs.New(errs.RMASync, "%s: no target is locked by this process", call)
	}
	return nil
}

// Unlock releases rank. All operations on it must have completed.
func (w *Win) Unlock(rank int) {
	if w.held[rank] == heldLock {
		w.release(rank)
	}
	w.held[rank] = heldNone
	w.nheld--
	w.Desc.Target(rank).Open &^= TargetLocked
}

// UnlockAll releases all targets. All operations must have completed.
func (w *Win) UnlockAll() {
	for r := range w.Size {
		if w.held[r] == heldLock {
			w.release(r)
		}
		w.held[r] = heldNone
	}
	w.lockAll, w.Desc.Open = false, 0
}

func (w *Win) release(rank int) {
	if remote := w.remoteLocks[rank]; remote != nil {
		remote.unlock()
	} else {
		w.locks[rank].release()
	}
}

// Quiet reports whether all operations on rank (-1: on any rank) have completed.
func (w *Win) Quiet(rank int) bool {
	if w.Desc.Flags&DescCompleteOnReturn != 0 {
		return true
	}
	if rank >= 0 {
		return w.answers[rank].Load() == w.sent[rank].Load() && w.outstanding[rank].Load().Idle()
	}
	for r := range w.sent {
		if !w.Quiet(r) {
			return false
		}
	}
	return true
}

// Sent returns the number of messages sent to rank that require an answer.
func (w *Win) Sent(rank int) uint64 { return w.sent[rank].Load() }

// Answered reports whether rank has answered the first n of them.
func (w *Win) Answered(rank int, n uint64) bool { return int64(w.answers[rank].Load()-n) >= 0 }

// CheckQuiet returns an error if operations on rank (-1: on any rank) can't complete
// because their target has ended. It gives them up.
func (w *Win) CheckQuiet(rank int) error {
	for r := range w.sent {
		if (rank < 0 || r == rank) && !w.Quiet(r) && w.rma.eng.Gone(w.World[r]) {
			w.rma.eng.Exclude(func() { w.giveUp(r) })
			w.Ring(w.Rank) // other threads wait for them, too
			return w.unfinished(r)
		}
	}
	return nil
}

// unfinished is the error of operations on a target that has ended.
func (w *Win) unfinished(r int) *errs.Error {
	return errs.New(errs.ProcFailed, "operations on rank %d of the window can't complete: %s", r, w.rma.eng.HowGone(w.World[r]))
}

// giveUp drops the outstanding operations on a target that has ended. The caller has
// excluded pollers.
func (w *Win) giveUp(r int) {
	w.rma.forget(w, r)
	w.lost[r].CompareAndSwap(0, w.answers[r].Load()+1)
	w.answers[r].Store(w.sent[r].Load())
	w.renewOutstanding(r)
}

// LostError returns the error of an operation on rank that was given up when its target
// ended; nil if it was not. n is the operation's last message, and o counts the rest.
// Such an operation has a full count of answers, so Answered does not show it.
func (w *Win) LostError(rank int, n uint64, o *Outstanding) *errs.Error {
	first := w.lost[rank].Load()
	if first == 0 || int64(n-first) < 0 && (o.Idle() || !o.givenUp()) {
		return nil
	}
	return errs.New(errs.ProcFailed, "the operation on rank %d of the window can't complete: %s", rank, w.rma.eng.HowGone(w.World[rank]))
}

// Failure returns, once, the error of an operation that failed after its call
// returned.
func (w *Win) Failure() *errs.Error {
	if w.failure.Load() == nil {
		return nil
	}
	return w.judge(w.failure.Swap(nil), int(w.culprit.Load()))
}
