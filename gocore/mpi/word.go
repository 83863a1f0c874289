package mpi

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// Words are counters of 8 bytes in the memory of a window that all ranks map. The
// channels and slots of gormapy.slots use them. The shim (word.c) loads, stores and
// adds to words; this file finds them, waits for them, and wakes waiters.
//
// # Protocol
//
// A word belongs to the rank in whose memory it lies. Any rank may change it, by one
// sequentially consistent instruction after the data that it announces, and then
// rings the owner's doorbell if the owner sleeps (job.Rank.Ring). Only the owner is
// woken: a rank that waits for another one's word has to read it from time to time,
// by waits with a time limit. A wait that finds its peers gone reads the word once
// more, so it sees what a rank announced before it ended.

// wordOp is a wait for a word. It also completes when the time is up; the caller reads
// the word.
type wordOp struct {
	word  *uint64
	value int64
	until int64 // by job.Now; 0: for ever
	win   *Window
	peers []int32 // ranks of the window that can change the word; none: all
	label string
}

func (o *wordOp) Advance() bool {
	return int64(atom.Load64(o.word)) >= o.value || o.until != 0 && job.Now() >= o.until
}

// Check returns an error if all peers that can change the word have ended.
func (o *wordOp) Check() error {
	for _, p := range o.peers {
		if !proc.eng.Gone(o.win.World[p]) {
			return nil
		}
	}
	if len(o.peers) == 0 || int64(atom.Load64(o.word)) >= o.value {
		return nil // a peer has changed it since Advance, and ended
	}
	how := proc.eng.HowGone(o.win.World[o.peers[0]])
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

// WordWait waits until the word at addr is value or more, or for timeout nanoseconds
// (negative: for ever); like Blocking.
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

// WordSleepers returns where the number of a rank's sleeping callers lies, nil if there
// is no such rank. The shim reads it after it has changed a word of that rank.
func WordSleepers(h int64, rank int) (at unsafe.Pointer) {
	var code Code
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size {
		return nil
	}
	return unsafe.Pointer(&proc.eng.Job.Rank(win.World[rank]).Sleepers)
}

// WordRing wakes a rank's sleeping callers; those of all ranks if rank is negative.
func WordRing(h int64, rank int) {
	var code Code
	defer Contain(&code)
	win, e := getWin(h)
	if e != nil || rank >= win.Size {
		return
	}
	if rank >= 0 {
		proc.eng.Job.Rank(win.World[rank]).Ring()
		return
	}
	for _, r := range win.World {
		proc.eng.Job.Rank(r).Ring()
	}
}

// CoresShared reports whether ranks have to share cores, so that polling a word keeps
// the processor from the rank that would change it.
func CoresShared() bool { return state.Load() != stateReady || proc.eng.CoresShared() }

// WinAddress sets *addr to where this process maps n bytes of a rank's part of a
// window; to 0 if it does not map them.
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

// WinGone returns how a rank of a window has ended, "" while it has not.
func WinGone(h int64, rank int) string {
	win, e := getWin(h)
	if e != nil || rank < 0 || rank >= win.Size || !proc.eng.Gone(win.World[rank]) {
		return ""
	}
	return proc.eng.HowGone(win.World[rank])
}
