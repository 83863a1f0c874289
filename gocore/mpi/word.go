package mpi

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// Words are counters of 8 bytes in the memory of a window that all ranks map, as
// the channels and slots of gormapy.slots use them. The shim (word.c) loads,
// stores and adds; what is here finds them, waits for them, and wakes waiters.
//
// # Protocol
//
// A word belongs to the rank in whose memory it lies. Any rank changes it, by one
// sequentially consistent instruction after the data that it announces, and then
// rings the owner's doorbell if the owner sleeps (job.Rank.Ring). Only the owner
// is woken: a rank that waits for a word of another one has to look now and then,
// by waits with a time limit. A wait that finds its peers gone looks once more, so
// what a rank announced before it ended is seen.

// wordOp is a wait for a word. It also is complete when time is up: the caller
// looks at the word.
type wordOp struct {
	word  *uint64
	value int64
	until int64 // job.Now's clock; 0: for ever
	win   *Window
	peers []int32 // ranks of the window that can change the word; none: anybody
	label string
}

func (o *wordOp) Advance() bool {
	return int64(atom.Load64(o.word)) >= o.value || o.until != 0 && job.Now() >= o.until
}

// Check fails when none of those that can change the word is left.
func (o *wordOp) Check() error {
	for _, p := range o.peers {
		if !w.eng.Gone(o.win.World[p]) {
			return nil
		}
	}
	if len(o.peers) == 0 || int64(atom.Load64(o.word)) >= o.value {
		return nil // the last of them changed it, and ended, since Advance looked
	}
	how := w.eng.HowGone(o.win.World[o.peers[0]])
	if n := len(o.peers) - 1; n > 0 {
		how += fmt.Sprintf(" (and so have %d others)", n)
	}
	return errs.New(errs.ProcFailed, "%s can't go on: %s", o.label, how)
}

func (o *wordOp) Abandon()         {}
func (o *wordOp) Err() *errs.Error { return nil }

func (o *wordOp) describe(why *engine.Reason) {
	*why = engine.Reason{Call: job.CallWord, Peer: -2, Tag: -1, Ctx: uint64(o.win.ID), Info: o.label, Until: o.until}
	switch {
	case len(o.peers) == 1:
		why.Peer = o.win.World[o.peers[0]]
	case len(o.peers) > 1:
		why.Peer = -1
	}
}

// WordWait waits until the word at addr is value or more, or timeout nanoseconds
// are over (negative: for ever); like Blocking.
func WordWait(h, addr, value, timeout int64, peers []int32, label string, pending *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	for _, p := range peers {
		if p < 0 || int(p) >= win.Size {
			return CodeOf(win.NoRank("the rank to wait for", int(p)))
		}
	}
	o := &wordOp{word: (*uint64)(pointer(addr)), value: value, win: win, peers: peers, label: label}
	if timeout >= 0 {
		o.until = job.Now() + timeout
	}
	r := &Request{op: o}
	code = r.wait(0, nil, 0)
	if code == Interrupted {
		*pending = reqs.add(r)
	}
	return code
}

// WordSleepers is the number of callers of a rank that sleep, for the shim to
// look at after it changed a word of that rank. Nil if there is none.
func WordSleepers(h int64, rank int) (at unsafe.Pointer) {
	var code Code
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size {
		return nil
	}
	return unsafe.Pointer(&w.eng.Job.Ranks[win.World[rank]].Sleepers)
}

// WordRing wakes the callers of a rank that sleep; of all if rank is negative.
func WordRing(h int64, rank int) {
	var code Code
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil || rank >= win.Size {
		return
	}
	if rank >= 0 {
		w.eng.Job.Ranks[win.World[rank]].Ring()
		return
	}
	for _, r := range win.World {
		w.eng.Job.Ranks[r].Ring()
	}
}

// CoresShared reports whether ranks have to share cores, so that looking at a word
// again and again keeps the processor from the rank that would change it.
func CoresShared() bool { return state.Load() != stateReady || w.eng.Shared() }

// WinAddress finds where n bytes of a rank's part of a window are mapped here; 0
// if they are reached in another way.
func WinAddress(h int64, rank int, disp, n int64, addr *int64) (code Code) {
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil {
		return CodeOf(e)
	}
	at, e := win.Address(rank, int(disp), int(n))
	*addr = int64(uintptr(at))
	return CodeOf(e)
}

// WinGone is how a rank of a window's has ended, "" while it has not.
func WinGone(h int64, rank int) string {
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size || !w.eng.Gone(win.World[rank]) {
		return ""
	}
	return w.eng.HowGone(win.World[rank])
}
