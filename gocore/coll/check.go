package coll

import (
	"errors"
	"fmt"

	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// Check returns why the collective can't complete any more, nil if it can.
func (o *Op) Check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	e := o.stuck()
	if e == nil {
		return nil
	}
	switch e.Class {
	case errs.ProcFailed:
	case errs.Revoked: // the others have been told
		o.err, o.ended = e, true
		o.drop()
	default:
		o.err = e
		o.abandon()
	}
	return e
}

// stuck returns why what is pending can't complete, nil if it can. From time to time it asks
// the ranks that are awaited.
func (o *Op) stuck() *errs.Error {
	if v := o.verdict.Load(); v != nil {
		if e := o.unreadable(); e != nil {
			return e
		}
		o.cause = v.cause
		return o.alsoEnded(v.err, v.cause.rank)
	}
	for _, r := range o.wait[:o.used] {
		if !r.Done() {
			var e *errs.Error
			if err := o.c.Chan.Check(r); errors.As(err, &e) {
				o.blame(r, e)
				return o.alsoEnded(e, r.Other())
			}
		}
	}
	if e := o.deserted(); e != nil {
		return e
	}
	if o.ledger == nil {
		return o.compare()
	}
	for _, r := range o.ledger.completed(&o.entry) {
		if o.awaits(r) {
			return errs.New(errs.Other, "%s can't complete: %s has completed its collective with the same number, and has not sent what this rank waits for (do all ranks make the same calls, with counts that fit?)",
				o.Name(), o.c.Sides.Name(r))
		}
	}
	o.ask()
	return nil
}

// deserted returns an error if a rank has failed, and another one that is awaited has not called the collective: see ledger.
func (o *Op) deserted() *errs.Error {
	failed := o.failed()
	if failed < 0 {
		return nil
	}
	uncalled := func(r int) bool { return o.ledger.uncalled(&o.entry, r) }
	switch {
	case o.ledger == nil && o.c.board == nil:
		return nil
	case o.ledger == nil: // a rank that calls a collective by messages stores its number in done
		uncalled = func(r int) bool { return int32(atom.Load32(&o.c.board.ranks[r].done)-o.number) < 0 }
	case !o.again:
		o.again, o.askAt, o.pause = true, job.Now(), askAfter
		o.ledger.askAgain(&o.entry)
		return nil
	}
	for _, r := range o.wait[:o.used] {
		if !r.Done() && uncalled(r.Other()) {
			how, _ := o.c.Chan.HowEnded(failed)
			o.cause = cause{failed, ended}
			return o.alsoEnded(errs.New(errs.ProcFailed, "%s can't complete: %s (%s)", o.Name(), how, o.c.Sides.Name(failed)), failed)
		}
	}
	return nil
}

// failed returns a rank that has failed, if no rank completes the collective before all have called it; else -1: a rank
// that has failed may have completed its part, as one that sends to the root does.
func (o *Op) failed() int {
	if o.c.Sides != nil {
		return -1
	}
	if o.hasCall && (o.call.Kind.Rooted() || o.call.Kind == KindScan || o.call.Kind == KindExscan) {
		return -1
	}
	for r := range o.c.Size {
		if o.c.Chan.Failed(r) {
			return r
		}
	}
	return -1
}

// blame makes the peer of a request the cause of the request's error, if that is its end.
func (o *Op) blame(r *p2p.Request, e *errs.Error) {
	if e.Class == errs.ProcFailed {
		o.cause = cause{r.Other(), ended}
	}
}

// alsoEnded adds to an error that rank has ended the other ranks that have ended.
func (o *Op) alsoEnded(e *errs.Error, rank int) *errs.Error {
	if e.Class != errs.ProcFailed {
		return e
	}
	if more := othersEnded(o.c.Size, rank, o.c.Chan.HowEnded, o.c.Sides.Name); more != "" {
		return errs.New(e.Class, "%s%s", e.Detail, more)
	}
	return e
}

// othersEnded says which of n ranks besides r have ended, for the error of a collective that can't complete because r has. Most
// ranks wait for others in place of the one that was killed, and r may have ended because it was told of that. A rank that has learned
// of an end acts on it later than that is in the job segment. So the first end is named here, even if what that rank has sent has
// not been delivered yet. On more than two nodes the news of it can be late.
func othersEnded(n, r int, how func(int) (string, bool), name func(int) string) string {
	text, more := "", 0
	for i := range n {
		if s, ended := how(i); ended && i != r {
			if more++; more <= mostNamed {
				text += fmt.Sprintf("; %s, too (%s)", s, name(i))
			}
		}
	}
	if more > mostNamed {
		text += fmt.Sprintf("; and %d more", more-mostNamed)
	}
	return text
}

