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

// Small puts in active-target epochs, to targets that are reached by the
// kernel's copies. There the target calls Fence or Wait before it looks, so that
// a put may travel as a message, at a tenth of the price of a system call; and
// nobody answers it.
//
// # Protocol
//
// The origin puts the message into the target's ring and then adds 1 to puts in
// its slip in the target's inbox (see general). That is before it comes to the
// fence, or completes. The target counts in settled, by origin, what its handler
// has taken. Once its fence has been passed, or all origins have completed, it
// polls until settled has come up to puts. The messages are in its rings by
// then: this waits for no other rank. Where the ring has no room, the origin
// copies through the kernel, as in passive-target epochs.
//
// Ranks leave a fence one after the other, and the first may go on before the
// last has taken its messages from before the fence. So each rank counts the
// fences that it has settled, and publishes the number with its locks. A message
// carries its origin's. The target writes it to its memory at once if the
// numbers are equal; if the origin is ahead (by one: it can't pass the next
// fence before the target has come there), it keeps it until it has settled that
// fence, too. Who accesses the target's memory by copies waits until the target's
// number has come up to its own (Settled): the target is in the fence and needs
// nobody to leave it.
//
// In general active target synchronization a target settles in Wait, before it
// can post again, and nobody can be ahead of it.
//
// An origin that dies between message and count leaves settled ahead of puts,
// which is as good as settled; nobody else's count is concerned.
//
// A rank that gives up a fence which it has entered (Ctrl-C, or the end of another
// rank) is out of step: others may have passed it. Until a collective reset it
// sends no such messages, takes those of others at once, waits for nobody to have
// settled, and has outOfStep in its number, so that nobody waits for it. What the
// window then holds is not defined, but it can be used.

// unacked is a rank's view of that, in one window.
type unacked struct {
	on      bool // some target is reached by copies: the same on all ranks
	me      int
	inboxes [][]counters // by rank, and by who wrote there
	numbers []*uint32    // by rank: the fences that it has settled
	settled []atomic.Uint32
	fences  uint32
	lost    bool // out of step
	early   []early

	// Of the engine, and of the window: write what came in a message.
	poll    func()
	exclude func(func())
	deliver func(at uint64, data []byte)
}

// outOfStep is in the number of a rank that has given up a fence.
const outOfStep = 1 << 31

// early is a put of an origin that is one fence ahead.
type early struct {
	at   uint64
	data []byte
}

// sent takes note that a message is in target's ring.
func (q *unacked) sent(target int) { atom.Add32(&q.inboxes[target][q.me].puts, 1) }

// take is the target's side, under the poll lock: a message that rank src sent
// after as many fences.
func (q *unacked) take(src int, fences uint32, at uint64, data []byte) {
	if src < 0 || src >= len(q.settled) {
		return
	}
	if fences == q.fences || q.lost {
		q.deliver(at, data)
	} else {
		q.early = append(q.early, early{at, bytes.Clone(data)})
	}
	q.settled[src].Add(1)
}

// settle takes all that was sent before the end of the epoch. A fence is
// counted.
func (q *unacked) settle(fence bool) {
	for s := range q.settled {
		for int32(atom.Load32(&q.inboxes[q.me][s].puts)-q.settled[s].Load()) > 0 {
			q.poll()
		}
	}
	if !fence || q.lost {
		return
	}
	q.exclude(func() {
		q.fences++
		q.deliverEarly()
	})
	atom.Store32(q.numbers[q.me], q.fences)
}

func (q *unacked) deliverEarly() {
	for _, e := range q.early {
		q.deliver(e.at, e.data)
	}
	q.early = nil
}

// quit gives up a fence that was entered.
func (q *unacked) quit() {
	q.exclude(func() {
		q.lost = true
		q.deliverEarly()
	})
	atom.Store32(q.numbers[q.me], q.fences|outOfStep)
}

// done reports whether rank has settled the fences that this one has.
func (q *unacked) done(rank int) bool {
	return rank == q.me || q.lost || q.reached(atom.Load32(q.numbers[rank]))
}

func (q *unacked) reached(number uint32) bool { return number == q.fences || number&outOfStep != 0 }

func (q *unacked) reset() {
	q.fences, q.lost, q.early = 0, false, nil
	for s := range q.settled {
		q.settled[s].Store(0)
	}
}

// unackedBytes is how long a put may be to travel so. Longer ones cost both sides
// more than the system call.
const unackedBytes = 1024

// putUnacked puts origin by a message that is not answered, and reports whether it
// did.
func (w *Win) putUnacked(origin p2p.Buf, s Spot, to place) bool {
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

// deliver writes what came in a message; what would go outside was refused by
// the origin.
func (w *Win) deliver(at uint64, data []byte) {
	if p := w.inside(at, uint64(len(data))); p != nil {
		if err := arrive(p, data); err != nil {
			w.report(w.Rank, errs.New(errs.Buffer, "a put of another rank: %v", err))
		}
	}
}

// Settle completes, at the end of an active-target epoch, the puts that came as
// messages. A fence is counted.
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

// ErrUnsettled is what Put returns, without having done anything, if it has to
// copy to a rank that is not Settled.
var ErrUnsettled = errs.New(errs.Intern, "the target has not left the last fence")

// Settled reports whether rank's memory is as the last fence left it, so that it
// can be copied from and to.
func (w *Win) Settled(rank int) bool {
	return !w.unacked.on || uint(rank) >= uint(w.Size) || w.unacked.done(rank)
}

// copied takes note that the kernel copies to and from rank.
func (w *Win) copied(rank int) {
	if w.Flavor == FlavorCreate {
		w.Desc.Target(rank).Flags |= TargetCopy
	}
}

// CheckSettled tells why it never will be.
func (w *Win) CheckSettled(rank int) error {
	if !w.rma.eng.Gone(w.World[rank]) || w.Settled(rank) {
		return nil
	}
	return errs.New(errs.ProcFailed, "rank %d of the window did not leave the last fence: %s", rank, w.rma.eng.HowGone(w.World[rank]))
}
