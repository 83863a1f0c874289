package rma

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// Notifications: a target learns that data has come, without a message and without polling the data.
//
// # Protocol
//
// In the window's control segment each rank has NotifySlots counters, which only grow (modulo 2^32). Every rank adds to them, only their
// owner takes: it counts in its own memory what it has taken of each. It also has there how many of its waits for notifications
// are under way (waiting), so that nobody rings a rank that sleeps for another reason.
//
//   - Notify(r, slot): the caller has written its data to r before, and the data is there (a flush has ended). It adds 1 to
//     the counter, then reads waiting, and rings r if that is not 0. Where no memory is shared with r, it sends a message, and r's
//     process does that.
//   - TakeNotified(slot, n): takes n, by compare-and-swap, if the counter is that far beyond what was taken. Else it has no effect. The
//     adding and the reading are sequentially consistent, so who takes a notification finds the data that was written before.
//     A thread that does not need what it has taken gives it back, and rings.
//
// A waiter adds 1 to waiting before it looks at the counter, and takes it off when it waits no more. It sleeps on its doorbell, like in
// every wait; job.Rank.Ring says why no wake-up is lost. A rank that dies has notified, or has not. A collective reset takes all that
// there is.

// NotifySlots is how many counters a rank has in each window.
const NotifySlots = 256

// NotifyBox is what the control segment has of a rank: the counters of its notifications, and how many of its waits for them are under
// way. The hot calls use it.
type NotifyBox struct {
	Counters [NotifySlots]uint32
	Waiting  uint32
	_        [15]uint32 // the next one is on another cache line
}

const notifyBytes = int(unsafe.Sizeof(NotifyBox{}))

// notifications is a rank's view of the notifications in one window.
type notifications struct {
	boxes []*NotifyBox        // by rank; those of ranks on other nodes are not used
	taken [NotifySlots]uint32 // of this rank's
}

func (n *notifications) init(mem []byte, at []int) {
	for _, a := range at {
		n.boxes = append(n.boxes, (*NotifyBox)(unsafe.Pointer(&mem[a])))
	}
}

// CheckSlot returns an error if there is no such slot.
func CheckSlot(call string, slot int) *errs.Error {
	if slot < 0 || slot >= NotifySlots {
		return errs.New(errs.Arg, "%s: slot %d; a window has the slots 0 to %d", call, slot, NotifySlots-1)
	}
	return nil
}

// CheckNotify returns an error if rank can't be notified now.
func (w *Win) CheckNotify(rank, slot int) *errs.Error {
	if e := CheckSlot("put_notify", slot); e != nil {
		return e
	}
	if rank < 0 || rank >= w.Size {
		return w.NoRank("the target rank", rank)
	}
	if w.held[rank] == heldNone {
		return errs.New(errs.RMASync, "put_notify: rank %d is not locked: call Lock(%d) or Lock_all before", rank, rank)
	}
	return nil
}

// Notify adds 1 to a counter of rank. All operations that it is to follow have completed there.
func (w *Win) Notify(rank, slot int) *errs.Error {
	if e := w.CheckNotify(rank, slot); e != nil {
		return e
	}
	world := w.World[rank]
	switch {
	case w.rma.eng.Gone(world):
		return errs.New(errs.ProcFailed, "put_notify: %s (rank %d of the window)", w.rma.eng.HowGone(world), rank)
	case rank != w.Rank && w.rma.eng.Remote(world):
		h := w.header(fabric.KindNotify)
		h.Aux = uint32(slot)
		if _, err := w.rma.eng.Send(world, &h, nil, nil, nil); err != nil {
			return errs.New(errs.ProcFailed, "put_notify: rank %d of the window: %v", rank, err)
		}
	default:
		w.notified(rank, slot)
	}
	return nil
}

// notified counts a notification of a rank on this node.
func (w *Win) notified(rank, slot int) { w.notify.add(rank, w.ranks[rank], slot) }

func (n *notifications) add(rank int, r *job.Rank, slot int) {
	box := n.boxes[rank]
	atom.Add32(&box.Counters[slot], 1)
	if atom.Load32(&box.Waiting) != 0 {
		r.Ring()
	}
}

// Ring wakes the threads of a rank of this node that sleep in a wait.
func (w *Win) Ring(rank int) { w.ranks[rank].Ring() }

// ringAll wakes the threads of all ranks of this node that sleep in a wait.
func (w *Win) ringAll() {
	for _, r := range w.ranks {
		r.Ring()
	}
}

// onNotify handles the message of a rank on another node.
func (m *RMA) onNotify(src int, h *fabric.Header, _ []byte) {
	w := m.window(h.Ctx)
	if w != nil && h.Src >= 0 && int(h.Src) < w.Size && w.World[h.Src] == src && h.Aux < NotifySlots {
		w.notified(w.Rank, int(h.Aux))
	}
}

// Notified returns how many notifications have come to a slot of this rank and have not been taken.
func (w *Win) Notified(slot int) int {
	taken := atom.Load32(&w.notify.taken[slot]) // first: another thread may take what has come meanwhile
	return int(atom.Load32(&w.notify.boxes[w.Rank].Counters[slot]) - taken)
}

// AwaitNotified begins (1) or ends (-1) a wait for notifications of this rank.
func (w *Win) AwaitNotified(d int) { w.notify.await(w.Rank, d) }

func (n *notifications) await(me, d int) { atom.Add32(&n.boxes[me].Waiting, uint32(d)) }

// TakeNotified takes n notifications from a slot of this rank, and reports whether there were so many.
func (w *Win) TakeNotified(slot, n int) bool { return w.notify.take(w.Rank, slot, uint32(n)) }

func (n *notifications) take(me, slot int, count uint32) bool {
	for {
		taken := atom.Load32(&n.taken[slot])
		if atom.Load32(&n.boxes[me].Counters[slot])-taken < count {
			return false
		}
		if atom.CAS32(&n.taken[slot], taken, taken+count) { // other threads of this rank take, too
			return true
		}
	}
}

// GiveBackNotified gives back what TakeNotified has taken.
func (w *Win) GiveBackNotified(slot, n int) {
	w.notify.giveBack(w.ranks[w.Rank], slot, uint32(n))
}

func (n *notifications) giveBack(me *job.Rank, slot int, count uint32) {
	atom.Add32(&n.taken[slot], -count)
	me.Ring() // other threads may wait for them
}

// CheckNotified returns an error if a rank of the window has failed: it may have been meant to notify this one.
func (w *Win) CheckNotified() *errs.Error {
	living := w.Size == 1
	for r, world := range w.World {
		switch {
		case r == w.Rank:
		case w.rma.eng.Failed(world):
			return errs.New(errs.ProcFailed, "notifications may not come: %s (rank %d of the window)", w.rma.eng.HowGone(world), r)
		case !w.rma.eng.Gone(world):
			living = true
		}
	}
	if !living {
		return errs.New(errs.ProcFailed, "no notification can come: all other ranks of the window have ended")
	}
	return nil
}

// reset takes what has come before a collective reset.
func (n *notifications) reset(me int) {
	for slot := range n.taken {
		atom.Store32(&n.taken[slot], atom.Load32(&n.boxes[me].Counters[slot]))
	}
}
