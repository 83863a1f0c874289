package p2p

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/check/events"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
	"gormapy/gocore/trace"
)

// The flags of Header.Flags. FlagSync: the sender of this Eager waits for Fin, which
// is sent when it is matched. FlagPull: A is the sender's token and B the address of
// the data. FlagMapped: A is the sender's token and B the share of the data (engine.Share).
// FlagKey: A is the sender's token and the payload the key of the data. FlagAhead: A is
// the sender's token and the payload the beginning of the data.
// FlagFailed: no more Data of this message follows, since the sender can't read it.
const (
	FlagSync   uint8 = 1
	FlagPull   uint8 = 2
	FlagKey    uint8 = 4
	FlagFailed uint8 = 8
	FlagMapped uint8 = 16
	FlagAhead  uint8 = 32
)

// flagsInPlace are those of an announcement that says where the data is: the receiver takes it from there.
const flagsInPlace = FlagPull | FlagMapped

// EagerLimit is the limit of the eager protocol in bytes, where the transport has none of its own
// (fabric.Caps.MaxEager). A message up to it is copied
// twice (into the ring and out of it); a longer one is copied once by the
// kernel, which costs about 1.5 us to begin with.
const EagerLimit = 16 << 10

// P2P is the point-to-point layer of a process.
type P2P struct {
	eng       *engine.Engine
	gen       atomic.Uint32
	resetting atomic.Bool // from Reset to Settle

	mu     sync.RWMutex
	queues map[uint32]*queue
	latest atomic.Pointer[queue] // one of queues, that was asked for last; nil: none

	credits     []credit // by world rank
	creditLimit int64

	timings        []timings    // by world rank
	abandonedReads atomic.Int32 // see reading
	incoming       []incoming   // by world rank; under the poll lock

	tokens  sync.Mutex
	next    uint64
	byID    map[uint64]*Request
	streams []uint64 // by world rank: the token of the last receive in pieces
}

// New returns the layer and sets the handlers of its kinds of messages.
func New(e *engine.Engine) *P2P {
	p := &P2P{eng: e, queues: map[uint32]*queue{}, byID: map[uint64]*Request{}, timings: make([]timings, e.Places()),
		streams: make([]uint64, e.Places()), incoming: make([]incoming, e.Places()), credits: make([]credit, e.Places()), creditLimit: creditLimit(e.Size)}
	e.Handle(fabric.KindEager, p.onMessage)
	e.Handle(fabric.KindRTS, p.onMessage)
	e.Handle(fabric.KindCTS, p.onCTS)
	e.Handle(fabric.KindData, p.onData)
	e.Handle(fabric.KindFin, p.onFin)
	e.Handle(fabric.KindCredit, p.onCredit)
	e.Handle(fabric.KindCall, p.onTold)
	e.SetPlacer(fabric.KindEager, p.placeMessage)
	e.SetPlacer(fabric.KindRTS, p.placeMessage)
	e.SetPlacer(fabric.KindData, p.placeData)
	e.OnGone(p.forgetGivenUp)
	e.OnForget(func(n int) {
		p.credits[n], p.timings[n], p.incoming[n], p.streams[n] = credit{}, timings{}, incoming{}, 0
	})
	return p
}

// Channel is one context with the ranks that communicate in it. A communicator has
// two.
type Channel struct {
	p     *P2P
	q     *queue
	Ctx   uint32
	Rank  int   // own rank, as the others know it
	World []int // world ranks of those that this one sends to and receives from; in an intercommunicator it is not among them

	acknowledged func(rank int) bool // see Acknowledge; nil: no failure is
}

// SetInternal marks messages that are not the program's: they are not recorded, and errors do not name their tags.
func (c *Channel) SetInternal() { c.q.internal = true }

// SetChecked has a checker told of messages that are sent, though they are internal: who receives them tells it, too.
func (c *Channel) SetChecked() { c.q.checked = true }

// Internal reports whether SetInternal was called.
func (c *Channel) Internal() bool { return c.q.internal }

// Name gives errors names for ranks that the program knows by other numbers than the channel. It comes before the first
// request.
func (c *Channel) Name(names func(rank int) string) { c.q.names = names }

