package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Partitioned requests (MPI-4.1, chapter 4). A sender says of each part of its buffer when
// it is ready, and each part is sent then.
//
// # Protocol
//
// A communicator has a channel for them. The first message that a partitioned send sends, when
// it is made, is its offer: the number of its partitions, their length, and a tag of the channel
// for each. It has the tag of the program, and a partitioned receive posts its receive
// when it is made. So sends and receives are matched in the order in which they are
// made, and once only, as the standard says.
//
// The tags of partitions are negative, other than AnyTag, and are never used again. In each
// start, partition i is one message with the i-th of these tags, sent when it is ready. A
// receive that has been started posts a receive for each partition of the sender as soon as
// it has the offer, whatever its own partitions are: a partition of it has arrived when
// those of the sender have that it overlaps. Messages with one tag arrive in order, so
// what a sender sends for its next start is not taken for this one.
//
// Several threads may call Pready and Parrived at the same time, also while another waits. A
// send partition goes from idle to claimed by the one thread that starts its message, and
// from there to launched: before that, nobody else looks at its request. When the program
// gives the request up, partitions that are idle are dropped: they are never sent. All of a
// receive is guarded by its mutex.

// States of a partition of a send.
const (
	partitionIdle uint32 = iota
	partitionClaimed
	partitionLaunched
	partitionDropped
)

// partitionSpace is what a communicator has for partitioned requests.
type partitionSpace struct {
	lazyChannel
	mu   sync.Mutex
	used map[int]int // by rank of the receiver: how many tags are in use
}

// firstPartitionTag is the first tag of partitions; the others are below it.
const firstPartitionTag = p2p.AnyTag - 1

// partitionTags is how many there are.
const partitionTags = 1<<31 + firstPartitionTag + 1

// mostPartitions is how many a request can have. Each takes some hundred bytes on both sides.
const mostPartitions = 1 << 20

// partitionChannel returns the channel of partitioned requests.
func (c *Comm) partitionChannel() *p2p.Channel {
	return c.partitions.get(func() *p2p.Channel {
		ch := proc.p2p.Open(channelOf(c.ctx, channelPartitions), c.pt.Rank, c.pt.World)
		ch.SetChecked()
		if sides := c.coll.Sides; sides != nil {
			ch.Name(func(r int) string { return sides.Name(sides.Remote[r]) })
		}
		if c.faults.revoked.Load() { // since the caller has looked
			ch.Revoke()
		}
		return ch
	})
}

// take takes n tags for partitions that are sent to a rank, and returns the first; tag i
// is i below it.
func (s *partitionSpace) take(dest, n int) (first int, e *errs.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used[dest]
	if n > partitionTags-used {
		return 0, errs.New(errs.Other, "Psend_init: %d of the %d partitions that can be made for messages to one rank of a communicator have been made, %d more were asked for: continue with a duplicate of the communicator",
			used, partitionTags, n)
	}
	if s.used == nil {
		s.used = map[int]int{}
	}
	s.used[dest] = used + n
	return firstPartitionTag - used, nil
}

// offer is the first message of a partitioned send.
type offer struct {
	partitions, bytes int64 // bytes of one partition
	tag               int64 // of the first partition
}

const offerBytes = int(unsafe.Sizeof(offer{}))

func (o *offer) buf() p2p.Buf { return rawBytes(unsafe.Pointer(o), offerBytes) }

// partitionedBuf returns the buffer of all partitions, of count items each.
func partitionedBuf(addr, partitions, count, typ int64) (b p2p.Buf, e *errs.Error) {
	if partitions < 0 || partitions > mostPartitions {
		return b, errs.New(errs.Arg, "%d partitions: a request can have 0 to %d", partitions, mostPartitions)
	}
	if count < 0 || partitions > 0 && count > (1<<62)/partitions {
		return b, errs.New(errs.Count, "%d partitions of %d items: the count is negative or too large", partitions, count)
	}
	return buf(addr, partitions*count, typ)
}

// itemsOf returns n of b's items, from item first on.
func itemsOf(b p2p.Buf, first, n int) p2p.Buf {
	if b.Addr != nil {
		b.Addr = unsafe.Add(b.Addr, first*b.Type.Extent())
	}
	b.Count = n
	return b
}

