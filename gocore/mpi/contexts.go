package mpi

import (
	"math/bits"
	"math/rand/v2"
	"sync"

	"gormapy/gocore/errs"
)

// contexts draws the contexts of communicators, and so the ids of windows. A context is the
// rank that draws it, in as many upper bits as the ranks of the job need, and a number of
// that rank. So contexts are unique in the job without communication: one rank of a new
// communicator draws, and tells the others. It is the first one, or the leader that
// Create_intercomm was given.
//
// The contexts of communicators with processes of several jobs, and of windows on them, are random numbers with the highest bit
// set. That one of them is in use already, at a process that is to be a member, is not probable (once in 200 million, for one
// communicator) and is an error.
//
// A number is used again once the communicator that had it is freed on this rank, with all its operations complete, at the
// earliest after all other numbers have had their turn. That another rank has operations of it under way all that time
// is an error there. In a job of 65,536 ranks each can
// be the first of 4,094 communicators at a time.
type contexts struct {
	rank    uint32
	numbers uint32 // how many numbers a rank has: a power of two

	mu   sync.Mutex
	last uint32 // the number drawn last
}

// ctxWidth is the width of a context in bits. Messages have three more, for the channels of a
// communicator.
const ctxWidth = 29

// spanning is the highest bit of the contexts of communicators with processes of several jobs.
const spanning = 1 << (ctxWidth - 1)

// The channels of a communicator.
const (
	channelMessages   = iota // of the program
	channelInternal          // of collectives
	channelPartitions        // of partitioned requests
	channelGroups            // of Create_group
	channelMeetings          // of Create_intercomm
)

// channelOf returns the number that messages of a communicator's channel carry.
func channelOf(ctx, channel uint32) uint32 { return ctx<<3 | channel }

// contextOf is the inverse.
func contextOf(channel uint32) uint32 { return channel >> 3 }

// The numbers of contexts. Number 0 of rank 0 is that of COMM_WORLD.
const (
	selfNumber  = 1 // COMM_SELF
	firstNumber = 2 // the first one that is drawn
)

// init makes c draw for a rank of a job of size ranks.
func (c *contexts) init(rank, size int) {
	c.rank, c.numbers, c.last = uint32(rank), 1<<(ctxWidth-1-bits.Len(uint(size-1))), selfNumber
}

// self returns the context of this rank's COMM_SELF.
func (c *contexts) self() uint32 { return c.rank*c.numbers + selfNumber }

// draw returns a context that no communicator of used has, or an error if there is none.
func (c *contexts) draw(used func(ctx uint32) bool) (uint32, *errs.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.numbers {
		if c.last++; c.last >= c.numbers {
			c.last = firstNumber
		}
		if ctx := c.rank*c.numbers + c.last; c.last < c.numbers && !used(ctx) {
			return ctx, nil
		}
	}
	return 0, errs.New(errs.Other, "rank %d has numbered %d communicators and windows, those that it is the first rank or a leader of, and in a job of this size it can't number more: free those that are not needed any more",
		c.rank, max(c.numbers, firstNumber)-firstNumber)
}

// inUse are the communicators whose channels are open, by context: all that have not been freed, and those that have been
// and whose operations are not over.
var inUse openComms

type openComms struct {
	mu   sync.Mutex
	list map[uint32]*Comm
}

func (o *openComms) add(c *Comm) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.list == nil {
		o.list = map[uint32]*Comm{}
	}
	o.list[c.ctx] = c
}

func (o *openComms) remove(c *Comm) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.list[c.ctx] == c {
		delete(o.list, c.ctx)
	}
}

// has reports whether a communicator has a context.
func (o *openComms) has(ctx uint32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list[ctx] != nil
}

// each calls f for all communicators.
func (o *openComms) each(f func(c *Comm)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.list {
		f(c)
	}
}

// newSpanningCtx draws the context of a communicator with processes of several jobs.
func newSpanningCtx() uint32 {
	for {
		if ctx := rand.Uint32N(spanning) | spanning; !inUse.has(ctx) {
			return ctx
		}
	}
}

// newCtx draws the context of a communicator.
func newCtx() (uint32, *errs.Error) { return proc.contexts.draw(inUse.has) }

// noCtx is the proposal of a rank that could not draw a context.
const noCtx = -1

// offerCtx returns the context that this rank proposes for a communicator of some of these processes, noCtx if it has none.
func offerCtx(world []int) int64 {
	if spans(world) {
		return int64(newSpanningCtx())
	}
	ctx, e := newCtx()
	if e != nil {
		return noCtx
	}
	return int64(ctx)
}

// takeCtx returns the context that rank, a world rank, has proposed, or why there is none.
func takeCtx(proposed int64, rank int) (uint32, *errs.Error) {
	if proposed == noCtx {
		return 0, errs.New(errs.Other, "world rank %d, the first rank or a leader of the new communicator, was to number it, and has numbered as many as it can in a job of this size: free those that are not needed any more", rank)
	}
	ctx := uint32(proposed)
	if inUse.has(ctx) { // at this rank, though not at the one that has drawn it: see there
		return 0, errs.New(errs.Other, "the context %#x of a new communicator is in use at this rank: make the communicator again", ctx)
	}
	return ctx, nil
}
