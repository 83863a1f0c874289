package rma

import (
	"bytes"
	"sync/atomic"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// Unacknowledged puts: small puts in active-target epochs to targets that are
// reached by the kernel's copies. The target calls Fence or Wait before it reads the
// memory, so a put may travel as a message, which costs a tenth of a system call. The
// target sends no answer.
//
// # Protocol
//
// The origin writes the message into the target's ring and then adds 1 to puts in
// its counters in the target's inbox (see pscw). Both precede its arrival at the
// fence, or its Complete. The target counts in settled, by origin, the messages that
// its handler has taken. Once its fence has been passed, or all origins have
// completed, it polls until settled has reached puts. The messages are in its rings
// by then, so this waits for no other rank. Where the ring has no room, the origin
// copies through the kernel, as in passive-target epochs.
//
// Ranks leave a fence one after the other, and the first may continue before the
// last has taken its messages from before the fence. So each rank counts the fences
// that it has settled, and publishes the number with its locks. A message carries
// its origin's number. If the numbers are equal, the target writes the message to
// its memory at once. If the origin is ahead (by one: it can't pass the next fence
// before the target has reached it), the target keeps the message until it has
// settled that fence, too. An origin that accesses the target's memory by copies
// waits until the target's number has reached its own (Settled): the target is in
// the fence and needs no other rank to leave it. The origin may fall asleep meanwhile:
// it adds 1 to waiting, beside the target's number, before it looks at the number, and
// takes it off when it waits no more. A target that has published its number reads
// waiting, and rings all ranks of the window if that is not 0 (job.Rank.Ring says why
// no wake-up is lost). A rank that dies while it waits is counted for ever, which costs
// the others some rings.
//
// With Post/Start/Complete/Wait (pscw.go) a target settles in Wait, before it can
// post again, so no origin can be ahead of it.
//
// An origin that dies between message and count leaves settled ahead of puts, which
// counts as settled. The counts of other ranks are not affected.
//
// A rank that gives up a fence which it has entered (Ctrl-C, or the end of another
// rank) is out of step: others may have passed the fence. Until a collective reset
// it sends no unacknowledged puts, writes those of others to its memory at once, and
// does not wait for other ranks to settle. Its number has outOfStep, so that no rank
// waits for it. The contents of the window are then undefined, but it can be used.

// unacked is a rank's view of the unacknowledged puts in one window.
type unacked struct {
	on      bool // some target is reached by copies: the same on all ranks
	me      int
	inboxes [][]counters  // by rank, and by the rank that writes
	numbers []*fenceCount // by rank
	settled []atomic.Uint32
	fences  uint32
	lost    bool // out of step
	early   []early

	poll    func()                       // of the engine
	exclude func(func())                 // of the engine
	deliver func(at uint64, data []byte) // of the window: writes a message's data
	ring    func()                       // wakes the ranks of the window that sleep
}

// fenceCount is, in the control segment, how many fences a rank has settled, and how many
// waits of others for that number to grow are under way.
type fenceCount struct {
	number, waiting uint32
}

// outOfStep is in the number of a rank that has given up a fence.
const outOfStep = 1 << 31

// early is a put by an origin that is one fence ahead.
type early struct {
	at   uint64
	data []byte
}

// sent counts a message that is in target's ring.
func (u *unacked) sent(target int) { atom.Add32(&u.inboxes[target][u.me].puts, 1) }

// take handles, at the target and under the poll lock, a message that rank src sent
// after it had settled the given number of fences.
func (u *unacked) take(src int, fences uint32, at uint64, data []byte) {
	if src < 0 || src >= len(u.settled) {
		return
	}
	if fences == u.fences || u.lost {
		u.deliver(at, data)
	} else {
		u.early = append(u.early, early{at, bytes.Clone(data)})
	}
	u.settled[src].Add(1)
}

// settle takes all messages that were sent before the end of the epoch. It counts the
// epoch if a fence ended it.
func (u *unacked) settle(fence bool) {
	for s := range u.settled {
		for int32(atom.Load32(&u.inboxes[u.me][s].puts)-u.settled[s].Load()) > 0 {
			u.poll()
		}
	}
	if !fence || u.lost {
		return
	}
	u.exclude(func() {
		u.fences++
		u.deliverEarly()
	})
	u.publish(u.fences)
}

// publish stores this rank's number, and wakes those who wait for it.
func (u *unacked) publish(number uint32) {
	mine := u.numbers[u.me]
	atom.Store32(&mine.number, number)
	if atom.Load32(&mine.waiting) != 0 {
		u.ring()
	}
}

func (u *unacked) deliverEarly() {
	for _, e := range u.early {
		u.deliver(e.at, e.data)
	}
	u.early = nil
}

// quit gives up a fence that was entered.
func (u *unacked) quit() {
	u.exclude(func() {
		u.lost = true
		u.deliverEarly()
	})
	u.publish(u.fences | outOfStep)
}

// done reports whether rank has settled as many fences as this one.
func (u *unacked) done(rank int) bool {
	return rank == u.me || u.lost || u.reached(atom.Load32(&u.numbers[rank].number))
}

func (u *unacked) reached(number uint32) bool { return number == u.fences || number&outOfStep != 0 }

func (u *unacked) reset() {
	u.fences, u.lost, u.early = 0, false, nil
	for s := range u.settled {
		u.settled[s].Store(0)
	}
}

// unackedBytes is the size up to which a put is unacknowledged. A longer message
// costs both sides more than the system call.
const unackedBytes = 1024

// putUnacked puts origin by an unacknowledged message if it can, and reports whether
// it did.
func (w *Win) putUnacked(origin p2p.Buf, s TargetSpec, to location) bool {
	n := origin.Bytes()
	if !w.unacked.on || w.unacked.lost || n > unackedBytes || w.Desc.Open != openFence && w.Desc.Target(to.rank).Open != TargetStarted ||
		!origin.Type.Dense() || !s.Type.Dense() {
		return false
	}
	h := w.header(fabric.KindPut)
	h.Flags, h.Aux, h.A, h.B, h.Len = 0, w.unacked.fences, uint64(to.off), 1, uint64(n)
	if !w.rma.eng.TrySend(w.World[to.rank], &h, engine.Bytes(origin.Addr, n)) {
		return false
	}
	w.unacked.sent(to.rank)
	return true
}

// deliver writes a message's data to the window. The origin has refused data that
// would lie outside.
func (w *Win) deliver(at uint64, data []byte) {
	if p := w.inside(at, uint64(len(data))); p != nil {
		if err := arrive(p, data); err != nil {
			w.report(w.Rank, errs.New(errs.Buffer, "a put of another rank: %v", err))
		}
	}
}

// Settle completes, at the end of an active-target epoch, the unacknowledged puts to
// this rank. It counts the epoch if a fence ended it.
func (w *Win) Settle(fence bool) {
	if !w.unacked.on {
		return
	}
	if fence {
		for r := range w.Size {
			w.Desc.Target(r).Flags &^= TargetCopy
		}
	}
	w.unacked.settle(fence)
}

// QuitFence gives up a fence that was entered.
func (w *Win) QuitFence() {
	if w.unacked.on {
		w.unacked.quit()
	}
}

// ErrUnsettled is returned by Put if it has to copy to a rank that is not Settled.
// Put has had no effect then.
var ErrUnsettled = errs.New(errs.Intern, "the target has not left the last fence")

// Settled reports whether rank has settled the last fence, so that its memory can be
// copied from and to.
func (w *Win) Settled(rank int) bool {
	return !w.unacked.on || uint(rank) >= uint(w.Size) || w.unacked.done(rank)
}

// AwaitSettled begins (1) or ends (-1) a wait until rank is Settled.
func (w *Win) AwaitSettled(rank, d int) { w.unacked.await(rank, d) }

func (u *unacked) await(rank, d int) { atom.Add32(&u.numbers[rank].waiting, uint32(d)) }

// copied records that the kernel has copied to or from rank.
func (w *Win) copied(rank int) {
	if w.Flavor == FlavorCreate {
		w.Desc.Target(rank).Flags |= TargetCopy
	}
}

// CheckSettled returns an error if rank has ended and will never be Settled.
func (w *Win) CheckSettled(rank int) error {
	if !w.rma.eng.Gone(w.World[rank]) || w.Settled(rank) {
		return nil
	}
	return errs.New(errs.ProcFailed, "rank %d of the window did not leave the last fence: %s", rank, w.rma.eng.HowGone(w.World[rank]))
}