// partitionedSend is the operation of a partitioned send.
type partitionedSend struct {
	ch        *p2p.Channel
	dest, tag int
	buf       p2p.Buf // of all partitions
	first     int     // tag of the first partition
	parts     []sentPartition
	unready   atomic.Int32 // partitions that are not ready yet

	offer    offer
	offering p2p.Request

	mu   sync.Mutex
	gen  uint32 // the generation in which it was started
	sent int    // the partitions before this one have been sent
	err  *errs.Error
}

type sentPartition struct {
	p2p.Request
	state atomic.Uint32
}

// PsendInit makes a partitioned send: partitions of count items each.
func PsendInit(comm, addr, partitions, count, typ int64, dest, tag int) (req int64, code Code) {
	defer Contain(&code)
	c, b, e := partitionedArgs(false, comm, addr, partitions, count, typ, dest, tag)
	if e != nil {
		return 0, CodeOf(e)
	}
	s := &partitionedSend{dest: dest, tag: tag, buf: b, parts: make([]sentPartition, partitions)}
	r := &Request{op: s, persistent: true, null: dest == p2p.ProcNull}
	r.inactive.Store(true)
	r.start = func() (operation, Code) { s.begin(); return s, 0 }
	if !r.null {
		s.ch = c.partitionChannel()
		if s.first, e = c.partitions.take(dest, int(partitions)); e != nil {
			return 0, CodeOf(e)
		}
		s.offer = offer{partitions: partitions, bytes: count * int64(b.Type.Size()), tag: int64(s.first)}
		s.ch.Send(&s.offering, p2p.Buffered, s.offer.buf(), dest, tag)
	}
	return reqs.add(r), 0
}

// partitionedArgs checks the arguments of a partitioned send or receive.
func partitionedArgs(recv bool, comm, addr, partitions, count, typ int64, peer, tag int) (c *Comm, b p2p.Buf, e *errs.Error) {
	if c, e = getUsableComm(comm); e != nil {
		return c, b, e
	}
	if recv && (peer == p2p.AnySource || tag == p2p.AnyTag) && peer != p2p.ProcNull {
		return c, b, errs.New(errs.Arg, "Precv_init: a partitioned receive needs the rank and the tag of its send; ANY_SOURCE and ANY_TAG are not possible")
	}
	if e = c.checkPeer(recv, peer, tag); e != nil {
		return c, b, e
	}
	b, e = partitionedBuf(addr, partitions, count, typ)
	return c, b, e
}

// begin makes all partitions not ready.
func (s *partitionedSend) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.parts {
		s.parts[i].state.Store(partitionIdle)
	}
	s.unready.Store(int32(len(s.parts)))
	s.sent, s.err = 0, nil
	if s.ch != nil {
		s.gen = s.ch.Generation()
	}
}

// ready sends partition i, and reports whether it was not ready yet.
func (s *partitionedSend) ready(i int, null bool) bool {
	p := &s.parts[i]
	if !p.state.CompareAndSwap(partitionIdle, partitionClaimed) {
		return false
	}
	if !null {
		n := s.buf.Count / len(s.parts)
		s.ch.Send(&p.Request, p2p.Standard, itemsOf(s.buf, i*n, n), s.dest, s.first-i)
	}
	p.state.Store(partitionLaunched)
	s.unready.Add(-1)
	return true
}

func (s *partitionedSend) Advance() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent < len(s.parts) {
		if e := s.ch.Dropped(s.gen); e != nil {
			s.err = e
			s.drop()
		}
	}
	for ; s.sent < len(s.parts); s.sent++ {
		p := &s.parts[s.sent]
		switch state := p.state.Load(); {
		case state == partitionDropped:
		case state != partitionLaunched || !p.Done():
			return false
		case s.err == nil:
			s.err = p.Status().Err
		}
	}
	return true
}

