package mpi

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Create_intercomm: the leaders of the two groups meet, by messages in a channel of the peer communicator that has the
// program's tags. Then each tells its group, by two broadcasts, what it got, or why it got nothing. The context is that of
// the leader whose group comes first in the union.
//
// # How leaders meet
//
// A leader first sends its card: a number that it uses once, a context, one for processes of several jobs, and the identities of its group. It answers each
// card that it gets by a message with the card's number. It has met the other one when it has a card, and an answer to its own.
// What a call left in the channel that Ctrl-C ended does not confuse the next one: a later card replaces an
// earlier one, because messages of one tag arrive in order, and answers to other cards are ignored. A leader that is
// interrupted when the other one has its card and its answer leaves that with a communicator: no protocol can avoid this.

// notice is what a leader tells its group.
type notice struct {
	ctx    int64 // chosen; noCtx if there is none
	drawer int64 // world rank of the leader whose context it is
	words  int64 // of the identities of the remote group; 0: the leaders could not meet
	class  int64 // then the class of the leader's error
}

// greeting is the state of a leader that meets another one.
type greeting struct {
	number   int64   // of the own card
	card     []int64 // of the other leader, the latest; nil: none has come
	answered bool    // the own card
}

// The words of a card; the identities of the group follow. An answer has two words: 0 and the card's number.
const (
	cardNumber = iota // above 0
	cardContext
	cardSpanning
	cardDrawer
	cardGroup
)

// take takes a message, and returns the answer to it, if there is one.
func (g *greeting) take(message []int64) (answer []int64) {
	switch {
	case len(message) > cardGroup && message[cardNumber] > 0:
		g.card = slices.Clone(message)
		return []int64{0, message[cardNumber]}
	case len(message) == 2 && message[0] == 0:
		g.answered = g.answered || message[1] == g.number
	}
	return nil
}

// met reports whether both have what they need of each other.
func (g *greeting) met() bool { return g.card != nil && g.answered }

// cards numbers the cards of this process.
var cards atomic.Int64

// meeting is Create_intercomm as an operation.
type meeting struct {
	*sequence // the broadcasts
	local     *Comm

	// Of a leader.
	leads    bool
	mu       sync.Mutex
	peer     *Comm
	ch       *p2p.Channel
	other    int // the other leader, as a rank of ch
	tag      int
	mine     []int64 // card
	greeting greeting
	started  bool
	over     bool // they have met, or failed
	incoming p2p.Request
	arriving []int64
	outgoing []*p2p.Request
	gen      uint32
	failed   *errs.Error

	spans  bool     // the groups have processes of several jobs
	chosen []notice // one
	remote []int64  // identities of the remote group
}

// CommCreateIntercomm begins to make an intercommunicator of the group of h, whose rank localLeader is the leader, and
// another one, whose leader is rank remoteLeader of peer. Peer and remoteLeader are significant at the leader.
func CommCreateIntercomm(h int64, localLeader int, peer int64, remoteLeader, tag int) (req int64, code Code) {
	defer Contain(&code)
	c, e := getIntracomm(h, "Create_intercomm")
	if e != nil {
		return 0, CodeOf(e)
	}
	if localLeader < 0 || localLeader >= c.size {
		return 0, classError(errs.Rank, "Create_intercomm: the local leader %d is not in the communicator: %s", localLeader, c.rankRange())
	}
	if tag < 0 || tag > tagUB {
		return 0, classError(errs.Tag, "Create_intercomm: the tag %d is not between 0 and %d", tag, tagUB)
	}
	m := &meeting{local: c, tag: tag, chosen: make([]notice, 1), leads: c.rank == localLeader}
	if m.leads {
		m.failed = m.lead(peer, remoteLeader)
		m.over = m.failed != nil
	}
	m.sequence = newSequence(c, func(s *sequence, k int) round { return m.broadcast(s, k, localLeader) })
	m.Advance()
	return reqs.add(&Request{op: m}), 0
}

// lead prepares the meeting of a leader. If it can't, the group is to learn it.
func (m *meeting) lead(peer int64, remoteLeader int) (e *errs.Error) {
	if m.peer, e = getUsableComm(peer); e != nil {
		return e
	}
	if remoteLeader < 0 || remoteLeader >= m.peer.peers() {
		return errs.New(errs.Rank, "Create_intercomm: the remote leader %d is not in the peer communicator: %s", remoteLeader, m.peer.rankRange())
	}
	if m.other = remoteLeader; m.peer.remote != nil {
		m.other = m.peer.coll.Sides.Remote[remoteLeader]
	}
	if r := m.peer.union()[m.other]; slices.Contains(m.local.group.ranks, r) { // it would wait for ever if it does not lead another group
		return inBoth("Create_intercomm", r)
	}
	m.ch = m.peer.meetings.get(func() *p2p.Channel { return m.peer.sibling(channelMeetings) })
	m.gen = m.ch.Generation()
	m.greeting.number = cards.Add(1)
	m.mine = append([]int64{cardNumber: m.greeting.number, cardContext: offerCtx(nil), cardSpanning: newSpanningCtx().word(), cardDrawer: int64(proc.rank)},
		identities(m.local.group.ranks)...)
	m.arriving = make([]int64, cardGroup+identityWords*proc.eng.Places())
	return nil
}

// Advance continues the meeting of a leader, then the broadcasts.
func (m *meeting) Advance() bool {
	if m.leads && !m.meet() {
		return false
	}
	return m.sequence.Advance()
}

