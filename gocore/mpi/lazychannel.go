package mpi

import (
	"sync"

	"gormapy/gocore/p2p"
)

// lazyChannel is a channel that a communicator opens when it is first used.
type lazyChannel struct {
	opening sync.Mutex
	ch      *p2p.Channel // nil until it is used
}

// get returns the channel, and opens it if it was not used before.
func (l *lazyChannel) get(open func() *p2p.Channel) *p2p.Channel {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.ch == nil {
		l.ch = open()
		l.ch.SetInternal()
	}
	return l.ch
}

// revoke revokes the channel, if it is open.
func (l *lazyChannel) revoke() {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.ch != nil {
		l.ch.Revoke()
	}
}

// close closes the channel. If this rank has not used it, others may have: it then has this number.
func (l *lazyChannel) close(number uint32) {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.ch != nil {
		l.ch.Close()
	} else {
		proc.p2p.Drop(number)
	}
}

// sibling opens a channel of the communicator that has the ranks of its collectives.
func (c *Comm) sibling(channel uint32) *p2p.Channel {
	ch := proc.p2p.Open(channelOf(c.ctx, channel), c.coll.Chan.Rank, c.coll.Chan.World)
	if sides := c.coll.Sides; sides != nil {
		ch.Name(sides.Name)
	}
	if c.faults.revoked.Load() {
		ch.Revoke()
	}
	return ch
}
