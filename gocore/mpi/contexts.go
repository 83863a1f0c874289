package mpi

import (
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
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
// Contexts are used again, so messages that are not matched by receives say which communicator they mean by a serial number, too.
//
// A number is used again once the communicator that had it is freed on this rank, with all its operations complete, at the
// earliest after all other numbers have had their turn. That another rank has operations of it under way all that time
// is an error there. In a job of 65,536 ranks each can
// be the first of 4,094 communicators at a time.
type contexts struct {
	rank    uint32
	numbers uint32 // how many numbers a rank has: a power of two

	mu     sync.Mutex
	last   uint32 // the number drawn last
	serial uint32 // of the context drawn last
}

// drawn is a context, and which of the communicators that have it one after the other is meant.
type drawn struct {
	ctx    uint32
	serial uint32 // below 2^31
}

// word returns the form in which ranks tell each other of d. It is not negative.
func (d drawn) word() int64 { return int64(d.serial)<<32 | int64(d.ctx) }

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
func (c *contexts) draw(used func(ctx uint32) bool) (drawn, *errs.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.numbers {
		if c.last++; c.last >= c.numbers {
			c.last = firstNumber
		}
		if ctx := c.rank*c.numbers + c.last; c.last < c.numbers && !used(ctx) {
			c.serial = (c.serial + 1) % (1 << 31)
			return drawn{ctx, c.serial}, nil
		}
	}
	return drawn{}, errs.New(errs.Other, "rank %d has numbered %d communicators and windows, those that it is the first rank or a leader of, and in a job of this size it can't number more: free those that are not needed any more",
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

// get returns the communicator that has a context, nil if there is none.
func (o *openComms) get(ctx uint32) *Comm {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list[ctx]
}

// has reports whether a communicator has a context.
func (o *openComms) has(ctx uint32) bool { return o.get(ctx) != nil }

// all returns the communicators.
func (o *openComms) all() []*Comm {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.list))
}

// newSpanningCtx draws the context of a communicator with processes of several jobs.
func newSpanningCtx() drawn {
	for {
		if ctx := rand.Uint32N(spanning) | spanning; !inUse.has(ctx) {
			return drawn{ctx, rand.Uint32N(1 << 31)}
		}
	}
}

// newCtx draws the context of a communicator.
func newCtx() (drawn, *errs.Error) { return proc.contexts.draw(inUse.has) }

// noCtx is the proposal of a rank that could not draw a context.
const noCtx = -1

// offerCtx returns the context that this rank proposes for a communicator of some of these processes, noCtx if it has none.
func offerCtx(world []int) int64 {
	if spans(world) {
		return newSpanningCtx().word()
	}
	d, e := newCtx()
	if e != nil {
		return noCtx
	}
	return d.word()
}

// takeCtx returns the context that rank, a world rank, has proposed, or why there is none.
func takeCtx(proposed int64, rank int) (drawn, *errs.Error) {
	if proposed == noCtx {
		return drawn{}, errs.New(errs.Other, "world rank %d, the first rank or a leader of the new communicator, was to number it, and has numbered as many as it can in a job of this size: free those that are not needed any more", rank)
	}
	d := drawn{uint32(proposed), uint32(proposed >> 32)}
	if inUse.has(d.ctx) { // at this rank, though not at the one that has drawn it: see there
		return drawn{}, errs.New(errs.Other, "the context %#x of a new communicator is in use at this rank: make the communicator again", d.ctx)
	}
	return d, nil
}
