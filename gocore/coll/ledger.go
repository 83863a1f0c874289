package coll

import (
	"sync"
	"sync/atomic"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
)

// ledger has what this rank has called on a communicator without a board. By it the ranks
// find out, without shared memory, that they do not call the same collective.
//
// # Protocol
//
// Each message of a collective carries its sender's call (label.go). A rank that receives a
// message of another call than its own ends the collective with an error. Since messages
// are matched by the number of the collective, that can't be confused with an earlier or a
// later one.
//
// That is not enough for a rank that waits for a message which is never sent: two ranks
// that take each other for the root, or a rank behind one that ended the collective with an
// error. So a rank that has waited in collective k for some time (askAfter) asks each rank
// of which it awaits something, and tells its own call (a question). The asked rank's
// handler runs whatever its program does. That rank
//
//   - has not called k yet: it keeps the question, says so, and deals with it when it calls k;
//   - is in k: if the calls do not match, its own collective ends with an error, and it
//     answers with its call. Else it keeps the question, says so, and asks the ranks that it
//     awaits itself, even if k is nonblocking and its program waits for something else;
//   - has ended k: it answers with its call, and how k ended.
//
// A rank whose collective ends answers all questions that it keeps for it. An answer has
// the call of the rank that answers, and one of
//
//   - unfinished: it is in k, or has not called it, and says which. If its call matches, it has kept the
//     question.
//   - givenUp: its collective ended with an error. The answer names the cause: a rank, and
//     that rank's call, KindGiveUp if its memory faulted, or KindEnded if its process has ended.
//   - completed: what it had to send for k has arrived before the answer, since what one
//     rank sends to another stays in order.
//
// The asker ends k with an error if the calls do not match, or if the other one has given
// up; it takes over the cause if that explains the error. It also ends k if the other one
// has completed k and it still awaits something of it: then the calls differ in what is not
// compared, as the counts of Alltoallv. The error of a rank that only one other awaits so
// comes to all that wait for that one, and so on, and there are no messages unless ranks
// wait.
//
// Every wait in k ends: of the ranks that are awaited one after the other, the last one
// has not called k yet (which is the program's affair, but see below), or has ended k and answers, or its
// process has ended, which p2p.Channel.Check finds. They form no ring unless calls in it do
// not match: then two neighbours are in k with such calls, and the question between them
// ends both.
//
// When a rank has failed, those that got an error in collective k need not call k+1, which others may have entered: the last
// messages of the rank that failed let these leave k. In a window there is no Revoke that would end their wait. So in a collective
// that no rank completes before all have called it, a rank asks again when one has failed. If a rank that it awaits has not called the
// collective even now, it ends it with an error: the rank that has failed can't have completed it, and need not have contributed to it.
// In a collective with a root, or a scan, that rank may have completed its part: a wait for the rest ends when they call.
//
// A message of a collective that has ended here, which nobody receives, is dropped. If its
// sender waits for that, it gets an answer, as if it had asked, before its wait ends.
//
// A question can be lost, while the other rank makes the communicator or because of a
// collective reset. So it is repeated until there is an answer, at growing intervals up to
// askEvery. Afterwards all is still, as it has to be if all ranks wait in a deadlock of the
// program: notebooks recognise that by this.
//
// A rank remembers the last collectives that ended. Asked about an older one it answers
// that it has completed it with an unknown call, which is enough to end the asker's wait.
// Sequence numbers still agree after an error, so the communicator remains usable.
type ledger struct {
	ch    *p2p.Channel
	sides *Sides // of an intercommunicator

	mu         sync.Mutex
	last       uint32                       // number of the last collective called
	generation uint32                       // in which it was called
	live       []*entry                     // of the collectives in progress
	early      map[uint32]map[int]p2p.Label // questions by number and rank, for collectives not called yet
	done       records                      // the last ones that have completed
	failed     records                      // that have failed
}

// Stray implements p2p.Listener: nobody receives a message of a collective that has ended.
// Its sender may wait for that, and so is answered first.
func (l *ledger) Stray(h *fabric.Header) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := (l.last - uint32(h.Tag)) & maxTag
	if h.Tag > maxTag || h.Gen != l.generation || back > maxTag/2 || l.find(l.last-back) != nil {
		return false
	}
	l.dropping(h, l.last-back)
	return true
}

// dropped is called before a message of collective k, which has ended, is dropped.
func (l *ledger) dropped(h *fabric.Header, k uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropping(h, k)
}

func (l *ledger) dropping(h *fabric.Header, k uint32) {
	if h.Kind == fabric.KindRTS && h.Src >= 0 && int(h.Src) < len(l.ch.World) {
		l.answer(int(h.Src), h.Gen, l.recall(k))
	}
}

