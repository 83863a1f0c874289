//go:build interleave

package engine

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// mailbox is a transport of one word for each sender: the number of messages sent.
type mailbox struct {
	w     *explore.World
	put   [2]uint32
	taken [2]uint32
	flags uint8
}

func (m *mailbox) Name() string                         { return "mailbox" }
func (m *mailbox) Caps() fabric.Caps                    { return fabric.Caps{} }
func (m *mailbox) Connect(int) (fabric.Endpoint, error) { return nil, fabric.ErrUnsupported }
func (m *mailbox) Register(unsafe.Pointer, int) (fabric.Region, error) {
	return nil, fabric.ErrUnsupported
}
func (m *mailbox) Close() error { return nil }
func (m *mailbox) Poll(sink fabric.Sink) int {
	m.w.Current().Note(1) // it has the poll lock
	n := 0
	for src := range m.put {
		for m.taken[src] != atom.Load32(&m.put[src]) {
			m.taken[src]++
			m.w.Current().Note(uint64(src) + 2)
			sink.Deliver(src+1, &fabric.Header{Kind: fabric.KindEager, Src: int32(src), Flags: m.flags}, nil)
			n++
		}
	}
	return n
}

// slot is a sender's endpoint of the mailbox.
type slot struct {
	fabric.Endpoint
	put *uint32
	to  *job.Rank
}

func peerTo(box *mailbox, i int, to *job.Rank) peer {
	return peer{ep: &slot{put: &box.put[i], to: to}}
}

// Send stores the message and rings, as every transport does.
func (s *slot) Send(*fabric.Header, []byte) error {
	atom.Add32(s.put, 1)
	s.to.Ring()
	return nil
}

// engineCase is one process: threads that wait, each for the messages of one
// sender, and optionally its progress engine.
type engineCase struct {
	waiters, senders int
	messages         int
	urgent, serve    bool
	mortal           bool // sender 0 may die
	preempt          int
}

func (c engineCase) world(w *explore.World) {
	ranks := make([]job.Rank, 1)
	me := &ranks[0]
	box := &mailbox{w: w}
	if c.urgent {
		box.flags = FlagUrgent
	}
	e := &Engine{Job: &job.Segment{Head: &job.Head{}, Ranks: ranks}, Rank: 0, Size: 1, me: me, transports: []fabric.Transport{box}, peers: make([]peer, 3)}
	got := new([2]uint32)
	e.handlers[fabric.KindEager] = func(src int, _ *fabric.Header, _ []byte) { got[src-1]++ }
	explore.Watch(w, "box", &box.put)
	explore.Watch(w, "taken", &box.taken)
	explore.Watch(w, "got", got)
	explore.Watch(w, "polling", &e.polling)
	explore.Watch(w, "delivered", &e.delivered)
	explore.Watch(w, "waits", &me.Waits)
	w.Memory("doorbell", unsafe.Pointer(&me.Doorbell), 8)
	w.Memory("progress", unsafe.Pointer(&me.Progress), 16)
	w.Name(unsafe.Pointer(&me.Sleepers), "Sleepers")
	w.Name(unsafe.Pointer(&me.ProgressSleepers), "ProgressSleepers")
	w.Name(unsafe.Pointer(&me.Pollers), "Pollers")
	w.Name(unsafe.Pointer(&me.Urgent), "Urgent")
	now = func() int64 { return w.Current().Now(int64(yieldFor) + 1) } // yields a little, never ends a slice
	thread = func() int { return 1 }
	var sent [2]*explore.Thread
	for i := range c.waiters {
		w.Thread(fmt.Sprintf("waiter%d", i), func(t *explore.Thread) {
			for k := range c.messages {
				t.Forget(uint64(k))
				err := e.Wait(&Reason{Call: job.CallRecv, Peer: i + 1}, func() bool {
					done := got[i] > uint32(k) || sent[i].Dead()
					if done {
						t.Note(1)
					} else {
						t.Note(0)
					}
					return done
				}, nil)
				t.Check(err == nil, "the wait ended with %v", err)
			}
		})
	}
	for i := range c.senders {
		peer := &Engine{Job: e.Job, Rank: i + 1}
		to := peerTo(box, i, me)
		h := fabric.Header{Kind: fabric.KindEager, Src: int32(i), Flags: box.flags}
		sent[i] = w.Thread(fmt.Sprintf("sender%d", i), func(t *explore.Thread) {
			for range c.messages {
				peer.send(fabric.Endpoint.Send, 0, &to, &h, nil)
				peer.wakeForUrgent(0, &to, &h)
			}
		})
		if c.mortal && i == 0 {
			sent[i].Mortal()
		}
	}
	if c.mortal {
		w.Thread("watcher", func(t *explore.Thread) { // Engine.ended
			t.Await("death", sent[0].Dead)
			me.Ring()
		}).Daemon()
	}
	if c.serve {
		w.Thread("progress", func(t *explore.Thread) {
			// Engine.serve without the moment for which it stays awake, which only helps.
			for {
				t.Forget()
				atom.Add32(&me.ProgressSleepers, 1)
				bell := atom.Load32(&me.Progress)
				if e.pollSure(0) == 0 {
					atom.Wait(&me.Progress, bell, 0)
				}
				atom.Add32(&me.ProgressSleepers, ^uint32(0))
			}
		}).Daemon()
		for i := c.waiters; i < c.senders; i++ {
			w.Thread(fmt.Sprintf("serving%d", i), func(t *explore.Thread) {
				t.Await("that the urgent messages are served", func() bool {
					return got[i] == uint32(c.messages) || sent[i].Dead()
				})
			})
		}
	}
	w.Finally(func() error {
		if me.Sleepers != 0 || me.Pollers != 0 {
			return fmt.Errorf("%d sleepers, %d pollers are left", me.Sleepers, me.Pollers)
		}
		return nil
	})
}

func TestEveryInterleavingOfWait(t *testing.T) {
	clock := now
	defer func() { now = clock }()
	for _, c := range []engineCase{
		{waiters: 1, senders: 1, messages: 2},
		{waiters: 2, senders: 2, messages: 1, preempt: 1},
		{waiters: 1, senders: 2, messages: 1, urgent: true, serve: true, preempt: 1},
		{waiters: 1, senders: 2, messages: 1, urgent: true, serve: true, mortal: true, preempt: 1},
		{waiters: 0, senders: 1, messages: 2, urgent: true, serve: true},
		{waiters: 0, senders: 2, messages: 1, urgent: true, serve: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			deaths := 0
			if c.mortal {
				deaths = 1
			}
			explore.Run(t, explore.Options{IdleYields: 5, Deaths: deaths, Preemptions: c.preempt}, c.world)
		})
	}
}