// Acknowledge sets the function that reports whether a rank's failure is acknowledged: receives from any source ignore it. It comes
// before the first request.
func (c *Channel) Acknowledge(f func(rank int) bool) { c.acknowledged = f }

// Revoke makes all operations in the channel fail, also those that are under way.
func (c *Channel) Revoke() { c.q.revoked.Store(true) }

// Revoked returns an error if the channel has been revoked.
func (c *Channel) Revoked() *errs.Error {
	if c.q.revoked.Load() {
		return errs.New(errs.Revoked, "the communicator has been revoked")
	}
	return nil
}

// Open returns the channel with context ctx. Messages for it may have arrived before.
func (p *P2P) Open(ctx uint32, rank int, world []int) *Channel {
	return &Channel{p: p, q: p.queue(ctx), Ctx: ctx, Rank: rank, World: world}
}

// Close drops the context and the messages in it that were not received.
func (c *Channel) Close() {
	c.p.mu.Lock()
	if c.p.queues[c.Ctx] == c.q {
		delete(c.p.queues, c.Ctx)
		c.p.latest.Store(nil)
	}
	c.p.mu.Unlock()
	c.p.empty(c.q)
}

// Drop drops the messages of a context that this rank has not opened.
func (p *P2P) Drop(ctx uint32) {
	p.mu.Lock()
	q := p.queues[ctx]
	delete(p.queues, ctx)
	p.latest.Store(nil)
	p.mu.Unlock()
	if q != nil {
		p.empty(q)
	}
}

// empty drops the messages of a queue.
func (p *P2P) empty(q *queue) {
	q.mu.Lock()
	left := q.arrived.take(func(*message) bool { return true })
	q.mu.Unlock()
	for _, m := range left {
		p.drop(m.world, &m.header, len(m.payload))
	}
}

