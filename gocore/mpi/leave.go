package mpi

import (
	"slices"
	"sync"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
)

// leaving is Free or Disconnect of a communicator as an operation: all ranks meet in a
// barrier, after which the handle names nothing. The channels are closed when no operation
// of this rank that was started before needs them any more, since MPI lets these complete, and no persistent message
// is left, which can be started still. Until then the context is not drawn again. If the ranks can't meet, because one
// has ended or this one is interrupted, or the communicator is revoked, this rank frees its part alone: the program has given the
// communicator up. It tells the others (closeFaults), who might wait for it in the barrier. Agreements that are under way complete
// before that, and need the others: until then tellFreed tells them.
type leaving struct {
	*sequence
	c      *Comm
	handle int64

	mu      sync.Mutex
	await   bool        // Disconnect: operations under way complete first
	failure *errs.Error // why the ranks can't meet
	closed  bool
	parted  bool       // the handle names nothing any more
	pending []*Request // then: the operations that were under way and, as far as is known, are
	kept    []heldRequest
}

// heldRequest is a persistent message of a communicator that has been freed.
type heldRequest struct {
	handle int64
	r      *Request
}

// Free frees a communicator.
func Free(h int64) Begin { return leave(h, false) }

// CommFree is Free as a request.
func CommFree(h int64) (req int64, code Code) { return Free(h).request() }

// Disconnect frees a communicator once all operations of this rank in it have completed.
func Disconnect(h int64) Begin { return leave(h, true) }

// CommDisconnect is Disconnect as a request.
func CommDisconnect(h int64) (req int64, code Code) { return Disconnect(h).request() }

func leave(h int64, await bool) Begin {
	return func() (operation, *errs.Error) {
		c, e := getComm(h)
		if e != nil {
			return nil, e
		}
		if h == CommWorld || h == CommSelf {
			return nil, errs.New(errs.Comm, "COMM_WORLD and COMM_SELF can't be freed")
		}
		if !c.freeing.CompareAndSwap(false, true) {
			return nil, errs.New(errs.Comm, "the communicator is being freed by another call")
		}
		l := &leaving{c: c, handle: h, await: await}
		l.sequence = newSequence(c, func(s *sequence, k int) round {
			if k == 0 {
				return c.assembled()
			}
			c.met = true
			return nil
		})
		return l, nil
	}
}

// rest returns what remains of leaving when the program's call has ended.
func (l *leaving) rest() engine.Background { return closing{l} }

// Advance implements operation.
func (l *leaving) Advance() bool {
	if l.c.abandoned() {
		l.part(l.c.whoFailed())
		return true
	}
	l.mu.Lock()
	if l.await {
		l.await = len(l.c.underWay()) > 0
	}
	await := l.await
	l.mu.Unlock()
	if await || !l.sequence.Advance() {
		return false
	}
	l.close()
	return true
}

// Check implements operation. Disconnect does not wait for what can't complete.
func (l *leaving) Check() error {
	l.mu.Lock()
	if l.await {
		l.await = false
		for _, r := range l.c.underWay() {
			l.await = l.await || r.check() == nil
		}
	}
	await := l.await
	l.mu.Unlock()
	if await {
		return nil
	}
	if err := l.sequence.Check(); err != nil {
		e, ok := err.(*errs.Error)
		if !ok || e.Class != errs.ProcFailed && e.Class != errs.Revoked {
			return err
		}
		l.part(e)
		proc.me.Ring()
	}
	return nil
}

// part frees this rank's part alone, because of an error: that is the call's, unless the program has revoked the communicator and so
// knows.
func (l *leaving) part(e *errs.Error) {
	l.mu.Lock()
	if l.failure == nil {
		l.failure = e
	}
	l.mu.Unlock()
	l.Abandon()
}

// Err implements operation.
func (l *leaving) Err() *errs.Error {
	e := l.sequence.Err()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.c.faults.revoked.Load() && (e == nil || e.Class == errs.ProcFailed || e.Class == errs.Revoked):
		return nil
	case e == nil:
		return l.failure
	}
	return e
}

