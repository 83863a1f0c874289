package rma

import (
	"unsafe"

	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
)

// lock is one rank's view of the reader-writer lock of one target: exclusive and
// shared, first come first served. Each rank has a slot, which shows which ranks
// hold the lock and which died holding it.
//
// # Protocol
//
// Words in the window's control segment: users, the next ticket; serving, the
// ticket whose turn it is; slot[i], a state and a ticket, written by rank i (any
// rank may clear it once rank i is dead or has left the queue).
//
// To acquire the lock shared while no rank has a turn or waits for one, rank i stores
// slot = Joined, and then finds serving == users: since serving is read first, and users is
// never less, both were equal when users was read. A rank that draws a ticket for
// exclusive access after that sees the slot. If they differ, rank i stores slot = 0, wakes
// the rank whose turn it is, and takes a turn.
//
// To acquire by a turn, rank i
//
//  1. stores slot = Intent;
//  2. draws ticket t = users++;
//  3. stores slot = WaitX(t) or WaitS(t);
//  4. waits for serving == t. Shared: stores HeldS(t), then passes the turn on
//     (serving: t to t+1 by compare-and-swap) and wakes the rank with ticket t+1.
//     Exclusive: waits in addition until no other slot has HeldS or Joined (the shared
//     holders drew earlier tickets or none, and no rank can join them, since the turn stays
//     here), then stores HeldX(t).
//
// To release: shared stores slot = 0 and wakes the rank whose turn it is (an
// exclusive waiter may be waiting for readers); exclusive passes the turn on, stores
// slot = 0, wakes the rank with ticket t+1.
//
// Before a waiter sleeps, it skips ranks that will not take their turn:
//
//   - It changes WaitX and WaitS of dead ranks to Left(t), so that a living rank that
//     passes the turn on to them later knows. A rank that gives up waiting (on
//     Ctrl-C) stores Left(t) itself.
//   - If the ticket being served belongs to a slot whose rank is dead or that has
//     Left(t), it passes the turn on for that rank and clears the slot. (If it dies between
//     the two, the rank that has left clears its slot when it comes again.)
//   - If no slot has that ticket, no living rank is between 1 and 3, and a dead one
//     is, the ticket was the dead rank's: it does the same.
//   - It clears the HeldS of a dead rank whose turn has been passed on. Before that,
//     only this slot shows whose turn it is. It clears the Joined of a dead rank.
//
// Each of these is a compare-and-swap from a value that can't return (tickets only
// grow, and a dead rank does not join). So any number of ranks may do it, and the dead rank may have done part of
// it: every step of the owner has the same effect twice as once.
//
// Sleeping is safe because a waiter stores its slot before it reads serving, and a
// rank that changes serving does so before it reads the slots. The same holds for
// clearing HeldS and Joined slots. A rank that finds no slot with the new ticket rings for all
// waiters: the ticket's owner may have died between 1 and 3, and one of them has to
// skip it. Each rank rings for itself when it learns of a death.
type lock struct {
	words  *lockWords
	slots  []uint64
	me     int
	ticket uint32
	mode   lockMode
	ring   func(i int) // wakes the waiter for this lock in slot i, see remotelock.go
}

type lockWords struct {
	users   uint32
	serving uint32
	_       [56]byte
	acc     uint32     // the accumulate lock, see acclock.go
	fences  fenceCount // of the target, see unacked.go
	_       [52]byte
}

type lockMode uint8

const (
	shared lockMode = iota
	exclusive
)

const (
	slotFree uint64 = iota << 32
	slotIntent
	slotWaitX
	slotWaitS
	slotHeldX
	slotHeldS
	slotLeft
	slotJoined
	slotState = uint64(0xffffffff) << 32
)

// lockBytes returns the size of one target's lock for n ranks in the segment.
func lockBytes(n int) int {
	return int(unsafe.Sizeof(lockWords{})) + (8*n+63)/64*64
}