func (p *P2P) queue(ctx uint32) *queue {
	if q := p.latest.Load(); q != nil && q.ctx == ctx {
		return q
	}
	p.mu.RLock()
	q := p.queues[ctx]
	p.latest.Store(q) // under the lock: who drops the queue comes before, or resets it
	p.mu.RUnlock()
	if q != nil {
		return q
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if q = p.queues[ctx]; q == nil {
		q = newQueue(ctx)
		p.queues[ctx] = q
	}
	return q
}

// remember gives r a token, by which recall finds it.
func (p *P2P) remember(r *Request) uint64 {
	p.tokens.Lock()
	p.next++
	r.token = p.next
	p.byID[r.token] = r
	p.tokens.Unlock()
	return r.token
}

// announced reports whether this rank, too, has announced a long message that has not been received. Then its peer copies that
// meanwhile, and no core is left for the second copy of a stream. With many requests under way it does not look at all of them.
func (p *P2P) announced() bool {
	p.tokens.Lock()
	defer p.tokens.Unlock()
	left := 16
	for _, r := range p.byID {
		if !r.recv && r.head.Kind == fabric.KindRTS {
			return true
		}
		if left--; left == 0 {
			break
		}
	}
	return false
}

// recall returns the request of a token and ends the token; nil if there is none.
func (p *P2P) recall(token uint64) *Request {
	p.tokens.Lock()
	r := p.byID[token]
	delete(p.byID, token)
	p.tokens.Unlock()
	return r
}

// Send starts a send of b to rank dest of the channel with the given tag.
// r is a new or completed request.
func (c *Channel) Send(r *Request, mode Mode, b Buf, dest, tag int) {
	c.send(r, mode, b, dest, tag, Label{})
}

func (c *Channel) send(r *Request, mode Mode, b Buf, dest, tag int, l Label) {
	n := b.Bytes()
	to := c.World[dest]
	*r = Request{q: c.q, src: dest, tag: tag, gen: c.p.gen.Load(), buf: b, room: r.room}
	r.world.Store(int32(to))
	h := &r.head
	*h = fabric.Header{Kind: fabric.KindEager, Gen: r.gen, Ctx: c.Ctx, Src: int32(c.Rank), Tag: int32(tag), Aux: l.Word, Len: uint64(n), B: l.Size}
	r.status = Status{Source: AnySource, Tag: AnyTag}
	if e := c.Revoked(); e != nil {
		r.fail(e)
		return
	}
	if recording := trace.On(); recording != nil && !c.q.internal {
		h.Aux = recording.Sent(c.Ctx, to, tag, n)
	}
	if checked := events.On(); checked != nil && (!c.q.internal || c.q.checked) {
		if h.Aux == 0 {
			h.Aux = trace.Number()
		}
		checked.Write(events.Sent, int64(h.Aux), int64(to))
	}
	limit := c.p.eng.MaxEager(to, EagerLimit)
	if n <= limit && c.p.charge(r, to, n) {
		c.sendEager(r, mode, n)
		return
	}
	h.Kind = fabric.KindRTS
	owner := r
	if mode == Buffered {
		// The message outlives the caller's request: another request has a copy of the data.
		owner = &Request{q: c.q, src: dest, tag: tag, gen: r.gen, buf: b}
		owner.world.Store(int32(to))
		if err := owner.pack(n); err != nil {
			r.fail(r.refusal(err))
			return
		}
		r.complete()
	}
	data, err := c.flatten(owner, n)
	if err != nil {
		r.fail(r.refusal(err))
		return
	}
	h.A = c.p.remember(owner)
	var payload []byte
	if _, caps := c.p.eng.Transport(to); caps.Keys {
		if payload = c.p.offer(owner, data); payload != nil {
			h.Flags = FlagKey
		}
	} else if share := c.p.share(to, caps, data); share != 0 {
		h.Flags, h.B = FlagMapped, share
		payload = l.payload()
	} else if caps.OneSided {
		h.Flags, h.B = FlagPull, uint64(uintptr(unsafe.Pointer(&data[0])))
		payload = l.payload()
	} else if n := c.p.ahead(to, data); n > 0 {
		c.p.sendAhead(owner, to, *h, data[:n])
		return
	}
	c.p.eng.Send(to, h, payload, nil, nil)
}

// share returns the share of a long message's data, if its receiver can map it; else 0.
func (p *P2P) share(to int, caps fabric.Caps, data []byte) uint64 {
	if !caps.Mappable || to == p.eng.Rank {
		return 0
	}
	return p.eng.Share(unsafe.Pointer(&data[0]), len(data))
}

// sendEager sends the n bytes of a short message in one packet with its header.
func (c *Channel) sendEager(r *Request, mode Mode, n int) {
	to, h := r.Peer(), &r.head
	data, err := c.flattenShort(r, n)
	if err != nil {
		r.refund()
		r.fail(r.refusal(err))
		return
	}
	out := false
	switch mode {
	case Synchronous:
		h.Flags, h.A = FlagSync, c.p.remember(r)
		if _, err = c.p.eng.Send(to, h, data, r, synchronous{r}); err != nil {
			c.p.recall(h.A)
		}
	case Buffered:
		if out, err = c.p.eng.Send(to, h, data, r, nil); err == nil && !out {
			out, err = true, c.p.eng.Detach(to, r)
		}
	default:
		out, err = c.p.eng.Send(to, h, data, r, r)
	}
	switch {
	case err != nil:
		r.refund()
		r.fail(r.refusal(err))
	case out:
		r.complete()
	}
}

// synchronous is the Sender of a short synchronous send. That the message was sent does
// not complete the request, which completes when it is matched.
type synchronous struct{ *Request }

func (s synchronous) Sent(err error) {
	if err != nil {
		s.Request.Sent(err)
	}
}

// flatten returns the data in contiguous memory: the buffer itself or a packed copy.
func (c *Channel) flatten(r *Request, n int) ([]byte, error) {
	switch {
	case r.flat != nil:
		return r.flat, nil
	case n == 0:
		return nil, nil
	case r.buf.dense():
		return engine.Bytes(r.buf.Addr, n), nil
	}
	err := r.pack(n)
	return r.flat, err
}

// flattenShort is flatten for a message that is sent in one packet. The copy is in memory that the request keeps: nobody reads it any
// more once the request has completed.
func (c *Channel) flattenShort(r *Request, n int) ([]byte, error) {
	if n == 0 || n > EagerLimit || r.buf.dense() {
		return c.flatten(r, n)
	}
	if cap(r.room) < n {
		r.room = make([]byte, n)
	}
	r.flat = r.room[:n]
	return r.flat, sys.Touch(func() { r.buf.Type.Pack(r.flat, r.buf.Addr, r.buf.Count) })
}

// pack copies the n bytes of the buffer to flat.
func (r *Request) pack(n int) error {
	return sys.Touch(func() {
		r.flat = sys.NewBytes(n)
		r.buf.Type.Pack(r.flat, r.buf.Addr, r.buf.Count)
	})
}

// unpack writes the received data in flat, if there is any, to the buffer.
func (r *Request) unpack() error {
	if r.flat == nil {
		return nil
	}
	return sys.Touch(func() { r.buf.Type.Unpack(r.buf.Addr, r.flat, r.buf.Count) })
}

// Recv starts a receive into b from rank source (or AnySource) with tag (or
// AnyTag).
func (c *Channel) Recv(r *Request, b Buf, source, tag int) {
	c.receive(r, b, source, tag, false)
}

// RecvWhole is Recv for a message whose size the receiver does not know. If the message is longer than b, or does not
// come in one piece, r completes when it is matched, and Matched returns it.
func (c *Channel) RecvWhole(r *Request, b Buf, source, tag int) {
	c.receive(r, b, source, tag, true)
}

// Matched returns the message that a completed RecvWhole has matched and not received; nil if it has received it.
func (c *Channel) Matched(r *Request) *Matched {
	if r.kept == nil {
		return nil
	}
	return &Matched{c, r.kept}
}

func (c *Channel) receive(r *Request, b Buf, source, tag int, whole bool) {
	*r = Request{recv: true, whole: whole, q: c.q, src: source, tag: tag, gen: c.p.gen.Load(), buf: b, room: r.room}
	r.world.Store(-1)
	r.status = Status{Source: source, Tag: tag}
	if source >= 0 {
		r.world.Store(int32(c.World[source]))
	}
	if e := c.Revoked(); e != nil {
		r.fail(e)
		return
	}
	c.q.mu.Lock()
	if m := c.q.arrived.find(source, tag, r.gen); m != nil {
		c.q.arrived.remove(m)
		c.q.mu.Unlock()
		c.p.take(r, m.world, &m.header, m.payload)
		m.received()
		return
	}
	c.q.posted.add(r)
	c.q.mu.Unlock()
}

// onMessage handles an Eager or RTS: it matches it or queues it as unexpected.
func (p *P2P) onMessage(src int, h *fabric.Header, payload []byte) {
	in := p.incoming[src]
	p.incoming[src] = incoming{}
	if int32(h.Gen-p.gen.Load()) < 0 {
		return
	}
	if in.token != 0 {
		p.placed(in, src, h, payload)
		return
	}
	q := p.queue(h.Ctx)
	q.mu.Lock()
	if r := q.takePosted(h); r != nil {
		q.mu.Unlock()
		p.take(r, src, h, payload)
		return
	}
	if q.listener != nil && q.listener.Stray(h) {
		q.mu.Unlock()
		p.drop(src, h, len(payload))
		return
	}
	q.arrived.add(newMessage(src, h, payload))
	q.mu.Unlock()
}

// match notes which message r receives. What is with it is its label, or data.
func (r *Request) match(src int, h *fabric.Header, payload []byte) {
	n := int(h.Len)
	r.world.Store(int32(src))
	r.number, r.label = h.Aux, labelOf(h, payload)
	r.status = Status{Source: int(h.Src), Tag: int(h.Tag), Bytes: n}
	room := r.buf.Bytes()
	if n > room && !r.whole {
		r.status.Bytes = room
		advice := "make the buffer larger, or ask for the size first with Probe"
		if r.q.internal {
			advice = "the counts of both ranks must be equal"
		}
		r.status.Err = errs.New(errs.Truncate, "a message of %d bytes from %s came for a buffer of %d bytes (what fits was received; %s)",
			n, r.q.peer(int(h.Src), int(h.Tag)), room, advice)
	}
	r.total = min(n, room)
}

// take starts the transfer of a matched message to its receive r.
func (p *P2P) take(r *Request, src int, h *fabric.Header, payload []byte) {
	r.match(src, h, payload)
	if r.whole && (r.total < r.status.Bytes || h.Kind != fabric.KindEager) {
		r.kept = &message{world: src, header: *h, payload: append([]byte(nil), payload...)}
		r.complete()
		return
	}
	p.received(src, h, len(payload))
	if h.Kind == fabric.KindEager {
		p.finish(r, src, h, r.put(payload))
		return
	}
	var local unsafe.Pointer
	if r.buf.dense() {
		local = r.buf.Addr
	} else if r.total > 0 {
		r.flat = make([]byte, r.total)
		local = unsafe.Pointer(&r.flat[0])
	}
	if h.Flags&(flagsInPlace|FlagKey) != 0 && r.total == 0 {
		p.fin(r, src, h)
		r.complete()
		return
	}
	switch {
	case h.Flags&FlagKey != 0:
		p.read(r, src, h, payload, local)
		return
	case h.Flags&FlagAhead != 0:
		r.failed = r.piece(0, payload[:min(len(payload), r.total)])
		p.goOn(r, src, h, len(payload))
		return
	case h.Flags&FlagMapped != 0:
		if from := p.eng.Map(src, h.B, h.Len); from != nil {
			err := sys.Touch(func() { p.eng.CopyFastest(local, from, r.total, p.eng.Pairs()) })
			if err == nil {
				err = r.unpack()
			}
			p.fin(r, src, h)
			r.end(err)
			return
		}
	}
	chosen := pull
	start := int64(0)
	if h.Flags&FlagPull == 0 {
		chosen = stream
	} else if p.streaming(src) {
		chosen = stream // not measured: the time of those before it would count, too
	} else if p.eng.Active(src) && !p.announced() {
		r.timing = p.timings[src].of(r.total)
		few := divided
		if r.total >= divideFrom && p.eng.Divides(r.total, p.eng.Pairs()) {
			few = protocols
		}
		chosen = r.timing.Choose(few)
		start = job.Now()
	}
	if chosen != stream {
		err := p.pull(chosen, src, local, fabric.RemoteKey{Addr: h.B}, r.total)
		if err == nil {
			err = r.unpack()
			if r.timing != nil {
				r.timing.Learn(chosen, job.Now()-start)
			}
			p.fin(r, src, h)
			r.end(err)
			return
		}
		if err == fabric.ErrPeerGone {
			p.eng.AwaitVerdict(src)
			r.fail(errs.New(errs.ProcFailed, "%s before its message of %d bytes with tag %d was received", p.eng.HowGone(src), h.Len, h.Tag))
			return
		}
	}
	r.start = start
	token := p.remember(r)
	p.tokens.Lock()
	p.streams[src] = token
	p.tokens.Unlock()
	p.clear(src, h, token, r.total, 0)
}

// finish completes the receive of a message that was sent whole. It has been matched, even if the data could not be
// stored.
func (p *P2P) finish(r *Request, src int, h *fabric.Header, err error) {
	if h.Flags&FlagSync != 0 {
		p.fin(r, src, h)
	}
	r.end(err)
}

// pull reads a long message from its sender's memory.
func (p *P2P) pull(by, src int, local unsafe.Pointer, from fabric.RemoteKey, n int) (err error) {
	if by == divided {
		return p.eng.GetByThreads(src, local, from, n, p.eng.Pairs())
	}
	_, err = p.eng.Get(src, local, from, n, 0)
	return err
}

// put copies payload, as much as there is room for, into the user's buffer.
func (r *Request) put(payload []byte) (err error) {
	defer sys.CatchFault(&err)
	if len(payload) > r.buf.Bytes() {
		payload = payload[:r.buf.Bytes()]
	}
	if len(payload) == 0 {
		return nil
	}
	if r.buf.dense() {
		return r.piece(0, payload)
	}
	r.buf.Type.Unpack(r.buf.Addr, payload, r.buf.Count)
	return nil
}

// end completes a receive whose data has arrived; err, if not nil, is why it could not
// be stored in the buffer.
func (r *Request) end(err error) {
	if err != nil {
		r.fail(r.refusal(err))
		return
	}
	r.complete()
}

// fin notifies the sender of the message h that r has matched it or has its data.
func (p *P2P) fin(r *Request, src int, h *fabric.Header) {
	r.head = fabric.Header{Kind: fabric.KindFin, Gen: h.Gen, Ctx: h.Ctx, A: h.A}
	p.eng.Send(src, &r.head, nil, nil, nil)
}

// onFin completes the send that the receiver has matched or read.
func (p *P2P) onFin(_ int, h *fabric.Header, _ []byte) {
	if r := p.recall(h.A); r != nil {
		r.withdraw()
		r.complete()
	}
}

// Begun reports whether a receive has been matched: then its sender goes on with the message, whatever its program does.
func (c *Channel) Begun(r *Request) bool {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	return r.recv && !r.posted
}

// Cancel withdraws a receive that was not matched, and reports whether it did.
// A send can't be withdrawn.
func (c *Channel) Cancel(r *Request) bool {
	if !r.recv {
		return false
	}
	c.q.mu.Lock()
	ok := c.q.unpost(r)
	c.q.mu.Unlock()
	if ok {
		r.status.Cancelled = true
		r.complete()
	}
	return ok
}

// Withdraw ends a RecvWhole if it has matched no message, and reports whether it has. Otherwise the request has completed
// when Withdraw returns.
func (c *Channel) Withdraw(r *Request) bool {
	if r.Done() {
		return false
	}
	if c.Cancel(r) {
		return true
	}
	c.p.eng.Exclude(func() {}) // another thread completes it in its poll
	return !r.Done()
}

// Abandon ends a request whose caller gives up (a Ctrl-C inside a wait), so
// that this process does not write to its buffer any more: a message that was sent whole is
// left to the next receive, pieces of others that still arrive
// are dropped, queued data is copied. A receiver that has the address of a long
// message may still have it read there.
func (c *Channel) Abandon(r *Request) {
	// Pollers are excluded, since another thread may be filling the buffer in a poll.
	c.p.eng.Exclude(func() {
		if r.Done() || r.recv && (c.Cancel(r) || c.p.unmatch(r)) {
			return
		}
		c.p.redirect(r)
		if r.recv || !c.p.substitute(r) {
			c.p.recall(r.token)
		}
		if !r.recv {
			_ = c.p.eng.Detach(r.Peer(), r) // the caller has given up and does not need the error
		}
	})
	c.p.awaitNetwork(r)
}

// substitute replaces an announced send that is abandoned by a request of its own, which
// serves the receiver: with the region or the memory in which it reads the data, or with a copy to
// send. It reports whether it did; otherwise the receiver needs nothing more.
func (p *P2P) substitute(r *Request) bool {
	if p.eng.Gone(r.Peer()) {
		r.withdraw()
		return false
	}
	if r.head.Kind != fabric.KindRTS {
		return false
	}
	p.tokens.Lock()
	defer p.tokens.Unlock()
	if p.byID[r.token] != r {
		return false // the receiver has the data, or has asked for it
	}
	s := r.successor()
	if s.region == nil && s.flat == nil && r.head.Flags&flagsInPlace == 0 {
		if err := s.pack(r.buf.Bytes()); err != nil {
			return false
		}
	}
	p.byID[r.token] = s
	return true
}

// successor returns a request that serves the receiver of an announced send in place of r, which its caller may use again. It takes
// the region over.
func (r *Request) successor() *Request {
	s := &Request{q: r.q, src: r.src, tag: r.tag, gen: r.gen, buf: r.buf, token: r.token, region: r.region, flat: r.flat, given: true}
	s.world.Store(r.world.Load())
	r.region = nil
	return s
}

// forgetGivenUp drops the substitutes of sends to a process that has ended.
func (p *P2P) forgetGivenUp(world int) {
	p.tokens.Lock()
	defer p.tokens.Unlock()
	for token, r := range p.byID {
		if r.given && r.Peer() == world {
			r.withdraw()
			delete(p.byID, token)
		}
	}
}

// Announced reports whether r is a send of which the receiver has been told, and which it has
// not received as far as is known here, and returns its token.
func (c *Channel) Announced(r *Request) (token uint64, ok bool) {
	if r.recv || r.Done() {
		return 0, false
	}
	c.p.tokens.Lock()
	defer c.p.tokens.Unlock()
	return r.token, r.token != 0 && c.p.byID[r.token] == r
}

// Unreceived reports whether the receiver of an announced send, which may have been abandoned,
// lives and has not said that it has it.
func (c *Channel) Unreceived(token uint64) bool {
	c.p.tokens.Lock()
	defer c.p.tokens.Unlock()
	r := c.p.byID[token]
	return r != nil && !c.p.eng.Gone(r.Peer())
}

// noticed tells a checker that this thread knows of a message, which it has not received.
func (c *Channel) noticed(h *fabric.Header) {
	if checked := events.On(); checked != nil && !c.q.internal {
		checked.Write(events.Received, int64(h.Aux), int64(c.World[h.Src]), 1)
	}
}

// Matched is a message that a matched probe has taken out of the queue.
type Matched struct {
	c *Channel
	m *message
}

// World returns the world ranks of the channel in which the message was matched.
func (m *Matched) World() []int { return m.c.World }

// Probe returns the status of the first message that source and tag accept, without
// receiving it, and reports whether there is one.
func (c *Channel) Probe(source, tag int) (Status, bool) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	m := c.q.arrived.find(source, tag, c.p.gen.Load())
	if m == nil {
		return Status{}, false
	}
	h := &m.header
	c.noticed(h)
	return Status{Source: int(h.Src), Tag: int(h.Tag), Bytes: int(h.Len)}, true
}

