package mpi

import (
	"sync"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// round is a collective of a sequence: a *coll.Op or an onBoard.
type round interface {
	Advance() bool
	Check() error
	Abandon()
	Err() *errs.Error
}

// onBoard is a round by the board of a communicator.
type onBoard struct {
	*coll.BoardOp
	c *Comm
}

// sequence is an operation of several collectives, each built from the results of the
// one before. step starts collective number k; it returns nil at the end.
type sequence struct {
	mu         sync.Mutex
	step       func(s *sequence, k int) round
	k          int
	cur        round
	done       bool
	err        *errs.Error
	result     int64
	undo       func() // called if it fails, or is given up
	background bool   // it advances in any wait of this process when its call does not wait for it
	call       job.Call
	ch         *p2p.Channel
	gen        uint32
}

func newSequence(c *Comm, step func(s *sequence, k int) round) *sequence {
	return &sequence{step: step, call: job.CallCommCreate, ch: c.pt, gen: c.pt.Generation()}
}

func (s *sequence) Advance() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.done {
		if s.cur != nil {
			if !s.cur.Advance() {
				return false
			}
			if s.err = s.cur.Err(); s.err != nil {
				s.done = true
				break
			}
			if o, yes := s.cur.(onBoard); yes {
				o.Release()
				s.cur = nil // another call may be using it
			}
		}
		if s.err = s.ch.Dropped(s.gen); s.err != nil {
			s.done = true
			break
		}
		s.cur = s.step(s, s.k)
		s.k++
		s.done = s.cur == nil || s.err != nil
	}
	if s.err != nil {
		s.takeBack()
	}
	return true
}

// takeBack undoes what has been done, once.
func (s *sequence) takeBack() {
	if s.undo != nil {
		s.undo()
		s.undo = nil
	}
}

func (s *sequence) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		return s.cur.Check()
	}
	return nil
}

func (s *sequence) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		s.cur.Abandon()
	}
	if !s.done {
		s.takeBack()
	}
	s.done = true
}

func (s *sequence) Err() *errs.Error { return s.err }

// active reports whether the operation has not ended.
func (s *sequence) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.done
}

func (s *sequence) handle() int64 { return s.result }

func (s *sequence) rest() engine.Background {
	if s.background {
		return s
	}
	return nil
}

func (s *sequence) describe(why *engine.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why.Call = s.call
	switch o := s.cur.(type) {
	case *coll.Op:
		describeColl(o, why)
	case onBoard:
		why.Peer = o.c.group.ranks[o.Pending()]
	}
}