func newLock(mem []byte, me int, ranks []*job.Rank) *lock {
	return &lock{
		words: (*lockWords)(unsafe.Pointer(&mem[0])),
		slots: unsafe.Slice((*uint64)(unsafe.Pointer(&mem[unsafe.Sizeof(lockWords{})])), len(ranks)),
		me:    me,
		ring:  func(i int) { ranks[i].Ring() },
	}
}

// begin draws a ticket. It returns false if the turn that this rank gave up earlier
// has not been skipped yet.
func (l *lock) begin(mode lockMode) bool {
	if s := atom.Load64(&l.slots[l.me]); s != slotFree {
		l.skip(func(int) bool { return false })
		// The rank that skipped the turn may have died before it cleared the slot.
		if s&slotState == slotLeft && int32(atom.Load32(&l.words.serving)-uint32(s)) > 0 {
			atom.CAS64(&l.slots[l.me], s, slotFree)
		}
		if atom.Load64(&l.slots[l.me]) != slotFree {
			return false
		}
	}
	l.mode = mode
	atom.Store64(&l.slots[l.me], slotIntent)
	l.ticket = atom.Add32(&l.words.users, 1) - 1
	state := slotWaitX
	if mode == shared {
		state = slotWaitS
	}
	atom.Store64(&l.slots[l.me], state|uint64(l.ticket))
	return true
}

// try acquires the lock if it is this rank's turn.
func (l *lock) try() bool {
	t := l.ticket
	if atom.Load32(&l.words.serving) != t {
		return false
	}
	if l.mode == shared {
		atom.Store64(&l.slots[l.me], slotHeldS|uint64(t))
		l.pass(t)
		return true
	}
	for i := range l.slots {
		if s := atom.Load64(&l.slots[i]) & slotState; i != l.me && (s == slotHeldS || s == slotJoined) {
			return false
		}
	}
	atom.Store64(&l.slots[l.me], slotHeldX|uint64(t))
	return true
}

// tryShared acquires the lock shared if nobody holds it exclusively or waits for it.
func (l *lock) tryShared() bool {
	if atom.Load32(&l.words.serving) != atom.Load32(&l.words.users) || atom.Load64(&l.slots[l.me]) != slotFree {
		return false
	}
	atom.Store64(&l.slots[l.me], slotJoined)
	if serving := atom.Load32(&l.words.serving); atom.Load32(&l.words.users) != serving {
		atom.Store64(&l.slots[l.me], slotFree)
		l.wake(atom.Load32(&l.words.serving)) // it may have seen the slot
		return false
	}
	l.mode = shared
	return true
}

// ahead returns how many turns come before this rank's.
func (l *lock) ahead() uint32 { return l.ticket - atom.Load32(&l.words.serving) }

func (l *lock) release() {
	if l.mode == shared {
		atom.Store64(&l.slots[l.me], slotFree)
		l.wake(atom.Load32(&l.words.serving))
	} else {
		atom.CAS32(&l.words.serving, l.ticket, l.ticket+1)
		atom.Store64(&l.slots[l.me], slotFree)
		l.wake(l.ticket + 1)
	}
	l.ring(l.me) // another thread of this process may wait for the slot
}

// leave gives up waiting.
func (l *lock) leave() {
	atom.Store64(&l.slots[l.me], slotLeft|uint64(l.ticket))
	l.skip(func(int) bool { return false })
}

// pass ends the turn of ticket t.
func (l *lock) pass(t uint32) {
	if atom.CAS32(&l.words.serving, t, t+1) {
		l.wake(t + 1)
	}
}

// wake rings for the rank whose turn t is, and skips ranks that have left.
func (l *lock) wake(t uint32) {
	if atom.Load32(&l.words.users) == t {
		return // no rank waits
	}
	for i := range l.slots {
		s := atom.Load64(&l.slots[i])
		if uint32(s) != t {
			continue
		}
		switch s & slotState {
		case slotWaitX, slotWaitS:
			l.ring(i)
			return
		case slotLeft:
			l.skip(func(int) bool { return false })
			return
		}
	}
	l.wakeAll()
}