// MatchedProbe is Probe, and takes the message out of the queue.
func (c *Channel) MatchedProbe(source, tag int) (*Matched, Status, bool) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	m := c.q.arrived.find(source, tag, c.p.gen.Load())
	if m == nil {
		return nil, Status{}, false
	}
	c.q.arrived.remove(m)
	h := &m.header
	c.noticed(h)
	return &Matched{c, m}, Status{Source: int(h.Src), Tag: int(h.Tag), Bytes: int(h.Len)}, true
}

// Recv starts the receive of a message taken by MatchedProbe.
func (m *Matched) Recv(r *Request, b Buf) {
	*r = Request{recv: true, q: m.c.q, src: int(m.m.header.Src), tag: int(m.m.header.Tag), gen: m.m.header.Gen, buf: b}
	r.world.Store(int32(m.m.world))
	m.c.p.take(r, m.m.world, &m.m.header, m.m.payload)
}

// Check returns why a pending request can't complete any more, nil if it can:
// its peer, or for a receive from any source every other rank, has ended.
func (c *Channel) Check(r *Request) error {
	if e := c.Revoked(); e != nil {
		return e
	}
	what := "send to"
	if r.recv {
		what = "receive from"
	}
	if peer := r.Peer(); peer >= 0 {
		if c.p.eng.Gone(peer) && !r.Done() {
			return errs.New(errs.ProcFailed, "%s %s can't complete: %s", what, c.q.peer(r.src, r.tag), c.p.eng.HowGone(peer))
		}
		return nil
	}
	if c.alone() {
		return nil // a thread of this process may still send
	}
	return c.anyGone(errs.ProcFailedPending, r.tag)
}

