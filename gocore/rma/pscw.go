package rma

import (
	"fmt"
	"slices"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// pscw is Post/Start/Complete/Wait (PSCW), which MPI calls general active target
// synchronization.
//
// # Protocol
//
// In the window's control segment each rank r has an inbox with two counters for
// each rank s of the window. Only s writes them, and they only grow (modulo
// 2^32): posts, how often s has exposed its part to r; completions, how often s
// has completed an access epoch on r's part. In its own memory each rank counts how
// many of them it has consumed: taken[s] of s's posts; and how many it expects:
// due[s] of s's completions.
//
//   - Post(G): for each s in G adds 1 to due[s] and to posts in s's inbox, and
//     rings s. It waits for nothing.
//   - Start(G): waits until posts of each s in G is beyond taken[s], then adds 1
//     to each taken[s]. Until then nothing is taken: a Start that is interrupted
//     or fails has no effect. With MODE_NOCHECK it does not wait.
//   - Complete: waits until all operations have completed at their targets, then
//     adds 1 to completions in the inbox of each s in G, and rings s.
//   - Wait and Test: wait for, or test, that all completions have reached due.
//
// No rank can post again while another still accesses its previous exposure: Wait
// has to end first, and that requires the other's Complete. A post that the other
// rank takes later is not lost, since posts are counted.
//
// A rank that waits for one that has ended gets an error. Wait gives up the ended
// rank; the exposure continues for the living ones until the next Wait, or is over
// if there are none. Start has no effect; Complete ends the epoch nevertheless.
type pscw struct {
	me      int
	ranks   []*job.Rank
	dead    func(rank int) bool
	inboxes [][]counters // by rank, and by the rank that writes
	inbox   []counters   // this rank's
	taken   []uint32
	due     []uint32
	started bool
	targets []int // of the access epoch
	exposed bool
	origins []int // of the exposure epoch
	// tell sends a message to a rank that is reached by a network, which then adds 1
	// to the counter in its inbox. It returns false if the rank shares memory.
	tell func(rank int, completed bool) bool
}

type counters struct {
	posts, completions uint32
	puts               uint32 // see unacked.go
	_                  uint32
}

// inboxBytes returns the size of one rank's inbox for n ranks in the segment.
func inboxBytes(n int) int { return (n*int(unsafe.Sizeof(counters{})) + 63) / 64 * 64 }

func (p *pscw) init(me int, ranks []*job.Rank, dead func(rank int) bool, mem []byte, at []int) {
	n := len(ranks)
	p.me, p.ranks, p.dead = me, ranks, dead
	p.taken, p.due, p.inboxes = make([]uint32, n), make([]uint32, n), make([][]counters, 0, n)
	for r := range n {
		box := unsafe.Slice((*counters)(unsafe.Pointer(&mem[at[r]])), n)
		p.inboxes = append(p.inboxes, box)
	}
	p.inbox = p.inboxes[me]
}

// posted reports whether s has exposed its part to this rank for an access epoch that
// has not begun.
func (p *pscw) posted(s int) bool {
	return int32(atom.Load32(&p.inbox[s].posts)-p.taken[s]) > 0
}

// completed reports whether s has completed its access to this rank's exposures.
func (p *pscw) completed(s int) bool {
	return int32(atom.Load32(&p.inbox[s].completions)-p.due[s]) >= 0
}

// post begins an exposure epoch.
func (p *pscw) post(origins []int) {
	p.exposed, p.origins = true, origins
	for _, s := range origins {
		p.due[s]++
		if p.tell == nil || !p.tell(s, false) {
			atom.Add32(&p.inboxes[s][p.me].posts, 1)
			p.ranks[s].Ring()
		}
	}
}

// count adds 1 to a counter in this rank's inbox, for rank s that shares no memory
// and has posted or completed.
func (p *pscw) count(s int, completed bool) {
	if completed {
		atom.Add32(&p.inbox[s].completions, 1)
	} else {
		atom.Add32(&p.inbox[s].posts, 1)
	}
}

// start begins an access epoch and returns -1. If check is set and a post is missing,
// it does nothing and returns that rank.
func (p *pscw) start(targets []int, check bool) (missing int) {
	if check {
		for _, s := range targets {
			if !p.posted(s) {
				return s
			}
		}
	}
	for _, s := range targets {
		p.taken[s]++
	}
	p.started, p.targets = true, targets
	return -1
}

// complete ends the access epoch.
func (p *pscw) complete() {
	for _, s := range p.targets {
		if p.tell == nil || !p.tell(s, true) {
			atom.Add32(&p.inboxes[s][p.me].completions, 1)
			p.ranks[s].Ring()
		}
	}
	p.started, p.targets = false, nil
}

// wait ends the exposure epoch and returns -1. If a completion is missing, it does
// nothing and returns that rank.
func (p *pscw) wait() (missing int) {
	for _, s := range p.origins {
		if !p.completed(s) {
			return s
		}
	}
	p.exposed, p.origins = false, nil
	return -1
}

// deserted gives up an origin that has ended without completing and returns it, or -1
// if there is none.
func (p *pscw) deserted() int {
	for i, s := range p.origins {
		if s != p.me && p.dead(s) && !p.completed(s) {
			p.due[s] = atom.Load32(&p.inbox[s].completions)
			p.origins = slices.Delete(slices.Clone(p.origins), i, i+1)
			p.exposed = len(p.origins) > 0
			return s
		}
	}
	return -1
}

func (p *pscw) reset() {
	p.started, p.exposed, p.targets, p.origins = false, false, nil, nil
	clear(p.taken)
	clear(p.due)
	for _, box := range p.inboxes {
		clear(box)
	}
}

// Post exposes this rank's part to origins, ranks of the window.
func (w *Win) Post(origins []int, assert int) *errs.Error {
	p := &w.pscw
	if e := CheckAssert(assert); e != nil {
		return e
	}
	if p.exposed {
		return errs.New(errs.RMASync, "Post: this process exposes its part already by an earlier Post; Wait first")
	}
	w.closeFence()
	p.post(origins)
	return nil
}

// Start is an access epoch that is about to begin, polled until it has.
type Start struct {
	w       *Win
	targets []int
	check   bool
	err     *errs.Error
}

// Start begins to access targets, ranks of the window.
func (w *Win) Start(targets []int, assert int) (*Start, *errs.Error) {
	if e := CheckAssert(assert); e != nil {
		return nil, e
	}
	if s := w.inAccess(); s != "" {
		return nil, errs.New(errs.RMASync, "Start: %s", s)
	}
	return &Start{w: w, targets: targets, check: assert&ModeNoCheck == 0}, nil
}

// Advance reports whether the epoch has begun, or never will (Err).
func (s *Start) Advance() bool {
	p := &s.w.pscw
	if s.err != nil || p.started {
		return true
	}
	if p.start(s.targets, s.check) >= 0 {
		return false
	}
	s.w.closeFence()
	for _, r := range s.targets {
		s.w.Desc.Target(r).Open |= TargetStarted
	}
	return true
}

// Check returns an error if the epoch can't begin: a target has ended.
func (s *Start) Check() error {
	w := s.w
	for _, r := range s.targets {
		if r != w.Rank && w.pscw.dead(r) && !w.pscw.posted(r) {
			s.err = errs.New(errs.ProcFailed, "Start: rank %d of the window will not post: %s", r, w.rma.eng.HowGone(w.World[r]))
			return s.err
		}
	}
	return nil
}

// Abandon gives up. The epoch has had no effect.
func (s *Start) Abandon() {}

// Err returns the error of an epoch that can't begin.
func (s *Start) Err() *errs.Error { return s.err }

// Awaited returns a rank whose Post is missing, or -1.
func (s *Start) Awaited() int {
	for _, r := range s.targets {
		if !s.w.pscw.posted(r) {
			return r
		}
	}
	return -1
}

// CheckComplete returns an error if Complete can't be called.
func (w *Win) CheckComplete() *errs.Error {
	if !w.pscw.started {
		return errs.New(errs.RMASync, "Complete without Start")
	}
	return nil
}

// Complete ends the access epoch. All operations must have completed.
func (w *Win) Complete() {
	p := &w.pscw
	for _, s := range p.targets {
		w.Desc.Target(s).Open &^= TargetStarted
	}
	p.complete()
}

// CheckExposed returns an error if Wait or Test can't be called.
func (w *Win) CheckExposed(call string) *errs.Error {
	if !w.pscw.exposed {
		return errs.New(errs.RMASync, "%s without Post", call)
	}
	return nil
}

// Exposed is an exposure epoch that Wait or Test ends, polled until it has ended.
type Exposed struct {
	w   *Win
	err *errs.Error
}

// Exposed begins to wait for the end of the exposure epoch.
func (w *Win) Exposed() *Exposed { return &Exposed{w: w} }

// Advance reports whether all origins have completed their access.
func (x *Exposed) Advance() bool {
	switch {
	case x.err != nil || !x.w.pscw.exposed:
		return true
	case x.w.pscw.wait() >= 0:
		return false
	}
	x.w.Settle(false)
	return true
}

// Check returns an error if the epoch can't end: an origin has ended.
func (x *Exposed) Check() error {
	w := x.w
	if s := w.pscw.deserted(); s >= 0 {
		more := ""
		if w.pscw.exposed {
			more = fmt.Sprintf("; %d of the other ranks may still access it: Wait for them", len(w.pscw.origins))
		}
		x.err = errs.New(errs.ProcFailed, "Wait: rank %d of the window will not complete its access: %s%s", s, w.rma.eng.HowGone(w.World[s]), more)
		return x.err
	}
	return nil
}

// Abandon gives up waiting. The exposure continues.
func (x *Exposed) Abandon() {}

// Err returns the error of an exposure that an origin left by ending.
func (x *Exposed) Err() *errs.Error { return x.err }

// Awaited returns a rank whose Complete is missing, or -1.
func (x *Exposed) Awaited() int {
	p := &x.w.pscw
	for _, s := range p.origins {
		if !p.completed(s) {
			return s
		}
	}
	return -1
}