// mostNamed is how many ranks that have ended, too, an error names.
const mostNamed = 4

// Name names the collective in errors.
func (o *Op) Name() string {
	if !o.hasCall {
		return "the collective"
	}
	return o.call.name()
}

// awaits reports whether a request with this rank is pending.
func (o *Op) awaits(rank int) bool {
	for _, r := range o.wait[:o.used] {
		if r.Other() == rank && !r.Done() {
			return true
		}
	}
	return false
}

// lacks reports whether a step waits for a message of a rank that has not come, or for that rank to take one.
func (o *Op) lacks(rank int) bool {
	for _, r := range o.wait[:o.used] {
		if r.Other() == rank && !r.Done() && !o.c.Chan.Begun(r) {
			return true
		}
	}
	return false
}

// ask asks the ranks that are awaited which collective they have called, if it is time to.
func (o *Op) ask() {
	now := job.Now()
	if o.askAt == 0 {
		o.askAt, o.pause = now+askAfter, askAfter
	}
	if now < o.askAt && !(o.wanted.Load() && o.pause == askAfter) {
		return
	}
	o.pause = min(2*o.pause, askEvery)
	o.askAt = now + o.pause
	asked := map[int]struct{}{}
	for _, r := range o.wait[:o.used] {
		if _, again := asked[r.Other()]; !again && !r.Done() {
			asked[r.Other()] = struct{}{}
			o.ledger.ask(&o.entry, r.Other())
		}
	}
}

// compare returns an error if another rank has published another call on the board, or that
// it has given this one up.
func (o *Op) compare() *errs.Error {
	if o.c.board == nil {
		return nil
	}
	refused := -1
	for r := range o.c.Size {
		if o.hasCall {
			if e := o.c.board.compare(&o.call, r, o.number); e != nil {
				return e
			}
		}
		if r != o.c.Rank && o.c.board.refused(r, o.number) && (refused < 0 || o.awaits(r)) {
			refused = r
		}
	}
	if refused < 0 {
		return nil
	}
	return o.refusedBy(refused)
}

// refusedBy returns why the collective, which rank r has given up, can't complete, and lets this rank say so, too. If a rank has ended,
// that is most likely the cause. Then a rank that does not depend on the one that has ended may complete: so it has to lack a message
// of r also when it looks again after all that r has sent before has been delivered.
func (o *Op) refusedBy(r int) *errs.Error {
	for dead := range o.c.Size {
		how, gone := o.c.Chan.HowGone(dead)
		switch {
		case !gone || dead == o.c.Rank:
			continue
		case !o.lacks(r):
			return nil
		case !o.refused:
			o.refused = o.c.eng.Drained(o.c.Chan.World[r])
			return nil
		}
		o.cause = cause{dead, ended}
		return o.alsoEnded(errs.New(errs.ProcFailed, "%s can't complete: %s (%s)", o.Name(), how, o.c.Sides.Name(dead)), dead)
	}
	o.refused = true
	return o.mismatch(gaveUp, r, o.c.Sides)
}

// refusedBy returns why a collective, which rank r has given up, can't complete: another rank has ended, if one has.
func (c *Comm) refusedBy(call *Call, r int) *errs.Error {
	for dead := range c.Size {
		if _, gone := c.Chan.HowGone(dead); gone && dead != c.Rank {
			return call.mismatch(Call{Kind: KindEnded}, dead, c.Sides)
		}
	}
	return call.mismatch(givenUp, r, c.Sides)
}

// received compares the call of the sender of a received message with the own one. It
// returns true if they do not match, which is then the error: it is the cause of others.
func (o *Op) received(r *p2p.Request) bool {
	if o.ledger == nil || !r.IsRecv() {
		return false
	}
	e := o.mismatch(r.Label(), r.Other(), o.c.Sides)
	if e == nil {
		return false
	}
	o.err, o.cause = e, cause{r.Other(), r.Label()}
	return true
}

// left returns an error if a message of another call has come that no receive has matched.
func (o *Op) left() *errs.Error {
	if o.ledger == nil {
		return nil
	}
	from, label, found := o.c.Chan.Left(o.tag)
	if !found {
		return nil
	}
	e := o.mismatch(label, from, o.c.Sides)
	if e != nil {
		o.cause = cause{from, label}
	}
	return e
}