// find returns collective k if it is in progress, else nil.
func (l *ledger) find(k uint32) *entry {
	for _, e := range l.live {
		if e.number == k {
			return e
		}
	}
	return nil
}

// remembered is how many collectives that have completed a rank knows the calls of. It knows more of those that have failed:
// many may be in progress when a rank ends.
const (
	remembered       = 32
	rememberedFailed = 512
)

// records are the last collectives that have ended, in no particular order.
type records struct {
	list []record
	next int // index of the one that is forgotten next
}

// askAfter is how long a collective waits before it asks. askEvery is the longest interval
// between two questions to the same rank. In nanoseconds.
const (
	askAfter = int64(10e6)
	askEvery = int64(1e9)
)

// entry is a collective in progress.
type entry struct {
	number     uint32
	label      p2p.Label
	called     string // Call.Objects, which the label does not have
	generation uint32

	askers  map[int]p2p.Label // whose questions are kept
	kept    map[int]bool      // ranks that have kept this rank's question, and whether they had not called the collective
	others  map[int]struct{}  // ranks that have completed it
	wanted  atomic.Bool       // there are askers
	verdict atomic.Pointer[verdict]
}

// verdict is why a collective can't complete.
type verdict struct {
	err   *errs.Error
	cause cause
}

// cause is the rank whose call is not that of the others.
type cause struct {
	rank  int
	label p2p.Label
}

// record is a collective that has ended.
type record struct {
	number uint32
	label  p2p.Label
	failed bool
	cause  cause // if failed
}

// The labels of a rank that has given a collective up, and of one that has ended.
var (
	gaveUp = givenUp.label()
	ended  = (&Call{Kind: KindEnded, Bytes: -1}).label()
)

// newLedger returns the ledger of the channel's ranks, which answers from now on.
func newLedger(ch *p2p.Channel, sides *Sides) *ledger {
	l := &ledger{ch: ch, sides: sides, early: map[uint32]map[int]p2p.Label{}}
	ch.Listen(l)
	return l
}

// begin records that this rank calls a collective.
func (l *ledger) begin(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.generation = e.number, e.generation
	l.live = append(l.live, e)
	if len(l.early) == 0 {
		return
	}
	asked := l.early[e.number]
	delete(l.early, e.number)
	for r, theirs := range asked {
		l.asked(e, r, theirs)
	}
}

// end records that a collective has ended: with an error for the cause why, if why is not
// nil. One that a reset has ended is not in the ledger any more.
func (l *ledger) end(e *entry, why *cause) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.live {
		if x != e {
			continue
		}
		last := len(l.live) - 1
		l.live[i], l.live[last] = l.live[last], nil
		l.live = l.live[:last]
		rec := record{number: e.number, label: e.label}
		if why != nil {
			rec.failed, rec.cause = true, *why
			l.failed.add(&rec, rememberedFailed)
		} else {
			l.done.add(&rec, remembered)
		}
		for r := range e.askers {
			l.answer(r, e.generation, &rec)
		}
		return
	}
}

// add adds one, and forgets another if there are more than most.
func (r *records) add(rec *record, most int) {
	if len(r.list) < most {
		r.list = append(r.list, *rec)
		return
	}
	r.list[r.next] = *rec
	r.next = (r.next + 1) % most
}

// find returns that of collective k, nil if there is none.
func (r *records) find(k uint32) *record {
	for i := range r.list {
		if r.list[i].number == k {
			return &r.list[i]
		}
	}
	return nil
}

// recall returns how collective k, which this rank has called, has ended.
func (l *ledger) recall(k uint32) *record {
	rec := l.failed.find(k)
	if rec == nil {
		rec = l.done.find(k)
	}
	if rec == nil {
		rec = &record{number: k, label: unknown}
	}
	return rec
}

// reset forgets everything.
func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.live, l.done, l.failed = 0, nil, records{}, records{}
	clear(l.early)
}

// fail sets why the collective can't complete, unless that is known already.
func (e *entry) fail(err *errs.Error, why cause) {
	e.verdict.CompareAndSwap(nil, &verdict{err, why})
}

// uncalled reports whether a rank has answered that it had not called the collective.
func (l *ledger) uncalled(e *entry, rank int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.kept[rank]
}

// askAgain forgets what the ranks that have not ended the collective have answered.
func (l *ledger) askAgain(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(e.kept)
}

// completed returns the ranks that have completed the collective, in new memory.
func (l *ledger) completed(e *entry) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ranks []int
	for r := range e.others {
		ranks = append(ranks, r)
	}
	return ranks
}