// Check implements operation. A send that is not complete can't be if the receiver has ended or the communicator is revoked.
func (s *partitionedSend) Check() error {
	if e := s.ch.Revoked(); e != nil && !s.Advance() {
		return e
	}
	if to := s.ch.World[s.dest]; proc.eng.Gone(to) && !s.Advance() {
		return errs.New(errs.ProcFailed, "partitioned send to rank %d with tag %d can't complete: %s", s.dest, s.tag, proc.eng.HowGone(to))
	}
	return nil
}

func (s *partitionedSend) Abandon() {
	s.drop()
	for i := range s.parts {
		if p := &s.parts[i]; p.state.Load() == partitionLaunched {
			s.ch.Abandon(&p.Request)
		}
	}
}

// drop gives up the partitions that are not ready: the program can't make them ready any more.
func (s *partitionedSend) drop() {
	for i := range s.parts {
		s.parts[i].state.CompareAndSwap(partitionIdle, partitionDropped)
	}
}

func (s *partitionedSend) Err() *errs.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *partitionedSend) describe(why *engine.Reason) {
	why.Call, why.Ctx = job.CallWait, uint64(s.ch.Ctx)
	if n := s.unready.Load(); n > 0 {
		why.Info = fmt.Sprintf("%d partitions not ready", n)
		return
	}
	why.Call, why.Peer, why.Tag = job.CallSend, s.ch.World[s.dest], s.tag
}

// Pready sends partitions first to last of a partitioned send that has been started.
func Pready(req int64, first, last int) (code Code) {
	defer Contain(&code)
	r, s, e := startedSend(req)
	if e == nil && last < first {
		e = errs.New(errs.Arg, "Pready_range: the partitions %d to %d: the last is before the first", first, last)
	}
	for i := first; e == nil && i <= last; i++ {
		e = s.check(i)
	}
	for i := first; e == nil && i <= last; i++ {
		e = r.ready(s, i)
	}
	if s != nil {
		proc.me.Ring() // another thread may wait for the request
	}
	return CodeOf(e)
}

// PreadyList is Pready for the n partitions whose numbers lie at addr. It keeps nothing of them.
func PreadyList(req, addr, n int64) (code Code) {
	defer Contain(&code)
	r, s, e := startedSend(req)
	list := longs(addr, n)
	seen := make(map[int64]bool, len(list))
	for _, i := range list {
		switch {
		case e != nil:
		case seen[i]:
			e = errs.New(errs.Arg, "Pready_list: partition %d is in the list twice", i)
		case i != int64(int(i)):
			e = s.outside(i)
		default:
			e = s.check(int(i))
		}
		seen[i] = true
	}
	for _, i := range list {
		if e == nil {
			e = r.ready(s, int(i))
		}
	}
	if s != nil {
		proc.me.Ring() // another thread may wait for the request
	}
	return CodeOf(e)
}

// startedSend returns a partitioned send whose partitions can be made ready.
func startedSend(req int64) (*Request, *partitionedSend, *errs.Error) {
	if e := ready(); e != nil {
		return nil, nil, e
	}
	r, e := getRequest(req)
	if e != nil {
		return nil, nil, e
	}
	s, ok := r.op.(*partitionedSend)
	switch {
	case !ok:
		return nil, nil, errs.New(errs.Request, "Pready of a request that is not a partitioned send: Psend_init makes one")
	case r.inactive.Load():
		return nil, nil, errs.New(errs.Request, "Pready of a partitioned send that is not started: call Start first")
	case r.null:
		return r, s, nil
	}
	return r, s, s.ch.Dropped(s.gen)
}

// check returns an error if partition i can't be made ready.
func (s *partitionedSend) check(i int) *errs.Error {
	switch {
	case i < 0 || i >= len(s.parts):
		return s.outside(int64(i))
	case s.parts[i].state.Load() != partitionIdle:
		return errs.New(errs.Arg, "Pready: partition %d is ready already; wait for the request and start it again first", i)
	}
	return nil
}

func (s *partitionedSend) outside(i int64) *errs.Error {
	return errs.New(errs.Arg, "Pready: there is no partition %d: the request has %d, numbered from 0", i, len(s.parts))
}

// ready makes partition i ready. It returns an error if another thread has.
func (r *Request) ready(s *partitionedSend, i int) *errs.Error {
	if !s.ready(i, r.null) {
		return s.check(i)
	}
	return nil
}