// skip ends the turns of ranks that will not end them; dead reports whether a rank
// has ended. skip returns the rank of a dead exclusive holder that it released, or -1.
func (l *lock) skip(dead func(i int) bool) (holder int) {
	holder = -1
	for i := range l.slots {
		s := atom.Load64(&l.slots[i])
		if state := s & slotState; (state == slotWaitX || state == slotWaitS) && i != l.me && dead(i) {
			atom.CAS64(&l.slots[i], s, slotLeft|uint64(uint32(s)))
		}
	}
	for {
		t := atom.Load32(&l.words.serving)
		if atom.Load32(&l.words.users) == t {
			break
		}
		owner, orphan, living := -1, -1, false
		var is uint64
		for i := range l.slots {
			s := atom.Load64(&l.slots[i])
			switch state := s & slotState; {
			case state == slotFree, state == slotJoined:
			case state == slotIntent:
				if dead(i) {
					orphan = i
				} else {
					living = true
				}
			case uint32(s) == t:
				owner, is = i, s
			}
		}
		switch {
		case owner >= 0 && (is&slotState == slotLeft || dead(owner)):
			moved := atom.CAS32(&l.words.serving, t, t+1)
			// Only the rank that moved the turn reports the holder. If the holder had
			// moved it before it died, there is nothing to report.
			if moved && is&slotState == slotHeldX {
				holder = owner
			}
			if atom.CAS64(&l.slots[owner], is, slotFree) && is&slotState == slotLeft {
				l.ring(owner) // it may wait in begin for its slot
			}
			if moved {
				l.wakeOnly(t + 1)
			}
			continue
		case owner < 0 && orphan >= 0 && !living:
			// An owner that was alive may have passed the turn on and cleared its
			// slot between the loads; then this fails.
			if atom.CAS32(&l.words.serving, t, t+1) {
				atom.CAS64(&l.slots[orphan], slotIntent, slotFree)
				l.wakeOnly(t + 1)
			}
			continue
		}
		break
	}
	for i := range l.slots {
		s := atom.Load64(&l.slots[i])
		switch s & slotState {
		case slotHeldS:
			if atom.Load32(&l.words.serving) == uint32(s) {
				continue
			}
		case slotJoined:
		default:
			continue
		}
		if i == l.me || !dead(i) {
			continue
		}
		if atom.CAS64(&l.slots[i], s, slotFree) {
			l.wakeOnly(atom.Load32(&l.words.serving))
		}
	}
	return holder
}

// wakeOnly is wake without skipping, which the caller does.
func (l *lock) wakeOnly(t uint32) {
	if atom.Load32(&l.words.users) == t {
		return
	}
	for i := range l.slots {
		s := atom.Load64(&l.slots[i])
		if uint32(s) != t {
			continue
		}
		switch s & slotState {
		case slotWaitX, slotWaitS:
			l.ring(i)
			return
		case slotLeft:
			return
		}
	}
	l.wakeAll()
}

// wakeAll rings for all waiters.
func (l *lock) wakeAll() {
	for i := range l.slots {
		if state := atom.Load64(&l.slots[i]) & slotState; state == slotWaitX || state == slotWaitS {
			l.ring(i)
		}
	}
}

// zero puts the lock into its initial state, within a collective reset.
func (l *lock) zero() {
	atom.Store32(&l.words.users, 0)
	atom.Store32(&l.words.serving, 0)
	atom.Store32(&l.words.acc, 0)
	atom.Store32(&l.words.fences.number, 0)
	for i := range l.slots {
		atom.Store64(&l.slots[i], slotFree)
	}
}

// holders returns the ranks of the window that hold the lock now.
func (l *lock) holders() (ranks []int) {
	for i := range l.slots {
		switch atom.Load64(&l.slots[i]) & slotState {
		case slotHeldX, slotHeldS, slotJoined:
			ranks = append(ranks, i)
		}
	}
	return ranks
}