// CheckProbe is Check for a probe; what: "probe for a message", or what it is a part of.
func (c *Channel) CheckProbe(what string, source, tag int) error {
	if e := c.Revoked(); e != nil {
		return e
	}
	if source >= 0 {
		if w := c.World[source]; c.p.eng.Gone(w) {
			return errs.New(errs.ProcFailed, "%s from %s can't complete: %s", what, c.q.peer(source, tag), c.p.eng.HowGone(w))
		}
		return nil
	}
	if c.alone() {
		return nil
	}
	return c.anyGone(errs.ProcFailed, tag)
}

// alone reports whether messages come from this process only.
func (c *Channel) alone() bool { return len(c.World) == 1 && c.World[0] == c.p.eng.Rank }

// anyGone returns why a receive from any source can't complete: all ranks have ended; or may not, with class pending: one has failed, and the program has
// not acknowledged that.
func (c *Channel) anyGone(pending errs.Class, tag int) error {
	living := slices.ContainsFunc(c.World, func(w int) bool { return w != c.p.eng.Rank && !c.p.eng.Gone(w) })
	failed := c.Unacknowledged()
	what := "receive from " + c.q.peer(AnySource, tag)
	switch {
	case !living && c.q.names != nil:
		return errs.New(errs.ProcFailed, "%s can't complete: all ranks of the remote group have ended", what)
	case !living:
		return errs.New(errs.ProcFailed, "%s can't complete: all other ranks of the communicator have ended", what)
	case failed >= 0:
		return errs.New(pending, "%s may never complete: %s (after Ack_failed the receive waits for the others)", what, c.p.eng.HowGone(c.World[failed]))
	}
	return nil
}

