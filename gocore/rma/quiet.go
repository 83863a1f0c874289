package rma

import (
	"bytes"

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

// quietBytes is how long a put may be to travel so. Longer ones cost both sides
// more than the system call.
const quietBytes = 1024

// quietly puts origin by a message that is not answered, and tells whether it
// did.
func (w *Win) quietly(origin p2p.Buf, s Spot, to place) bool {
	n := origin.Bytes()
	if !w.settles || n > quietBytes || w.Desc.Open != openFence && w.Desc.Target(to.rank).Open != TargetStarted ||
		!origin.Type.Dense() || !s.Type.Dense() {
		return false
	}
	h := w.header(fabric.KindPut)
	h.Flags, h.Aux, h.A, h.B, h.Len = 0, w.fences, uint64(to.off), 1, uint64(n)
	if !w.rma.eng.TryPost(w.World[to.rank], &h, engine.Bytes(origin.Addr, n)) {
		return false
	}
	atom.Add32(&w.general.inboxes[to.rank][w.Rank].puts, 1)
	return true
}

// early is a put of an origin that is one fence ahead.
type early struct {
	at   uint64
	data []byte
}

// takeQuiet is the target's side, under the poll lock.
func (w *Win) takeQuiet(h *fabric.Header, payload []byte) {
	if h.Src < 0 || int(h.Src) >= w.Size {
		return
	}
	if h.Aux == w.fences {
		w.deliver(h.A, payload)
	} else {
		w.early = append(w.early, early{h.A, bytes.Clone(payload)})
	}
	w.settled[h.Src].Add(1)
}

// deliver writes what came in a message; what would go outside was refused by
// the origin.
func (w *Win) deliver(at uint64, data []byte) {
	if p := w.inside(at, uint64(len(data))); p != nil {
		copy(engine.Bytes(p, len(data)), data)
	}
}

// Settle completes, at the end of an active-target epoch, the puts that came as
// messages. A fence is counted.
func (w *Win) Settle(fence bool) {
	if !w.settles {
		return
	}
	for s := range w.general.inbox {
		for int32(atom.Load32(&w.general.inbox[s].puts)-w.settled[s].Load()) > 0 {
			w.rma.eng.PollSure()
		}
	}
	if !fence {
		return
	}
	for r := range w.Size {
		w.Desc.Target(r).Flags &^= TargetCopy
	}
	w.rma.eng.Exclude(func() {
		w.fences++
		for _, e := range w.early {
			w.deliver(e.at, e.data)
		}
		w.early = nil
	})
	atom.Store32(&w.locks[w.Rank].words.fences, w.fences)
}

// ErrUnsettled is what Put returns, without having done anything, if it has to
// copy to a rank that is not Settled.
var ErrUnsettled = errs.New(errs.Intern, "the target has not left the last fence")

// Settled tells whether rank's memory is as the last fence left it, so that it
// can be copied from and to.
func (w *Win) Settled(rank int) bool {
	return !w.settles || uint(rank) >= uint(w.Size) || atom.Load32(&w.locks[rank].words.fences) == w.fences || rank == w.Rank
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