// meet continues the meeting, and reports whether it is over.
func (m *meeting) meet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started && !m.over {
		m.started = true
		m.await()
		m.send(m.mine)
	}
	for !m.over {
		e := m.ch.Dropped(m.gen)
		if e == nil && !m.incoming.Done() {
			return m.sent()
		}
		if e == nil {
			e = m.incoming.Status().Err
		}
		if e == nil {
			if answer := m.greeting.take(m.arriving[:m.incoming.Status().Bytes/8]); answer != nil {
				m.send(answer)
			}
			if e = m.met(); !m.over && e == nil {
				m.await()
			}
		}
		if e != nil {
			m.failed, m.over = e, true
		}
	}
	return true
}

// met looks whether the leaders have met, under mu.
func (m *meeting) met() *errs.Error {
	if !m.greeting.met() {
		return nil
	}
	m.over = true
	m.remote = m.greeting.card[cardGroup:]
	numbers, e := numbersOf(m.remote)
	m.spans = spans(numbers) || spans(m.local.group.ranks)
	return e
}

// await posts the receive of the next message, under mu.
func (m *meeting) await() {
	m.incoming = p2p.Request{}
	m.ch.Recv(&m.incoming, bytesOf(m.arriving), m.other, m.tag)
}

// send sends a message, under mu.
func (m *meeting) send(message []int64) {
	r := new(p2p.Request)
	m.outgoing = append(m.outgoing, r)
	m.ch.Send(r, p2p.Buffered, bytesOf(message), m.other, m.tag)
}

// sent returns false, and ends the meeting if a message could not be sent, under mu.
func (m *meeting) sent() bool {
	for _, r := range m.outgoing {
		if r.Done() && r.Status().Err != nil {
			m.stop(r.Status().Err)
			return true
		}
	}
	return false
}

func bytesOf[T any](list []T) p2p.Buf {
	return rawBytes(unsafe.Pointer(unsafe.SliceData(list)), len(list)*int(unsafe.Sizeof(list[0])))
}

// broadcast starts broadcast number k, or makes the communicator.
func (m *meeting) broadcast(s *sequence, k, leader int) round {
	c := m.local
	switch k {
	case 0:
		if m.leads {
			m.chosen[0] = m.choice()
		}
		c.coll.Calling(madeByMessages)
		return c.coll.Bcast(bytesOf(m.chosen), leader)
	case 1:
		if m.chosen[0].words == 0 {
			if s.err = m.failed; s.err == nil {
				s.err = errs.New(errs.Class(m.chosen[0].class), "Create_intercomm can't complete: rank %d of the communicator, the leader, could not meet the other leader (its own error says why)", leader)
			}
			return nil
		}
		if !m.leads {
			m.remote = make([]int64, m.chosen[0].words)
		}
		c.coll.Calling(madeByMessages)
		return c.coll.Bcast(bytesOf(m.remote), leader)
	}
	s.result, s.err = c.joinGroups("Create_intercomm", m.chosen[0].ctx, int(m.chosen[0].drawer), m.remote)
	return nil
}

// joinGroups makes the intercommunicator of the group of c and the group of these identities. It returns the handle.
func (c *Comm) joinGroups(call string, ctx int64, drawer int, group []int64) (int64, *errs.Error) {
	remote, e := numbersOf(group)
	if e != nil {
		return 0, e
	}
	for _, r := range remote {
		if slices.Contains(c.group.ranks, r) {
			return 0, inBoth(call, r)
		}
	}
	taken, e := takeCtx(ctx, drawer)
	if e != nil {
		return 0, e
	}
	return newIntercomm(taken, c.group, &Group{remote}, c.rank, precedes(group, identities(c.group.ranks[:1]))).publish(0), nil
}

func inBoth(call string, world int) *errs.Error {
	return errs.New(errs.Comm, "%s: %s is in both groups, which have to be disjoint", call, proc.eng.Name(world))
}

// choice is what the leader tells its group.
func (m *meeting) choice() notice {
	if m.failed != nil {
		return notice{ctx: noCtx, class: int64(m.failed.Class)}
	}
	from, ctx := m.mine, cardContext
	if precedes(m.remote, m.mine[cardGroup:]) {
		from = m.greeting.card
	}
	if m.spans {
		ctx = cardSpanning
	}
	return notice{ctx: from[ctx], drawer: from[cardDrawer], words: int64(len(m.remote))}
}

// Check returns why the operation can't complete. If the other leader can't be reached any more, the
// meeting is over, and the group learns it.
func (m *meeting) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.underWay() {
		return m.sequence.Check()
	}
	if m.incoming.Done() {
		return nil
	}
	if err := m.ch.Check(&m.incoming); err != nil {
		var e *errs.Error
		if !errors.As(err, &e) {
			e = errs.New(errs.Other, "Create_intercomm: %v", err)
		}
		m.stop(e)
	}
	return nil
}

// underWay reports whether the leaders are about to meet, under mu.
func (m *meeting) underWay() bool { return m.leads && m.started && !m.over }

// stop ends the meeting, under mu.
func (m *meeting) stop(e *errs.Error) {
	m.ch.Abandon(&m.incoming)
	m.over, m.failed = true, e
}

// Abandon gives up the operation.
func (m *meeting) Abandon() {
	m.mu.Lock()
	if m.underWay() {
		m.stop(errs.New(errs.Other, "Create_intercomm was given up"))
	}
	m.mu.Unlock()
	m.sequence.Abandon()
}

func (m *meeting) describe(why *engine.Reason) {
	m.sequence.describe(why)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.underWay() {
		why.Peer = m.incoming.Peer()
	}
}