// Unacknowledged returns a rank that has failed, which the program has not acknowledged; -1 if there is none.
func (c *Channel) Unacknowledged() int {
	for r, w := range c.World {
		if w != c.p.eng.Rank && c.p.eng.Failed(w) && (c.acknowledged == nil || !c.acknowledged(r)) {
			return r
		}
	}
	return -1
}

// Generation returns the current generation.
func (p *P2P) Generation() uint32 { return p.gen.Load() }

// Generation returns the current generation.
func (c *Channel) Generation() uint32 { return c.p.Generation() }

// Dropped returns the error of an operation of generation gen if a collective reset has
// ended that generation, else nil. An operation of several steps calls it before each:
// a message that it sent now would be of the new generation, in which no rank answers it.
func (c *Channel) Dropped(gen uint32) *errs.Error {
	if gen == c.Generation() {
		return nil
	}
	return errs.New(errs.Pending, "the operation was dropped by the collective reset")
}

// Ended is Dropped for an operation on memory that the ranks share. Such an operation goes on waiting until all ranks
// have finished the reset: what its thread would call next could use memory that a rank has not cleared yet.
func (c *Channel) Ended(gen uint32) (over bool, e *errs.Error) {
	if gen == c.Generation() {
		return false, nil
	}
	return !c.p.resetting.Load(), c.Dropped(gen)
}