// closing is what remains of leaving when the program's call has ended.
type closing struct{ l *leaving }

// Advance implements engine.Background.
func (c closing) Advance() bool {
	if !c.l.Advance() {
		return false
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.l.closed
}

// close closes the channels if nothing needs them.
func (l *leaving) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return
	case !l.parted:
		l.parted = true
		comms.take(l.handle)
		l.pending, l.kept = l.c.underWay(), l.c.persistentMessages()
		if !l.c.met && slices.ContainsFunc(l.pending, (*Request).agrees) {
			l.c.tellFreed()
		}
	}
	l.pending = slices.DeleteFunc(l.pending, func(r *Request) bool { return !r.uses(l.c) })
	l.kept = slices.DeleteFunc(l.kept, func(k heldRequest) bool { return reqs.get(k.handle) != k.r && !k.r.uses(l.c) })
	if !slices.ContainsFunc(l.pending, (*Request).agrees) {
		l.c.closeFaults()
	}
	if l.closed = len(l.pending)+len(l.kept) == 0; l.closed {
		l.c.close()
	}
}

// persistentMessages returns the persistent messages of the communicator, under way or not.
func (c *Comm) persistentMessages() (list []heldRequest) {
	reqs.each(func(h int64, r *Request) {
		if r.persistent && !r.null && r.within(c) {
			list = append(list, heldRequest{h, r})
		}
	})
	return list
}

// within reports whether a request is a message in c.
func (r *Request) within(c *Comm) bool {
	switch o := r.op.(type) {
	case nil:
		return r.ch == c.pt
	case *partitionedSend:
		return contextOf(o.ch.Ctx) == c.ctx
	case *partitionedRecv:
		return contextOf(o.ch.Ctx) == c.ctx
	}
	return false
}

// Abandon implements operation.
func (l *leaving) Abandon() {
	l.mu.Lock()
	l.await = false
	l.mu.Unlock()
	l.sequence.Abandon()
	l.close()
}

// close frees the communicator's resources on this rank. The last rank to close it
// frees the barrier block.
func (c *Comm) close() {
	c.closeFaults()
	c.pt.Close()
	c.coll.Chan.Close()
	c.partitions.close(channelOf(c.ctx, channelPartitions))
	c.groups.close(channelOf(c.ctx, channelGroups))
	c.meetings.close(channelOf(c.ctx, channelMeetings))
	if c.block >= 0 && c.coll.Leave() {
		proc.seg.GiveBlock(c.block)
	}
	inUse.remove(c)
}

// underWay returns the requests of the communicator that are under way.
func (c *Comm) underWay() (list []*Request) {
	reqs.each(func(_ int64, r *Request) {
		if r.uses(c) {
			list = append(list, r)
		}
	})
	return list
}

// agrees reports whether the request is an agreement.
func (r *Request) agrees() bool {
	_, yes := r.op.(*agreeing)
	return yes
}

// uses reports whether the request is under way in c.
func (r *Request) uses(c *Comm) bool {
	if r.persistent { // another thread may be starting it
		if !r.starting.TryLock() {
			return true
		}
		defer r.starting.Unlock()
	}
	if r.inactive.Load() || r.null {
		return false
	}
	switch o := r.op.(type) {
	case nil:
		return r.ch == c.pt && !r.Done()
	case *joined:
		return o.recv.uses(c) || o.send.uses(c)
	case collective:
		return contextOf(o.Context()) == c.ctx && o.Active()
	case nonblocking:
		return contextOf(o.Context()) == c.ctx && o.Active()
	case *sequence:
		return o.ch == c.pt && o.active()
	case *bind:
		return contextOf(o.ch.Ctx) == c.ctx && !o.Advance()
	case *agreeing:
		return o.c == c && !o.Advance()
	case *meeting:
		return (o.local == c || o.peer == c) && !o.Advance()
	case *connecting:
		return o.c == c && !o.Advance()
	case *partitionedSend:
		return contextOf(o.ch.Ctx) == c.ctx && !o.Advance()
	case *partitionedRecv:
		return contextOf(o.ch.Ctx) == c.ctx && !o.Advance()
	}
	return false
}