// Reset drops everything of the generations before gen: posted receives and requests
// that have tokens fail with MPI_ERR_PENDING. Settle says that all ranks have finished.
func (p *P2P) Reset(gen uint32) { p.eng.Exclude(func() { p.reset(gen) }) }

// Settle ends a reset, once all ranks have called Reset and cleared what they share.
func (p *P2P) Settle() { p.resetting.Store(false) }

func (p *P2P) reset(gen uint32) {
	p.resetting.Store(true)
	p.gen.Store(gen)
	old := errs.New(errs.Pending, "the request was dropped by the collective reset")
	p.eng.DropOlder(gen, old) // also drops what package rma queued: it has the same generations
	p.resetCredits()
	p.mu.RLock()
	for _, q := range p.queues {
		q.mu.Lock()
		for r := q.posted.any(); r != nil; r = q.posted.any() {
			q.posted.remove(r)
			r.fail(old)
		}
		q.arrived.take(func(m *message) bool { return int32(m.header.Gen-gen) < 0 })
		q.mu.Unlock()
	}
	p.mu.RUnlock()
	p.tokens.Lock()
	for t, r := range p.byID {
		r.unpublish()
		if p.eng.Gone(r.Peer()) {
			r.withdraw()
		}
		switch {
		case r.region == nil:
			delete(p.byID, t)
		case !r.given:
			p.byID[t] = r.successor()
		}
		p.redirect(r)
		if !r.Done() {
			r.fail(old)
		}
	}
	p.tokens.Unlock()
}

// awaited reports whether r is a send that its receiver has not taken yet, and that its caller has not given up.
func (r *Request) awaited() bool { return !r.recv && !r.Done() && !r.given }

// PendingSends returns the number of sends that their receivers have not taken yet.
func (p *P2P) PendingSends() int {
	p.tokens.Lock()
	defer p.tokens.Unlock()
	n := 0
	for _, r := range p.byID {
		if r.awaited() {
			n++
		}
	}
	return n
}

// SendsHopeless reports whether no receiver of a pending send lives any more.
func (p *P2P) SendsHopeless() bool {
	p.tokens.Lock()
	defer p.tokens.Unlock()
	for _, r := range p.byID {
		// What this process sent to itself is not received any more either.
		if to := r.Peer(); r.awaited() && to != p.eng.Rank && !p.eng.Gone(to) && !p.eng.Finalized(to) {
			return false
		}
	}
	return true
}

// Channel returns the channel in which the message was matched.
func (m *Matched) Channel() *Channel { return m.c }
